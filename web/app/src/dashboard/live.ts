// Hooks that keep a panel's data live: it is asked for again after an error,
// and the last of it stays until something newer comes.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Client, GraphQLError, Request, Result } from "../shared/client";

/** A panel's data. at is when it came, in milliseconds since the epoch. */
export interface Live<T> {
  data: T | undefined;
  error: GraphQLError | undefined;
  /** Whether the error left no data beside it: what is shown is older. */
  failed: boolean;
  at: number;
  /** The subject that data and error are about. */
  subject: string;
}

const nothing = { data: undefined, error: undefined, failed: false, at: 0 };

const retryFirst = 1_000;
const retryMost = 15_000;

/** Codes that asking again does not cure. */
const lasting = new Set(["FORBIDDEN", "BAD_USER_INPUT", "GRAPHQL_VALIDATION_FAILED", "GRAPHQL_PARSE_FAILED", "LIMIT_EXCEEDED"]);

/**
 * Follows an operation. every makes a query of it that is asked again after so
 * many milliseconds; 0 is for a subscription. While subject stays the same, a
 * change of the request keeps the data.
 */
export function useLive<T>(client: Client, subject: string, request: Request | null, every = 0): Live<T> {
  const [live, setLive] = useState<Live<T>>({ ...nothing, subject: "" });
  const key = request && JSON.stringify(request.variables ?? {});
  useEffect(() => {
    if (!request) return;
    return follow<T>(client, request, every, (change) =>
      setLive((was) => {
        const base = was.subject === subject ? was : { ...nothing, subject };
        return { ...base, ...change };
      }),
    );
  }, [client, subject, key, every]);
  return live.subject === subject ? live : { ...nothing, subject };
}

function follow<T>(client: Client, request: Request, every: number, set: (change: Partial<Live<T>>) => void): () => void {
  let stop = () => {};
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let failed = false;

  const again = (delay: number) => {
    clearTimeout(timer);
    timer = setTimeout(start, delay);
  };
  const fail = (errors: GraphQLError[]) => {
    failed = true;
    const error = errors[0] ?? { message: "The server gave no reason." };
    set({ error, failed: true });
    if (lasting.has(error.extensions?.code ?? "")) return;
    const backoff = Math.min(retryMost, retryFirst * 2 ** failures++);
    again(Math.max(error.extensions?.retryAfterMs ?? 0, backoff));
  };
  const next = (result: Result<Record<string, T>>) => {
    const data = Object.values(result.data ?? {})[0];
    // With data beside it, an error is about a part: the rest is shown.
    if (result.errors?.length && data == null) return fail(result.errors);
    failures = 0;
    set({ data, error: result.errors?.[0], failed: false, at: Date.now() });
  };
  const start = () => {
    stop();
    failed = false;
    stop = client.subscribe<Record<string, T>>(request, {
      next,
      error: fail,
      complete: () => {
        if (!failed) again(every || retryFirst);
      },
    });
  };
  start();
  return () => {
    clearTimeout(timer);
    stop();
  };
}

/** The time now, renewed every so many milliseconds. */
export function useNow(every = 1_000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

/** The value before the last change of it; undefined until it changed. */
export function useBefore<T>(value: T): T | undefined {
  const held = useRef<{ now: T; before: T | undefined }>({ now: value, before: undefined });
  if (held.current.now !== value) held.current = { now: value, before: held.current.now };
  return held.current.before;
}
