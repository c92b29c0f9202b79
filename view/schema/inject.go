package schema

import (
	"fmt"
	"slices"
	"strings"
)

// injectedName is the file name that positions in injected definitions carry.
const injectedName = "streamgauge.graphqls"

const injectedTypes = `"A whole number of 64 bits, a JSON number."
scalar Long

"An exact decimal number, a JSON string."
scalar Decimal

"A moment: RFC 3339, or milliseconds since the epoch."
scalar DateTime

"A span of time, such as \"90s\", \"1h30m\" or \"7d\"."
scalar Duration

"What a series puts where no record fell."
enum Fill {
  "Nothing."
  NONE
  "The empty aggregate: 0 or null."
  EMPTY
  "Null."
  NULL
  "The row before."
  PREVIOUS
}

"Which copies of the state may answer."
enum ReadFrom {
  "Any that is fresh enough."
  ANY
  "The active ones alone."
  ACTIVE
}

"How fresh the answers to the whole operation must be; last word over the server's defaults."
directive @read(
  "How long ago an answer may have held everything in its source."
  maxAge: Duration
  from: ReadFrom
  "A token: nothing older than what it has seen."
  atLeast: String
  "An error instead of an answer without some partitions."
  complete: Boolean
) on QUERY | SUBSCRIPTION

"How an answer stands."
type Freshness {
  "The last moment at which everything known to be in the source was held; null until there was one."
  asOf: DateTime
  "Records in the source that are not in the answer yet."
  lag: Long!
  "Whether a copy other than the active one answered."
  standby: Boolean!
  "Whether partitions are missing."
  partial: Boolean!
  missing: [MissingPartition!]!
  "What the answer has seen; opaque."
  token: String!
}

"A partition that did not answer."
type MissingPartition {
  partition: Int!
  reason: String!
}

"Where a page stands among the others."
type PageInfo {
  hasNextPage: Boolean!
  hasPreviousPage: Boolean!
  startCursor: String
  endCursor: String
}

"How a record's key or value is written."
enum RecordFormat {
  STRING
  INT
  LONG
  JSON
}

"By which rule a producer picks a key's partition."
enum Partitioner {
  MURMUR2
  CRC32
  FNV1A
}
`

const injectedConnection = `
"A page of %[1]s."
type %[1]sConnection {
  edges: [%[1]sEdge!]!
  pageInfo: PageInfo!
  freshness: Freshness!
}

"A row of a page and its cursor."
type %[1]sEdge {
  node: %[1]s!
  cursor: String!
}
`

// injectedNames are the types that every schema is given.
var injectedNames = []string{"Long", "Decimal", "DateTime", "Duration", "Fill", "ReadFrom", "Freshness", "MissingPartition", "PageInfo", "RecordFormat", "Partitioner"}

// InjectedSDL is what every schema is given, as GraphQL text: directives,
// scalars and types, and a Connection for each of the row types named.
func InjectedSDL(connections ...string) string {
	var b strings.Builder
	b.WriteString(injectedTypes)
	for i := range language {
		b.WriteByte('\n')
		b.WriteString(language[i].sdl())
	}
	for _, name := range slices.Sorted(slices.Values(connections)) {
		fmt.Fprintf(&b, injectedConnection, name)
	}
	return b.String()
}
