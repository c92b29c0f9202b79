import { useEffect, useRef, useState } from "preact/hooks";
import { count, minutes, short, utc } from "./format";
import { ticks, type Bar, type Range } from "./series";

const left = 44;
const right = 12;
const top = 10;
const gap = 32; // between the delays and the flights
const axis = 28; // below the flights

interface Props {
  bars: Bar[];
  range: Range;
  label: string;
}

/** The flights of each window as bars, and above them how late they were. */
export function Chart({ bars, range, label }: Props) {
  const [box, width, height] = useSize();
  const split = Math.round(height * 0.53);
  const bottom = height - axis;
  const [at, setAt] = useState<number | null>(null);
  const shown = at === null ? undefined : bars[at];
  const band = (width - left - right) / Math.max(bars.length, 1);
  const x = (i: number) => left + i * band;

  const point = (event: PointerEvent) => {
    const inside = event.clientX - (event.currentTarget as SVGElement).getBoundingClientRect().left - left;
    const i = Math.floor(inside / band);
    setAt(i >= 0 && i < bars.length ? i : null);
  };
  const step = (event: KeyboardEvent) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, Home: -bars.length, End: bars.length }[event.key];
    if (event.key === "Escape") setAt(null);
    if (!move) return;
    event.preventDefault();
    setAt(Math.min(bars.length - 1, Math.max(0, (at ?? bars.length) + move)));
  };

  return (
    <div class="chart" ref={box} tabIndex={0} role="group" aria-label={`${label}. Arrow keys read its bars.`} onKeyDown={step} onBlur={() => setAt(null)}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true" onPointerMove={point} onPointerDown={point} onPointerLeave={() => setAt(null)}>
        <Hatch />
        <Delays bars={bars} x={x} band={band} width={width} low={split} at={at} />
        <Flights bars={bars} x={x} band={band} width={width} low={bottom} high={split + gap} />
        <Days bars={bars} range={range} x={x} band={band} width={width} low={bottom} />
        {shown && <rect class="cursor" x={x(at!)} y={top} width={band} height={bottom - top} />}
      </svg>
      {shown && <Tip bar={shown} range={range} x={x(at!) + band / 2} width={width} />}
      <p class="hidden" aria-live="polite">
        {shown && `${title(shown, range)}: ${describe(shown)}`}
      </p>
    </div>
  );
}

/** The pattern of windows that can still change. */
function Hatch() {
  return (
    <defs>
      <pattern id="open" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="6" height="6" class="hatch-ground" />
        <rect width="3" height="6" class="hatch-line" />
      </pattern>
    </defs>
  );
}

interface Part {
  bars: Bar[];
  x: (i: number) => number;
  band: number;
  width: number;
  /** Where the part ends below. */
  low: number;
}

function Flights({ bars, x, band, width, low, high }: Part & { high: number }) {
  const most = Math.max(1, ...bars.map((b) => b.flights));
  const marks = ticks(0, most, 3);
  const y = scale(0, marks.at(-1)!, low, high);
  const inset = band > 14 ? 2 : band > 5 ? 1 : 0.4;
  return (
    <g>
      <text class="caption" x={left} y={high - 11}>
        Flights
      </text>
      <Grid marks={marks} y={y} width={width} />
      {bars.map((b, i) =>
        b.flights > 0 ? (
          <rect
            key={b.start}
            class={b.final ? "bar" : "bar open"}
            x={x(i) + inset}
            y={y(b.flights)}
            width={Math.max(0.8, band - 2 * inset)}
            height={low - y(b.flights)}
            rx={Math.min(2, band / 4)}
          />
        ) : null,
      )}
    </g>
  );
}

function Delays({ bars, x, band, width, low, at }: Part & { at: number | null }) {
  const values = bars.flatMap((b) => [b.average, b.p95]).filter((v): v is number => v !== null);
  const least = Math.min(0, ...values);
  const marks = ticks(least, Math.max(10, ...values), 4);
  const y = scale(least, marks.at(-1)!, low, top + 18);
  const line = (of: (b: Bar) => number | null) => path(bars.map((b, i) => [x(i) + band / 2, of(b)] as const), y);
  const average = line((b) => b.average);
  const p95 = line((b) => b.p95);
  const shown = at === null ? undefined : bars[at];
  return (
    <g>
      <text class="caption" x={left} y={top + 4}>
        Delay in minutes
      </text>
      <Grid marks={marks} y={y} width={width} />
      <path class="p95" d={p95.lines} />
      <path class="p95 lone" d={p95.points} />
      <path class="average bridge" d={average.bridges} />
      <path class="average" d={average.lines} />
      <path class="average lone" d={average.points} />
      {shown?.p95 != null && <circle class="p95 mark" cx={x(at!) + band / 2} cy={y(shown.p95)} r="4" />}
      {shown?.average != null && <circle class="average mark" cx={x(at!) + band / 2} cy={y(shown.average)} r="4" />}
    </g>
  );
}

function Grid({ marks, y, width }: { marks: number[]; y: (v: number) => number; width: number }) {
  return (
    <g>
      {marks.map((v) => (
        <g key={v}>
          <line class={v === 0 ? "zero" : "grid"} x1={left} x2={width - right} y1={y(v)} y2={y(v)} />
          <text class="tick" x={left - 8} y={y(v) + 4} text-anchor="end">
            {short(v)}
          </text>
        </g>
      ))}
    </g>
  );
}

/** The axis of time: as many labels as have room. */
function Days({ bars, range, x, band, width, low }: Part & { range: Range }) {
  const hourly = range.step < 86_400_000;
  const every = [1, 2, 3, 4, 6, 7, 12, 14, 24, 28].find((n) => n * band >= 58) ?? 28;
  const whole = (b: Bar, i: number) =>
    hourly ? Math.round(b.start / range.step) % every === 0 : (bars.length - 1 - i) % every === 0;
  return (
    <g>
      {bars.map((b, i) => {
        const middle = x(i) + band / 2;
        if (!whole(b, i) || middle < left + 16 || middle > width - right - 14) return null;
        const midnight = hourly && b.start % 86_400_000 === 0;
        return (
          <g key={b.start}>
            <line class="grid" x1={middle} x2={middle} y1={low} y2={low + 5} />
            <text class={midnight ? "tick strong" : "tick"} x={middle} y={low + 19} text-anchor="middle">
              {utc(b.start, hourly && !midnight ? "clock" : "day")}
            </text>
          </g>
        );
      })}
      <text class="tick" x={left - 8} y={low + 19} text-anchor="end">
        UTC
      </text>
    </g>
  );
}

function Tip({ bar, range, x, width }: { bar: Bar; range: Range; x: number; width: number }) {
  const room = 212;
  return (
    <div class="tip" style={{ left: `${Math.min(width - room, Math.max(0, x > width / 2 ? x - room - 12 : x + 12))}px` }}>
      <b>{title(bar, range)}</b>
      <dl>
        <dt>Flights</dt>
        <dd>{count(bar.flights)}</dd>
        <dt class="key average">Average delay</dt>
        <dd>{minutes(bar.average)}</dd>
        <dt class="key p95">95th percentile</dt>
        <dd>{minutes(bar.p95)}</dd>
      </dl>
      <span class="note">{bar.final ? "Final" : "Open: may still change"}</span>
    </div>
  );
}

function title(bar: Bar, range: Range): string {
  if (range.step >= 86_400_000) return utc(bar.start, "date");
  return `${utc(bar.start, "moment")}–${utc(bar.end, "clock")} UTC`;
}

function describe(bar: Bar): string {
  const state = bar.final ? "final" : "may still change";
  return `${count(bar.flights)} flights, average delay ${minutes(bar.average)}, 95th percentile ${minutes(bar.p95)}, ${state}`;
}

function scale(from: number, to: number, low: number, high: number) {
  return (v: number) => low + ((v - from) / (to - from)) * (high - low);
}

/**
 * Lines through neighbours that have a value, dots for those alone, and bridges
 * over what lies between.
 */
function path(points: (readonly [number, number | null])[], y: (v: number) => number) {
  let lines = "";
  let lone = "";
  let bridges = "";
  let run: string[] = [];
  let last = "";
  const end = () => {
    if (run.length === 1) lone += `M${run[0]}h.01`;
    else if (run.length > 1) lines += `M${run.join("L")}`;
    last = run.at(-1) ?? last;
    run = [];
  };
  for (const [x, value] of points) {
    if (value === null) {
      end();
      continue;
    }
    const spot = `${x.toFixed(1)} ${y(value).toFixed(1)}`;
    if (run.length === 0 && last) bridges += `M${last}L${spot}`;
    run.push(spot);
  }
  end();
  return { lines, points: lone, bridges };
}

function useSize() {
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 600, height: 340 });
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      const { width, height } = entry!.contentRect;
      setSize({ width: Math.max(240, Math.floor(width)), height: Math.max(240, Math.floor(height)) });
    });
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return [box, size.width, size.height] as const;
}
