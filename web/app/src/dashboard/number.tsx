import { useBefore } from "./live";

/** A number that lights up for a moment when it changes. */
export function Num({ value, as, class: name = "" }: { value: number | null | undefined; as: (n: number | null | undefined) => string; class?: string }) {
  const text = as(value);
  const before = useBefore(text);
  const changed = before !== undefined && before !== "–";
  // The key makes a new element of each value: that starts the animation anew.
  return (
    <span key={text} class={`num ${name} ${changed ? "changed" : ""}`}>
      {text}
    </span>
  );
}

/** A share of one, as a bar with its percentage. */
export function Share({ value, as }: { value: number | null; as: (n: number | null) => string }) {
  return (
    <span class="share">
      <span class="track" aria-hidden="true">
        <span class="fill" style={{ width: `${Math.min(100, Math.max(0, (value ?? 0) * 100))}%` }} />
      </span>
      <span class="num">{as(value)}</span>
    </span>
  );
}
