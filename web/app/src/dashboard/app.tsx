import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Client, socketURL, unconnected, type Status } from "../shared/client";
import { bearer, get, type Page } from "../shared/page";
import { AirportPanel } from "./airport";
import { Header } from "./header";
import { InstancesPanel, streamTime, useCluster, type Cluster } from "./instances";
import { useLive, useNow } from "./live";
import { rankingQuery, type Ranking } from "./queries";
import { RankingPanel, rankingSize } from "./ranking";
import { rangeOf } from "./series";

/** The whole dashboard. */
export function App() {
  const { client, page, status, token, setToken } = useServer();
  const bearing = token || page?.token || "";
  const cluster = useCluster(page ? bearing : null);
  const [place, go] = usePlace();
  const connected = status.state === "live";
  const ranking = useLive<Ranking | null>(client, "ranking", { query: rankingQuery, variables: { first: rankingSize } });
  const rows = ranking.data?.rows;

  // Without a choice the first of the ranking is chosen, and then kept.
  const first = rows?.[0]?.origin;
  useEffect(() => {
    if (!place.origin && first) go({ ...place, origin: first });
  }, [place.origin, first]);

  const at = streamTime(cluster);
  return (
    <>
      <Header page={page} status={status} streamTime={at} needsToken={page?.auth === "jwt"} token={token} setToken={setToken} />
      <main>
        <RankingPanel live={ranking} connected={connected} selected={place.origin} select={(origin) => go({ ...place, origin })} />
        <AirportPanel
          client={client}
          connected={connected}
          origin={place.origin}
          hint={rows?.find((r) => r.origin === place.origin)?.airport}
          range={place.range}
          setRange={(range) => go({ ...place, range })}
          streamTime={at}
        />
        <InstancesPanel cluster={cluster} token={bearing} />
      </main>
      <Lost status={status} cluster={cluster} page={page} retry={() => client.retry()} />
    </>
  );
}

/** The connection. A token typed in is kept in memory alone. */
function useServer() {
  const [page, setPage] = useState<Page>();
  const [status, setStatus] = useState<Status>(unconnected);
  const [token, keepToken] = useState("");
  const held = useRef("");
  const client = useMemo(() => {
    const payload = async () => {
      // Asked before each connection: a token of before may have run out.
      const told = await get<Page>("/api/page");
      setPage(told);
      return bearer(held.current || told.token || "");
    };
    return new Client({ url: socketURL(), payload, onStatus: setStatus });
  }, []);
  const setToken = (text: string) => {
    held.current = text.trim().replace(/^Bearer\s+/i, "");
    keepToken(held.current);
    client.reconnect();
  };
  return { client, page, status, token, setToken };
}

interface Place {
  origin: string;
  range: string;
}

/** What is shown, as the address says after its #: "#DFW/30d". */
function usePlace(): [Place, (place: Place) => void] {
  const [place, setPlace] = useState<Place>(readPlace);
  useEffect(() => {
    const follow = () => setPlace(readPlace());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  const go = (to: Place) => {
    history.replaceState(null, "", `#${encodeURIComponent(to.origin)}/${to.range}`);
    setPlace(to);
  };
  return [place, go];
}

function readPlace(): Place {
  const [origin = "", range = ""] = location.hash.slice(1).split("/");
  try {
    return { origin: decodeURIComponent(origin), range: rangeOf(range).id };
  } catch {
    return { origin: "", range: rangeOf(range).id };
  }
}

interface LostProps {
  status: Status;
  cluster: Cluster;
  page: Page | undefined;
  retry: () => void;
}

/** Says that nothing comes any more, what is done about it, and where to go. */
function Lost({ status, cluster, page, retry }: LostProps) {
  const now = useNow(500);
  if (status.state === "live" || (status.attempt < 2 && status.state === "connecting")) return null;
  const self = cluster.told?.instances.find((i) => i.self);
  const away = cluster.silent || (self !== undefined && !self.running);
  const others = away ? (cluster.told?.instances.filter((i) => !i.self && i.running) ?? []) : [];
  const wait = Math.max(0, Math.ceil((status.retryAt - now) / 1_000));
  return (
    <aside class="lost" aria-label="Connection">
      <p>
        <b role="status">{happened(status, cluster, self?.id ?? page?.instance, self?.running ?? true)}</b> {status.seen && "The numbers are the last ones received."}
      </p>
      <p>
        {status.state === "waiting" ? `Attempt ${status.attempt + 1} in ${wait} s.` : `Attempt ${status.attempt} …`}{" "}
        <button onClick={retry} disabled={status.state !== "waiting"}>
          Try now
        </button>
        {others.map((i) => (
          <a key={i.id} href={`${location.protocol}//${i.http}/${location.hash}`}>
            Go to instance {i.id}
          </a>
        ))}
      </p>
    </aside>
  );
}

function happened(status: Status, cluster: Cluster, id: string | undefined, running: boolean): string {
  if (!running) return `Instance ${id}, which serves this page, is stopped.`;
  if (cluster.silent && id) return `Instance ${id}, which serves this page, does not answer.`;
  if (status.refused) return `The server asks for a valid token${status.reason ? ` (${status.reason})` : ""}.`;
  return `The connection is lost${status.reason ? ` (${status.reason})` : ""}.`;
}
