import type { Fetcher } from "@graphiql/toolkit";
import { Client, socketURL, type GraphQLError, type Request, type Result } from "../shared/client";

type Headers = Record<string, string>;

/**
 * Queries go by POST, subscriptions by a websocket of their own. The schema is
 * asked for before there is an editor of headers: it gets those of the page.
 */
export const fetcherWith = (own: Headers): Fetcher => (request, options) => {
  const headers = (options?.headers ?? (request.operationName === "IntrospectionQuery" ? own : {})) as Headers;
  const definition = options?.documentAST?.definitions.find(
    (d) => d.kind === "OperationDefinition" && (!request.operationName || d.name?.value === request.operationName),
  );
  const watched = definition?.kind === "OperationDefinition" && definition.operation === "subscription";
  return watched ? watch(request, headers) : ask(request, headers);
};

async function ask(request: Request, headers: Headers) {
  const answer = await fetch("/graphql", {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/graphql-response+json, application/json", ...headers },
    body: JSON.stringify(request),
  });
  return answer.json();
}

/** The events of a subscription. Ending the iteration closes the socket. */
async function* watch(request: Request, headers: Headers): AsyncGenerator<any> {
  const events: Result[] = [];
  let wake = () => {};
  let ended = false;
  let failed: GraphQLError[] | undefined;
  const told = (change: () => void) => {
    change();
    wake();
  };
  const authorization = Object.entries(headers).find(([name]) => name.toLowerCase() === "authorization")?.[1];
  const client = new Client({
    url: socketURL(),
    payload: () => Promise.resolve(authorization ? { Authorization: authorization } : {}),
    onStatus: (status) => {
      if (status.state === "waiting") told(() => (failed = [{ message: `The connection was lost. ${status.reason}`.trim() }]));
    },
  });
  client.subscribe(request, {
    next: (result) => told(() => events.push(result)),
    error: (errors) => told(() => (failed = errors)),
    complete: () => told(() => (ended = true)),
  });
  try {
    for (;;) {
      while (events.length > 0) yield events.shift();
      if (failed) {
        yield { errors: failed };
        return;
      }
      if (ended) return;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    client.close();
  }
}
