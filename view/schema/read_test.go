package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/streamgauge/streamgauge/view"
)

const readings = `
type Reading @source(topic: "readings", time: "ts") { site: String! sensor: String! ts: DateTime! value: Float! }
type Sensor @table(topic: "sensors", key: "sensor", global: true) {
  sensor: String!
  unit: String
  latest(last: Duration): [FiveMinutes!] @windows(key: ["unit", "sensor"])
}
type Now @view(from: "Reading", by: ["site", "sensor"]) {
  site: String!
  sensor: String!
  value: Float @last
  readings: Long! @count
  about: Sensor @lookup(key: "sensor")
  same: Sensor @lookup
  again: Now @lookup
  mine(x: Int): [String!] @resolver
  freshness: Freshness!
}
type FiveMinutes @view(from: "Reading", by: ["site", "sensor"]) @window(size: "5m", retain: "7d") {
  site: String!
  sensor: String!
  peak: Float @max(of: "value")
}
input SensorKey { sensor: String! site: String! }
type Answer { rows: [Now]! freshness: Freshness! }
type NowConnection { edges: [NowEdge!]! pageInfo: PageInfo! freshness: Freshness! }
type NowEdge { node: Now! cursor: String! }
type Query {
  one(sensor: String!, site: String!): Now @lookup
  many(keys: [SensorKey!]!): [Now] @lookup
  sensors(sensor: [String!]!): [Sensor] @lookup
  answer(keys: [SensorKey!]!): Answer @lookup
  site(site: String!, first: Int! = 50, after: String, prefix: String, reverse: Boolean): NowConnection @range
  all: [Now!] @range
  tables: SensorConnection @range
  count(site: String!): Long @size(of: "Now")
  hot: [Now!] @top(by: "value", where: "readings > 10 and value != nil")
  hot2(first: Int): [Now!] @top(by: "value", where: " readings > 10 and value != nil ")
  peaks(last: Duration! = "1h", first: Int): [FiveMinutes!] @top(by: "peak")
  own(anything: [Int!]): [Now!]! @resolver
}
type Mutation { reset(site: String!): Boolean! @resolver }
type Subscription {
  one(site: String!, sensor: String!, every: Duration = "1s"): Now @lookup
  hot(first: Int! = 10, every: Duration): [Now!] @top(by: "value", where: "readings > 10 and value != nil")
}
`

// Every reading field becomes a Read that says all of what it asks for.
func TestReads(t *testing.T) {
	s := load(t, readings)
	want := strings.TrimSpace(`
Sensor.latest windows FiveMinutes a list: columns [unit sensor] options [last] batch
Now.about lookup Sensor one row: columns [sensor] batch
Now.same lookup Sensor one row: columns [sensor] batch
Now.again lookup Now one row: columns [site sensor] batch
Query.one lookup Now one row: args [site=site sensor=sensor]
Query.many lookup Now a list: list keys of [site sensor]
Query.sensors lookup Sensor a list: list sensor
Query.answer lookup Now rows and freshness: list keys of [site sensor]
Query.site range Now a connection: args [site=site] options [first after prefix reverse]
Query.all range Now a list:
Query.tables range Sensor a connection:
Query.count size Now a number: args [site=site]
Query.hot top Now a list: ranking value where readings > 10 and value != nil
Query.hot2 top Now a list: options [first] ranking value where readings > 10 and value != nil
Query.peaks top FiveMinutes a list: options [last first] ranking peak
Subscription.one lookup Now one row: args [site=site sensor=sensor] options [every]
Subscription.hot top Now a list: options [first every] ranking value where readings > 10 and value != nil`)
	var lines []string
	for _, r := range s.Topology.Reads {
		lines = append(lines, readLine(r))
	}
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n := len(s.Topology.View("Now").Rankings); n != 1 {
		t.Errorf("%d rankings of Now, want one for the three fields", n)
	}
	if got := strings.Join(s.Connections(), " "); got != "Sensor" {
		t.Errorf("connections injected for %s; want Sensor alone, the other is the file's", got)
	}
}

func readLine(r *Read) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.%s %s %s %s:", r.Parent, r.Field, r.Op, r.View.Name, r.Shape)
	if len(r.Args) > 0 {
		var args []string
		for _, a := range r.Args {
			args = append(args, a.Name+"="+r.View.Columns[a.Column].Name)
		}
		fmt.Fprintf(&b, " args %v", args)
	}
	if r.ListArg != "" {
		fmt.Fprintf(&b, " list %s", r.ListArg)
	}
	if r.ListOf != nil {
		fmt.Fprintf(&b, " of %v", r.ListOf)
	}
	if r.Columns != nil {
		fmt.Fprintf(&b, " columns %v", r.Columns)
	}
	if r.Options != nil {
		fmt.Fprintf(&b, " options %v", r.Options)
	}
	if r.Op == Top {
		fmt.Fprintf(&b, " ranking %s", r.Ranking())
	}
	if r.Batch {
		b.WriteString(" batch")
	}
	return b.String()
}

// A ranking's condition sees the finished row, @expr columns included; null is
// no match.
func TestRankingCondition(t *testing.T) {
	s, err := LoadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	v := s.Topology.View("AirportTotals")
	row := func(flights, delayed int64) []view.Value {
		cells := make([]view.Cell, len(v.Columns))
		cells[v.Column("flights")].N = flights
		cells[v.Column("delayed")].N = delayed
		values, err := v.Finish(nil, []view.Value{view.OfString("DFW")}, cells, view.Bounds{})
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	full, empty := row(100, 25), row(0, 0)
	if got := full[v.Column("delayedShare")]; got.Float() != 0.25 {
		t.Errorf("delayedShare of 25 in 100 is %s", got)
	}
	if got := empty[v.Column("delayedShare")]; !got.IsNull() {
		t.Errorf("delayedShare of none is %s", got)
	}
	where := v.Rankings[1].Where
	for _, test := range []struct {
		row  []view.Value
		want bool
	}{{full, true}, {empty, false}} {
		if got, err := where(test.row); err != nil || got.Bool() != test.want {
			t.Errorf("flights >= 50 of %s: %s, %v", test.row[v.Column("flights")], got, err)
		}
	}
}

// A table's key comes from the record's key, its other columns from the value.
func TestTable(t *testing.T) {
	s := load(t, `
type T @table(topic: "t", key: "id", keyFormat: LONG, global: true, partitioner: FNV1A) @store(name: "tees", scope: "t:all") {
  me: ID! @id
  name: String! @field(path: "about.name")
  at: DateTime @field(path: "$timestamp")
  id: Long!
  twice: Float @expr(of: "id * 2.0")
}
type Query { t(id: Long!): T @lookup }`)
	table := s.Topology.Tables[0]
	var fields []string
	for i, f := range table.Fields {
		fields = append(fields, fmt.Sprintf("%s=%s", table.View.Columns[table.Column[i]].Name, pathText(f.Path)))
	}
	if got := strings.Join(fields, " "); got != "name=about.name at=$timestamp id=$key" {
		t.Errorf("fields %s", got)
	}
	v := table.View
	if v.Store != "tees" || v.Scope != "t:all" || v.KeyFormat != view.LongKey || v.Partitioner != view.FNV1A || !v.Global || !v.Table || v.Subtopology != "" {
		t.Errorf("table %+v", v)
	}
	if len(v.Keys) != 1 || v.Columns[v.Keys[0]].Name != "id" || v.Columns[v.Keys[0]].Role != view.KeyRole {
		t.Errorf("keys %v", v.Keys)
	}
	values := make([]view.Value, len(v.Columns))
	if err := v.FinishFields(values, []view.Value{view.OfInt(21)}); err != nil {
		t.Fatal(err)
	}
	if got := values[v.Column("twice")]; got.Float() != 42 {
		t.Errorf("twice 21 is %s", got)
	}
}
