package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/streamgauge/streamgauge/graph"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// countingViews answers every lookup with a row and counts what it is asked.
type countingViews struct {
	mu      sync.Mutex // guards the following
	calls   int
	queries int
	keys    int
}

func (v *countingViews) Read(_ context.Context, queries []*read.Query) ([]*read.Result, []error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls++
	v.queries += len(queries)
	results := make([]*read.Result, len(queries))
	for i, q := range queries {
		v.keys += len(q.Keys)
		r := &read.Result{Parts: []read.Part{{}}}
		for _, k := range q.Keys {
			values := make([]view.Value, 16)
			values[0], values[1] = k[0], k[0]
			if q.Op == read.Fetch {
				r.Series = append(r.Series, []*read.Row{{Values: values}})
			} else {
				r.Rows = append(r.Rows, &read.Row{Values: values})
			}
		}
		results[i] = r
	}
	return results, make([]error, len(queries))
}

func (v *countingViews) Watch(context.Context, *read.Query, time.Duration) (<-chan read.Update, error) {
	return nil, context.Canceled
}

// The reads of one operation travel together: its root fields in one call, each
// nested field of a list in one, equal keys once.
func TestReadsOfAnOperationTravelTogether(t *testing.T) {
	for _, c := range []struct {
		name, query          string
		calls, queries, keys int
	}{
		{"one field", `{ airportTotals(origin: "A") { origin } }`, 1, 1, 1},
		{"aliases", `{ a: airportTotals(origin: "A") { origin } b: airportTotals(origin: "B") { origin } c: airportTotalsOf(origins: ["C", "D"]) { origin } }`, 1, 3, 4},
		{"skipped field", `{ a: airportTotals(origin: "A") { origin } b: airportTotals(origin: "B") @skip(if: true) { origin } __typename }`, 1, 1, 1},
		{"nested, equal keys once", `{ airportTotalsOf(origins: ["A", "B", "A"]) { airport { iata } } }`, 2, 2, 3 + 2},
		{"nested windows", `{ airportTotalsOf(origins: ["A", "B"]) { hours(last: "1h") { start } } }`, 2, 2, 2 + 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &countingViews{}
			n := &node{t: t, exec: executor.New(graph.New(v))}
			if got := n.query(c.query); len(got) == 0 || got[0] != '{' {
				t.Fatal(got)
			}
			if v.calls != c.calls || v.queries != c.queries || v.keys != c.keys {
				t.Errorf("%d calls with %d queries and %d keys, want %d, %d, %d", v.calls, v.queries, v.keys, c.calls, c.queries, c.keys)
			}
		})
	}
}
