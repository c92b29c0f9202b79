package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/streamgauge/streamgauge/view"
)

func subtopologies(s *Schema) []string {
	var names []string
	for _, sub := range s.Topology.Subtopologies {
		var feeds []string
		for _, f := range sub.Feeds {
			feeds = append(feeds, f.View.Name)
		}
		names = append(names, strings.TrimSpace(sub.Name+": "+strings.Join(feeds, " ")))
	}
	return names
}

// Which task keeps which view, and what the repartitions are called.
func TestPlaces(t *testing.T) {
	const query = "\ntype Query { own: String @resolver }"
	tests := []struct {
		name, text string
		want       []string
	}{
		{"one repartition for views of one key", `
type A @source(topic: "a") { k: String! n: Long! }
type V @view(from: "A", by: "k") { k: String! n: Long! @count }
type W @view(from: "A", by: ["k"], where: "n > 1") { k: ID! m: Long! @sum(of: "n") }
type X @view(from: "A", by: ["k", "n"]) { n: Long! k: String! c: Long! @count }`,
			[]string{"a:", "a-by-k: V W", "a-by-k-n: X"}},
		{"the producer's key needs none", `
type A @source(topic: "a", key: "k", keyFormat: LONG, partitioner: CRC32) { k: Long! n: Long! }
type V @view(from: "A", by: "k") { k: Long! n: Long! @count }
type W @view(from: "A", by: "k") { k: Long! @expr(of: "k + 0") n: Long! @count }`,
			[]string{"a: V", "a-by-k: W"}},
		{"the source type's name where several read a topic", `
type OrderPlaced @source(topic: "a") { k: String! }
type OrderLine @source(topic: "a") { k: String! }
type V @view(from: "OrderPlaced", by: "k") { k: String! n: Long! @count }
type W @view(from: "OrderLine", by: "k") { k: String! n: Long! @count }`,
			[]string{"a:", "a-order-placed-by-k: V", "a-order-line-by-k: W"}},
		{"computed keys", `
type A @source(topic: "a") { k: String! at: DateTime! }
type V @view(from: "A", by: "low") { low: String! @expr(of: "lower(k)") n: Long! @count }
type W @view(from: "A", by: "at") { at: DateTime! n: Long! @count }`,
			[]string{"a:", "a-by-low: V", "a-by-at: W"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := load(t, test.text+query)
			if got := subtopologies(s); !slices.Equal(got, test.want) {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
}

// The forms of keys, the fields carried, and the nulls dropped.
func TestRepartitions(t *testing.T) {
	s := load(t, `
type A @source(topic: "a", time: "at") { at: DateTime! s: String n: Int! l: Long b: Boolean d: Duration unused: String x: Float y: Float z: Float }
type Query { own: String @resolver }
type V1 @view(from: "A", by: "s") { s: String! m: Float @max(of: "x") }
type V2 @view(from: "A", by: "s", where: "z > 1") { s: String m: Long! @count(where: "y > 0") }
type V3 @view(from: "A", by: "n") { n: Int! c: Long! @count }
type V4 @view(from: "A", by: "l") { l: Long! c: Long! @count }
type V5 @view(from: "A", by: "b") { b: Boolean c: Long! @count }
type V6 @view(from: "A", by: "d") { d: Duration! c: Long! @count }
type V7 @view(from: "A", by: ["n", "s"]) { n: Int! s: String c: Long! @count }
`)
	tests := []struct {
		name     string
		format   view.KeyFormat
		required []bool
		carry    string
	}{
		{"a-by-s", view.TextKey, []bool{false}, "at, s, x, y, z"},
		{"a-by-n", view.IntKey, []bool{true}, "at, n"},
		{"a-by-l", view.LongKey, []bool{true}, "at, l"},
		{"a-by-b", view.TupleKey, []bool{false}, "at, b"},
		{"a-by-d", view.LongKey, []bool{true}, "at, d"},
		{"a-by-n-s", view.TupleKey, []bool{true, false}, "at, s, n"},
	}
	for _, test := range tests {
		r := repartition(t, s, test.name)
		if carry := fieldNames(r.Source, r.Carry); r.Format != test.format || !slices.Equal(r.Required, test.required) || carry != test.carry {
			t.Errorf("%s: %s %v %s; want %s %v %s", test.name, r.Format, r.Required, carry, test.format, test.required, test.carry)
		}
	}
	v := s.Topology.View("V7")
	if v.Subtopology != "a-by-n-s" || v.Topic != "" || v.KeyFormat != view.TupleKey || v.Partitioner != view.Murmur2 {
		t.Errorf("V7 is placed at %q %q %s %s", v.Subtopology, v.Topic, v.KeyFormat, v.Partitioner)
	}
	if keys := fmt.Sprint(v.KeyTypes()); keys != "[Int String]" {
		t.Errorf("keys of V7: %s", keys)
	}
	if got := s.Topology.ByStore("v7"); got != v {
		t.Errorf("store v7 is %v", got)
	}
}

// Fingerprints follow meaning: not the order of types, comments, or names of
// others; but what is aggregated, how, and where it comes from.
func TestFingerprints(t *testing.T) {
	const (
		source = `type A @source(topic: "a", time: "at") { at: DateTime! k: String! n: Long! m: Long! }` + "\n"
		v      = `type V @view(from: "A", by: "k") @window(size: "1h", retain: "7d") { k: String! total: Long! @sum(of: "n", where: "n > 1") count: Long! @count }` + "\n"
		w      = `type W @view(from: "A", by: "k") { k: String! p: Float @quantile(of: "n", q: 0.5) }` + "\n"
		query  = `type Query { own: String @resolver }` + "\n"
	)
	base := load(t, source+v+w+query)
	for name, text := range map[string]string{
		"order":         query + w + "# a comment\n" + v + source,
		"description":   strings.Replace(source+v+w+query, "total:", `"the total" total:`, 1),
		"spelling":      strings.Replace(source+v+w+query, `"n > 1"`, `" n > 1 "`, 1),
		"one more read": source + v + w + "type Query { v(k: String!): [V!] @windows }\n",
	} {
		if got := load(t, text); got.Topology.Fingerprint != base.Topology.Fingerprint {
			t.Errorf("%s: the fingerprint changed", name)
		}
	}
	total := func(s *Schema) string {
		c := s.Topology.View("V").Columns
		return c[s.Topology.View("V").Column("total")].Fingerprint
	}
	for name, change := range map[string][2]string{
		"of":           {`of: "n", where`, `of: "m", where`},
		"where":        {`n > 1`, `n > 2`},
		"window":       {`size: "1h"`, `size: "2h"`},
		"view's where": {`type V @view(from: "A", by: "k")`, `type V @view(from: "A", by: "k", where: "n > 0")`},
		"path":         {`n: Long!`, `n: Long! @field(path: "x.n")`},
		"topic":        {`topic: "a"`, `topic: "b"`},
		"event time":   {`, time: "at"`, ``},
		"aggregate":    {`total: Long! @sum(of: "n", where`, `total: Long @max(of: "n", where`},
	} {
		text := strings.Replace(source+v+w+query, change[0], change[1], 1)
		if text == source+v+w+query {
			t.Fatalf("%s: nothing replaced", name)
		}
		got := load(t, text)
		if total(got) == total(base) || got.Topology.Fingerprint == base.Topology.Fingerprint {
			t.Errorf("%s: the fingerprint stayed", name)
		}
	}
	more := load(t, source+strings.Replace(v, "count:", "least: Long @min(of: \"n\") count:", 1)+w+query)
	if total(more) != total(base) {
		t.Error("a new column changed another's fingerprint")
	}
	if more.Topology.Fingerprint == base.Topology.Fingerprint {
		t.Error("a new column left the topology's fingerprint")
	}
}

func TestKebab(t *testing.T) {
	for name, want := range map[string]string{
		"AirportTotals": "airport-totals", "HTTPStats": "http-stats", "P95Delay": "p95-delay", "a": "a",
		"Snake_Case": "snake-case", "ABC": "abc", "X1Y": "x1-y", "__": "",
	} {
		if got := kebab(name); got != want {
			t.Errorf("kebab(%s) = %s, want %s", name, got, want)
		}
	}
}
