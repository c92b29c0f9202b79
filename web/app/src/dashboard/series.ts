// What the chart of an airport shows: which windows are asked for, and which of
// the answer are drawn. The right edge is the stream's time, which may lie far
// behind the clock's: while a stream is caught up, or for old data.

import type { Request } from "../shared/client";
import { time } from "./format";
import { seriesQuery, seriesWatch, type Hour } from "./queries";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

export interface Range {
  id: string;
  label: string;
  words: string;
  /** The length of a bar, and how many there are. */
  step: number;
  bars: number;
}

export const ranges: readonly Range[] = [
  { id: "24h", label: "24 h", words: "24 hours", step: hourMs, bars: 24 },
  { id: "72h", label: "72 h", words: "72 hours", step: hourMs, bars: 72 },
  { id: "30d", label: "30 d", words: "30 days", step: dayMs, bars: 30 },
  { id: "90d", label: "90 d", words: "90 days", step: dayMs, bars: 90 },
];

export const rangeOf = (id: string): Range => ranges.find((r) => r.id === id) ?? ranges[2]!;

/** A window to draw. */
export interface Bar {
  start: number;
  end: number;
  final: boolean;
  flights: number;
  average: number | null;
  p95: number | null;
}

/** The most windows that a subscription is asked to repeat with each event. */
const watched = 400;

export interface Ask {
  request: Request;
  /** Milliseconds between two askings; 0: a subscription. */
  every: number;
}

/**
 * What to ask for a range that ends at streamTime. Where that is not too long
 * ago it is a subscription, counted back from now in whole days so that its
 * variables rarely change; otherwise a query between two fixed moments.
 */
export function ask(origin: string, range: Range, streamTime: number, now: number): Ask {
  const step = range.step === dayMs ? "1d" : undefined;
  const behind = Number.isFinite(streamTime) ? Math.max(0, now - streamTime) : 0;
  const days = Math.ceil((range.step * range.bars + behind) / dayMs) + (behind > range.step ? 1 : 0);
  if ((days * dayMs) / range.step <= watched && days < 120) {
    return { request: { query: seriesWatch, variables: { origin, last: `${days}d`, step } }, every: 0 };
  }
  const to = Math.floor(streamTime / range.step) * range.step + range.step;
  const from = to - range.step * range.bars;
  const between = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
  return { request: { query: seriesQuery, variables: { origin, ...between, step } }, every: 2_000 };
}

/**
 * The windows of an answer that belong to the range. Those beyond the stream's
 * time are left off: nothing can have fallen into them.
 */
export function bars(hours: readonly (Hour | null)[], range: Range, streamTime: number): Bar[] {
  const all = hours
    .filter((h): h is Hour => h !== null)
    .map((h) => ({
      start: time(h.start),
      end: time(h.end),
      final: h.final,
      flights: h.flights,
      average: h.averageDelay,
      p95: h.p95Delay,
    }));
  const known = Number.isFinite(streamTime);
  let end = all.length;
  while (end > 0 && all[end - 1]!.flights === 0 && (known ? all[end - 1]!.start > streamTime : !all[end - 1]!.final)) end--;
  return all.slice(Math.max(0, end - range.bars), end);
}

/** Round values, about so many, from at or above least to at or above most. */
export function ticks(least: number, most: number, about: number): number[] {
  const raw = Math.max(most - least, 1) / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((u) => u >= raw && Number.isInteger(u)) ?? 1;
  const values: number[] = [];
  for (let v = Math.ceil(least / step) * step; values.length === 0 || values.at(-1)! < most; v += step) values.push(v || 0);
  return values;
}
