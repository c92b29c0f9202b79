/** What the server tells a page about itself. */
export interface Page {
  app: string;
  title: string;
  auth: "dev" | "jwt" | "off";
  /** Only with auth "dev". */
  token?: string;
  demo: boolean;
  instance: string;
  /** A query to begin with; empty: none. */
  query?: string;
}

export interface Progress {
  Done: number;
  Total: number;
  /** Records a second. */
  Rate: number;
  /** Nanoseconds. */
  ETA: number;
}

export interface Task {
  task: string;
  stores: string[] | null;
  state: string;
  role: string;
  error?: string;
  seq: number;
  lag: number;
  /** Milliseconds since the epoch, as streamTime; absent before there is one. */
  asOf?: number | null;
  streamTime?: number | null;
  /** The source partition whose time is the stream's. */
  heldBy?: number | null;
  /** While restoring. */
  progress?: Progress | null;
  /** Rows that are not in the copy's file yet. */
  overlayBytes?: number;
  /** What is wrong while it works on. */
  note?: string;
}

export interface Table {
  table: string;
  state: string;
  rows: number;
  lag: number;
}

export interface Instance {
  id: string;
  http: string;
  self: boolean;
  running: boolean;
  ready: boolean;
  reason: string;
  rack?: string;
  /** Without a worker. */
  gateway?: boolean;
  /** It does not answer; its tasks are what the routes say. */
  silent?: boolean;
  /** Whether it has heard of the group within a session timeout. */
  live?: boolean;
  /** Of the group, or of the routes. */
  generation?: number;
  tasks: Task[] | null;
  tables: Table[] | null;
  /** States of the circuit breakers, by instance. */
  breakers?: Record<string, string>;
}

export interface Instances {
  demo: boolean;
  instances: Instance[];
}

/** An answer of the server that says no. */
export class Refusal extends Error {}

/** Fetches JSON of this page's own server; a refusal throws a Refusal. */
export async function get<T>(path: string, token = ""): Promise<T> {
  const answer = await fetch(path, { headers: bearer(token), signal: AbortSignal.timeout(4_000), cache: "no-store" });
  if (!answer.ok) throw new Refusal(await reasonOf(answer));
  return (await answer.json()) as T;
}

/** Sends an order to this page's own server. */
export async function post(path: string, token: string): Promise<void> {
  const answer = await fetch(path, { method: "POST", headers: bearer(token), signal: AbortSignal.timeout(20_000) });
  if (!answer.ok) throw new Refusal(await reasonOf(answer));
}

/** The header that carries a token; none: no header. */
export function bearer(token: string): Record<string, string> {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

async function reasonOf(answer: Response): Promise<string> {
  const text = (await answer.text()).trim();
  try {
    const body = JSON.parse(text) as { errors?: { message: string }[]; error?: string };
    return body.errors?.[0]?.message ?? body.error ?? `HTTP ${answer.status}`;
  } catch {
    return text && text.length < 200 && !text.startsWith("<") ? text : `HTTP ${answer.status}`;
  }
}
