import { useState } from "preact/hooks";
import { count, percent } from "./format";
import { useFlip } from "./flip";
import { Age, Failure } from "./freshness";
import type { Live } from "./live";
import { Num, Share } from "./number";
import type { Ranked, Ranking } from "./queries";

export const rankingSize = 10;

interface Props {
  live: Live<Ranking | null>;
  connected: boolean;
  selected: string;
  select: (origin: string) => void;
}

/** The airports with the most minutes of delay, as they stand. */
export function RankingPanel({ live, connected, selected, select }: Props) {
  const rows = live.data?.rows;
  const list = useFlip<HTMLOListElement>();
  return (
    <section class={`panel ranking ${connected ? "" : "dimmed"}`} aria-labelledby="ranking-title">
      <header>
        <h2 id="ranking-title">Most minutes of delay</h2>
        <Age live={live} freshness={live.data?.freshness} connected={connected} />
      </header>
      <Failure error={live.error} />
      <div class="labels row" aria-hidden="true">
        <span class="rank" />
        <span class="airport">Airport</span>
        <span class="right flights">Flights</span>
        <span class="late">Late</span>
        <span class="right minutes">Minutes</span>
      </div>
      <ol class="body" ref={list} onKeyDown={moveFocus}>
        {rows?.map((row, i) => (
          <Row key={row.origin} row={row} rank={i + 1} most={rows[0]!.delayMinutes} selected={row.origin === selected} select={select} />
        ))}
        {!rows && <Waiting />}
      </ol>
      {rows?.length === 0 && <p class="empty">No departures yet. The first airports appear as soon as flights arrive.</p>}
      <Finder select={select} />
    </section>
  );
}

interface RowProps {
  row: Ranked;
  rank: number;
  most: number;
  selected: boolean;
  select: (origin: string) => void;
}

function Row({ row, rank, most, selected, select }: RowProps) {
  const place = [row.airport?.city, row.airport?.state].filter(Boolean).join(", ");
  const length = most > 0 ? Math.max(0, row.delayMinutes / most) * 100 : 0;
  return (
    <li data-flip={row.origin}>
      <button class="row" aria-pressed={selected} onClick={() => select(row.origin)}>
        <span class="rank">{rank}</span>
        <span class="airport">
          <b class="code">{row.origin}</b>
          <span class="names">
            <span class="name">{row.airport?.name ?? "Unknown airport"}</span>
            <span class="city">{place || " "}</span>
          </span>
        </span>
        <span class="right flights">
          <Num value={row.flights} as={count} />
        </span>
        <span class="late">
          <Share value={row.delayedShare} as={percent} />
        </span>
        <span class="right minutes strong">
          <Num value={row.delayMinutes} as={count} />
        </span>
        <span class="level" aria-hidden="true" style={{ width: `${length}%` }} />
      </button>
    </li>
  );
}

/** Rows to come: they keep the place, so that nothing jumps. */
function Waiting() {
  return (
    <>
      {Array.from({ length: rankingSize }, (_, i) => (
        <li key={i} class="waiting" aria-hidden="true">
          <span class="row" />
        </li>
      ))}
    </>
  );
}

function moveFocus(event: KeyboardEvent): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (!step) return;
  const buttons = [...(event.currentTarget as HTMLElement).querySelectorAll("button")];
  const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
  buttons[at + step]?.focus();
  event.preventDefault();
}

/** Opens an airport that the ranking does not show. */
function Finder({ select }: { select: (origin: string) => void }) {
  const [code, setCode] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    const origin = code.trim().toUpperCase();
    if (!origin) return;
    select(origin);
    setCode("");
  };
  return (
    <form class="finder" onSubmit={submit}>
      <label for="finder">Another airport</label>
      <input id="finder" placeholder="code, such as BOS" maxLength={8} autocomplete="off" spellcheck={false} value={code} onInput={(e) => setCode(e.currentTarget.value)} />
      <button type="submit">Show</button>
    </form>
  );
}
