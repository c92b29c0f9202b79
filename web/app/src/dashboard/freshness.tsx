import type { GraphQLError } from "../shared/client";
import { count, span, time } from "./format";
import { useNow, type Live } from "./live";
import type { Freshness } from "./queries";

/** An age beyond which a connection that works is called quiet. */
const quietAfter = 10_000;

interface Props {
  live: Live<unknown>;
  freshness?: Freshness | undefined;
  connected: boolean;
}

/**
 * How fresh a panel is: the age of what it shows, which goes on growing when
 * nothing comes, how many records are behind, and from which copy.
 */
export function Age({ live, freshness, connected }: Props) {
  const now = useNow();
  const asOf = time(freshness?.asOf);
  const at = Number.isFinite(asOf) ? asOf : live.at;
  const age = at ? Math.max(0, now - at) : NaN;
  const state = !connected || live.failed ? "stale" : age > quietAfter ? "quiet" : "fresh";
  const words = () => {
    if (!Number.isFinite(age)) return connected ? "waiting for data" : "not connected";
    // A newer answer comes with each change: none means that this one holds, if
    // the active copies gave it.
    if (state === "quiet" && !freshness?.lag && !freshness?.partial && !freshness?.standby) return `unchanged for ${span(now - live.at)}`;
    return age < 1_000 ? "as of now" : `as of ${span(age)} ago`;
  };
  return (
    <div class="age">
      {freshness?.standby && (
        <span class="badge warn" title="A copy other than the active one answered.">standby</span>
      )}
      {freshness?.partial && <Missing missing={freshness.missing} />}
      {freshness && freshness.lag > 0 && (
        <span class="badge" title="Records in the source that are not in this answer yet.">{count(freshness.lag)} behind</span>
      )}
      <span class={`since ${state}`} title={Number.isFinite(at) && at ? new Date(at).toISOString() : undefined}>
        <i class="dot" aria-hidden="true" />
        {words()}
      </span>
    </div>
  );
}

function Missing({ missing }: { missing: Freshness["missing"] }) {
  return (
    <details class="missing">
      <summary class="badge warn">partial: {missing.length} missing</summary>
      <ul>
        {missing.map((m) => (
          <li key={m.partition}>
            <b>partition {m.partition}</b> {m.reason}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** An error with its code, in the panel that it concerns. */
export function Failure({ error }: { error: GraphQLError | undefined }) {
  if (!error) return null;
  const field = error.path?.filter((step) => typeof step === "string").join(".");
  return (
    <p class="failure" role="status">
      <code>{error.extensions?.code ?? "ERROR"}</code> {error.message} {field && <small>at {field}</small>}
    </p>
  );
}
