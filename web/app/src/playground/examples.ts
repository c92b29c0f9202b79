import type { Page } from "../shared/page";
import { serves, type Fields } from "../shared/schema";

/** The queries of the tabs that the playground opens with. */
export function examples(page: Page, fields: Fields | null): readonly string[] {
  if (serves(page, fields, rootFields)) return flights;
  return [page.query || beginning(fields)];
}

/** A query that any schema answers, with the names of what else can be asked. */
function beginning(fields: Fields | null): string {
  const list = (title: string, names: readonly string[]) => (names.length > 0 ? `\n# ${title}:\n${names.map((n) => `#   ${n}`).join("\n")}\n` : "");
  return `# Ctrl-Space shows what can be written.
{
  __typename
}
${list("Queries", fields?.query ?? [])}${list("Subscriptions", fields?.subscription ?? [])}`;
}

/** The fields that the queries below begin with. */
const rootFields = { query: ["topAirports", "airportTotals", "airportTotalsPage"], subscription: ["topAirports"] };

const flights: readonly string[] = [
  `# The airports with the most minutes
# of delay, and how fresh that is.
query Ranking {
  topAirports(first: 5) {
    rows {
      origin
      flights
      delayMinutes
      delayedShare
      airport { name city }
    }
    freshness { asOf lag partial }
  }
}
`,
  `# One airport: its totals, and its last days.
query OneAirport {
  airportTotals(origin: "DFW") {
    origin
    flights
    averageDelay
    worstDelay
    lastDeparture
    airport { name city state }
    hours(last: "10d", step: "1d", fill: EMPTY) {
      start
      final
      flights
      averageDelay
      p95Delay
    }
  }
}
`,
  `# Goes on until it is stopped:
# a new answer after each change.
subscription Watch {
  topAirports(first: 3) {
    rows { origin flights delayMinutes }
    freshness { asOf lag }
  }
}
`,
  `# All airports in the order of their codes,
# a page at a time: endCursor goes into the
# variable after.
query Pages($after: String) {
  airportTotalsPage(first: 20, after: $after) {
    edges { node { origin flights delayedShare } }
    pageInfo { hasNextPage endCursor }
  }
}
`,
];
