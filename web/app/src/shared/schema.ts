// What the application can be asked, by its schema: the pages are for any.

import { bearer, type Page } from "./page";

/** The names of the fields that operations begin with. */
export interface Fields {
  query: readonly string[];
  subscription: readonly string[];
}

interface Root {
  fields: { name: string }[];
}

interface Answer {
  data?: { __schema?: { queryType: Root; subscriptionType: Root | null } | null } | null;
}

const introspection = "{ __schema { queryType { fields { name } } subscriptionType { fields { name } } } }";

/**
 * Asks for the schema's fields; null: they are not told to the bearer of this
 * token, or to nobody. It throws if the server does not answer.
 */
export async function fieldsOf(page: Pick<Page, "auth">, token: string): Promise<Fields | null> {
  if (page.auth !== "off" && !token) return null;
  const answer = await fetch("/graphql", {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json", ...bearer(token) },
    body: JSON.stringify({ query: introspection }),
    signal: AbortSignal.timeout(4_000),
  });
  if (answer.status === 429 || answer.status >= 500) throw new Error(`HTTP ${answer.status}`);
  if (!answer.ok) return null;
  const schema = ((await answer.json()) as Answer).data?.__schema;
  return schema ? { query: names(schema.queryType), subscription: names(schema.subscriptionType) } : null;
}

const names = (root: Root | null) => root?.fields.map((f) => f.name) ?? [];

/** Whether the schema has all the needed fields; of one not told the name of the application says it. */
export function serves(page: Pick<Page, "app">, fields: Fields | null, needed: Partial<Fields>): boolean {
  if (!fields) return page.app === "flights";
  const { query = [], subscription = [] } = needed;
  return query.every((f) => fields.query.includes(f)) && subscription.every((f) => fields.subscription.includes(f));
}
