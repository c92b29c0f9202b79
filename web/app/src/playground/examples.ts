/** The tabs that the playground opens with. */
export const examples: readonly string[] = [
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
