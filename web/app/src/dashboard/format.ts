// How numbers and times are written. Times are in UTC throughout.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

const missing = "–";

export const count = (n: number | null | undefined) => (n == null ? missing : minus(whole.format(n)));
export const short = (n: number) => minus(Math.abs(n) < 10_000 ? whole.format(n) : compact.format(n));
export const minutes = (n: number | null | undefined) => (n == null ? missing : `${minus(tenth.format(n))} min`);
export const percent = (n: number | null | undefined) => (n == null ? missing : `${tenth.format(n * 100)} %`);

function minus(text: string): string {
  return text.replace("-", "−");
}

/** Milliseconds since the epoch of a DateTime; NaN if there is none. */
export function time(value: string | number | null | undefined): number {
  if (value == null || value === 0) return NaN;
  return typeof value === "number" ? value : Date.parse(value);
}

const formats = {
  clock: { hour: "2-digit", minute: "2-digit" },
  day: { day: "numeric", month: "short" },
  date: { weekday: "short", day: "numeric", month: "short", year: "numeric" },
  year: { day: "numeric", month: "short", year: "numeric" },
  moment: { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>;

const formatters = Object.fromEntries(
  Object.entries(formats).map(([name, options]) => [
    name,
    new Intl.DateTimeFormat("en-GB", { ...options, timeZone: "UTC", hourCycle: "h23" }),
  ]),
) as Record<keyof typeof formats, Intl.DateTimeFormat>;

export function utc(at: number, form: keyof typeof formats): string {
  return Number.isFinite(at) ? formatters[form].format(at) : missing;
}

/** A day as "30 Nov", with its year when that is not plain. */
export function dayOf(at: number): string {
  return utc(at, Math.abs(Date.now() - at) > 300 * 86_400_000 ? "year" : "day");
}

/** A span in the largest unit that fits: "3 s", "12 min", "5 h", "9 days". */
export function span(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1_000));
  if (s < 90) return `${s} s`;
  if (s < 90 * 60) return `${Math.round(s / 60)} min`;
  if (s < 36 * 3_600) return `${Math.round(s / 3_600)} h`;
  const days = Math.round(s / 86_400);
  return days < 730 ? `${days} days` : `${Math.round(days / 365)} years`;
}

/** A number of bytes: "900 B", "12 KiB", "3.4 MiB". */
export function bytes(n: number): string {
  const units = ["B", "KiB", "MiB", "GiB"];
  let at = 0;
  for (; n >= 1_024 && at < units.length - 1; at++) n /= 1_024;
  return `${at > 0 && n < 10 ? tenth.format(n) : whole.format(n)} ${units[at]}`;
}
