// The operations of the dashboard and the shape of their answers.

export interface Freshness {
  asOf: string | number | null;
  lag: number;
  standby: boolean;
  partial: boolean;
  missing: { partition: number; reason: string }[];
}

export interface Airport {
  name: string;
  city: string | null;
  state: string | null;
}

export interface Totals {
  origin: string;
  flights: number;
  delayed: number;
  delayMinutes: number;
  averageDelay: number | null;
  delayedShare: number | null;
  worstDelay: number | null;
  lastDeparture: string | number | null;
  airport: Airport | null;
  freshness: Freshness;
}

export type Ranked = Omit<Totals, "delayed" | "worstDelay" | "freshness">;

export interface Ranking {
  rows: Ranked[];
  freshness: Freshness;
}

export interface Hour {
  start: string | number;
  end: string | number;
  final: boolean;
  flights: number;
  averageDelay: number | null;
  p95Delay: number | null;
}

/** The fields of the schema that the operations below begin with. */
export const rootFields = { query: ["airportHours"], subscription: ["topAirports", "airportTotals", "airportHours"] };

const freshness = "freshness { asOf lag standby partial missing { partition reason } }";

export const rankingQuery = `subscription Ranking($first: Int!) {
  topAirports(first: $first) {
    rows { origin flights delayMinutes averageDelay delayedShare lastDeparture airport { name city state } }
    ${freshness}
  }
}`;

export const totalsQuery = `subscription Totals($origin: String!) {
  airportTotals(origin: $origin) {
    origin flights delayed delayMinutes averageDelay delayedShare worstDelay lastDeparture
    airport { name city state }
    ${freshness}
  }
}`;

const hour = "start end final flights averageDelay p95Delay";

/** Follows the series of an airport, counted back from now. */
export const seriesWatch = `subscription Series($origin: String!, $last: Duration!, $step: Duration) {
  airportHours(origin: $origin, last: $last, step: $step, fill: EMPTY) { ${hour} }
}`;

/** Reads the series of an airport between two moments. */
export const seriesQuery = `query Series($origin: String!, $from: DateTime, $to: DateTime, $step: Duration) {
  airportHours(origin: $origin, from: $from, to: $to, step: $step, fill: EMPTY) { ${hour} }
}`;
