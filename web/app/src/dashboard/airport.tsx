import type { Client } from "../shared/client";
import { Chart } from "./chart";
import { count, dayOf, minutes, percent, time, utc } from "./format";
import { Age, Failure } from "./freshness";
import { useLive, type Live } from "./live";
import { Num } from "./number";
import { totalsQuery, type Airport, type Hour, type Totals } from "./queries";
import { ask, bars, rangeOf, ranges, type Range } from "./series";

interface Props {
  client: Client;
  connected: boolean;
  origin: string;
  /** What the ranking already knows of the airport. */
  hint: Airport | null | undefined;
  range: string;
  setRange: (id: string) => void;
  streamTime: number;
}

/** The selected airport: its totals, and its hours or days. */
export function AirportPanel({ client, connected, origin, hint, range: rangeID, setRange, streamTime }: Props) {
  const range = rangeOf(rangeID);
  const totals = useLive<Totals | null>(client, origin, origin ? { query: totalsQuery, variables: { origin } } : null);
  const known = Number.isFinite(streamTime) ? streamTime : time(totals.data?.lastDeparture);
  const asked = ask(origin, range, known, Date.now());
  const series = useLive<(Hour | null)[] | null>(client, `${origin} ${range.id}`, origin ? asked.request : null, asked.every);
  const airport = totals.data?.airport ?? hint;
  const place = [airport?.city, airport?.state].filter(Boolean).join(", ");
  return (
    <section class={`panel selected ${connected ? "" : "dimmed"}`} aria-labelledby="airport-title">
      <header>
        <h2 id="airport-title">
          <span class="code">{origin || "–"}</span>
          <span class="names">
            <span class="name">{airport?.name ?? (origin ? "Airport" : "No airport yet")}</span>
            <span class="city">{place || " "}</span>
          </span>
        </h2>
        <Age live={totals} freshness={totals.data?.freshness} connected={connected} />
      </header>
      <Failure error={totals.error} />
      <Tiles totals={totals} origin={origin} />
      <div class="bar-line">
        <Legend />
        <Ranges range={range} setRange={setRange} />
      </div>
      <Failure error={series.error} />
      <Series series={series} origin={origin} range={range} streamTime={known} />
    </section>
  );
}

function Tiles({ totals, origin }: { totals: Live<Totals | null>; origin: string }) {
  const t = totals.data;
  if (t === null) {
    return <p class="empty tiles">No departures from {origin} have been counted.</p>;
  }
  // The key starts the tiles anew for another airport: no change is shown.
  return (
    <dl class="tiles" key={origin}>
      <Tile name="Flights" value={t?.flights} as={count} />
      <Tile name="Late > 15 min" value={t?.delayedShare} as={percent} note={t ? `${count(t.delayed)} flights` : ""} />
      <Tile name="Average delay" value={t?.averageDelay} as={minutes} />
      <Tile name="Worst delay" value={t?.worstDelay} as={(n) => (n == null ? "–" : `${count(n)} min`)} />
      <Tile name="Last departure" value={t ? time(t.lastDeparture) : null} as={(n) => (n == null ? "–" : utc(n, "clock"))} note={t ? `${dayOf(time(t.lastDeparture))}, UTC` : ""} />
    </dl>
  );
}

interface TileProps {
  name: string;
  value: number | null | undefined;
  as: (n: number | null | undefined) => string;
  note?: string;
}

function Tile({ name, value, as, note }: TileProps) {
  return (
    <div class="tile">
      <dt>{name}</dt>
      <dd>
        <Num value={value} as={as} />
        <small>{note || " "}</small>
      </dd>
    </div>
  );
}

function Legend() {
  return (
    <ul class="legend" aria-hidden="true">
      <li class="key average">average</li>
      <li class="key p95">95th percentile</li>
      <li class="key final">final</li>
      <li class="key open">still open</li>
    </ul>
  );
}

function Ranges({ range, setRange }: { range: Range; setRange: (id: string) => void }) {
  return (
    <fieldset class="ranges">
      <legend class="hidden">Range of the chart</legend>
      {ranges.map((r) => (
        <label key={r.id} class={r === range ? "on" : ""}>
          <input type="radio" name="range" value={r.id} checked={r === range} onChange={() => setRange(r.id)} />
          {r.label}
        </label>
      ))}
    </fieldset>
  );
}

interface SeriesProps {
  series: Live<(Hour | null)[] | null>;
  origin: string;
  range: Range;
  streamTime: number;
}

function Series({ series, origin, range, streamTime }: SeriesProps) {
  const shown = bars(series.data ?? [], range, streamTime);
  const flights = shown.reduce((sum, b) => sum + b.flights, 0);
  if (!series.data || flights === 0) {
    return (
      <div class="chart blank">
        <p>{blank(series, origin, range, streamTime)}</p>
      </div>
    );
  }
  const unit = range.step < 86_400_000 ? "hour" : "day";
  return (
    <>
      <Chart bars={shown} range={range} label={`${origin}, flights and delays by ${unit}, ${count(flights)} flights in ${range.words}`} />
      <p class="note under">
        {count(flights)} flights in {range.words} by {unit}
        {Number.isFinite(streamTime) && `, up to the stream's time ${dayOf(streamTime)}, ${utc(streamTime, "clock")} UTC`}
      </p>
    </>
  );
}

/** Why there is no chart. */
function blank(series: SeriesProps["series"], origin: string, range: Range, streamTime: number): string {
  if (!origin) return "The first airport is shown here as soon as there is one.";
  if (!series.data) return series.error ? "Nothing to draw." : "Waiting for the series …";
  const until = Number.isFinite(streamTime) ? ` before ${dayOf(streamTime)}, ${utc(streamTime, "clock")} UTC, the stream's time` : "";
  return `No departures from ${origin} in the ${range.words}${until}.`;
}
