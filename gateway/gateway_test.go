package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

func sortRows(rows []*read.Row, op read.Op) {
	slices.SortFunc(rows, func(a, b *read.Row) int {
		if c := view.Compare(b.Values[1], a.Values[1]); op == read.Top && c != 0 {
			return c
		}
		return strings.Compare(string(a.Key), string(b.Key))
	})
}

// fill puts keys k0 to k9 where they belong, with n = their number.
func fill(n int32, instances ...*fakeInstance) {
	for i := range 10 {
		key := fmt.Sprintf("k%d", i)
		p := partitionOf(key, n)
		for _, f := range instances {
			if f.rows[p] != nil {
				f.rows[p][key] = int64(i)
			}
		}
	}
}

func one(t *testing.T, g *Gateway, q *read.Query) (*read.Result, error) {
	t.Helper()
	rs, errs := g.Read(t.Context(), []*read.Query{q})
	return rs[0], errs[0]
}

func keysOf(rows []*read.Row) string {
	var out []string
	for _, r := range rows {
		if r == nil {
			out = append(out, "-")
			continue
		}
		out = append(out, r.Values[0].Str())
	}
	return strings.Join(out, " ")
}

func TestReadsOverInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFake("a", 0, 1), newFake("b", 2, 3)
		fill(4, a, b)
		g := newTestGateway(t, newRoutes("a", "a", "b", "b"), a, b)
		for _, c := range []struct {
			name string
			q    *read.Query
			want string
		}{
			{"keys in order, a missing one in its place", getQuery("k3", "nope", "k0", "k3"), "k3 - k0 k3"},
			{"page", &read.Query{Store: "totals", Op: read.Range, First: 4}, "k0 k1 k2 k3"},
			{"top", &read.Query{Store: "totals", Op: read.Top, First: 3, Ranking: "n"}, "k9 k8 k7"},
			{"none asked for", &read.Query{Store: "totals", Op: read.Range, First: 0}, ""},
		} {
			r, err := one(t, g, c.q)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if got := keysOf(r.Rows); got != c.want {
				t.Errorf("%s: got %s, want %s", c.name, got, c.want)
			}
		}
		r, err := one(t, g, &read.Query{Store: "totals", Op: read.Size})
		if err != nil || r.Count != 10 {
			t.Errorf("size %v, %v", r, err)
		}
	})
}

// The keys of one operation travel as one request an instance.
func TestOneCallAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFake("a", 0, 1), newFake("b", 2, 3)
		fill(4, a, b)
		g := newTestGateway(t, newRoutes("a", "a", "b", "b"), a, b)
		queries := []*read.Query{getQuery("k0", "k1", "k2"), getQuery("k3"), getQuery("k4", "k5"), {Store: "totals", Op: read.Top, First: 2, Ranking: "n"}}
		if _, errs := g.Read(t.Context(), queries); errors.Join(errs...) != nil {
			t.Fatal(errs)
		}
		if a.calls != 1 || b.calls != 1 {
			t.Errorf("%d and %d calls, want 1 each", a.calls, b.calls)
		}
	})
}

// A route that is out of date is followed to the new owner within the deadline.
func TestStaleRouteIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFake("a"), newFake("b", 0)
		fill(1, b)
		routes := newRoutes("a")
		g := newTestGateway(t, routes, a, b)
		time.AfterFunc(300*time.Millisecond, func() { routes.set("b") })
		r, err := one(t, g, getQuery("k1"))
		if err != nil || keysOf(r.Rows) != "k1" {
			t.Errorf("got %v, %v", r, err)
		}
	})
}

// Invariant 4: an empty answer means empty.
func TestInvariant4MissingPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newFake("a", 0, 1)
		fill(4, a)
		g := newTestGateway(t, newRoutes("a", "a", "", ""), a)
		var lost, kept string
		for i := range 10 {
			if k := fmt.Sprintf("k%d", i); partitionOf(k, 4) >= 2 {
				lost = k
			} else {
				kept = k
			}
		}
		if _, err := one(t, g, getQuery(kept, lost)); err == nil || read.AsError(err).Code != read.Rebalancing {
			t.Errorf("a key whose partition nobody holds: %v", err)
		}
		if r, err := one(t, g, getQuery(kept)); err != nil || keysOf(r.Rows) != kept {
			t.Errorf("its neighbour: %v, %v", r, err)
		}
		r, err := one(t, g, &read.Query{Store: "totals", Op: read.Range, First: 100})
		if err != nil {
			t.Fatal(err)
		}
		f := read.FreshnessOf(r.Parts)
		if !f.Partial() || len(f.Missing) != 2 || !strings.Contains(f.Missing[0].Reason, "rebalancing") {
			t.Errorf("freshness %+v", f)
		}
		a.mu.Lock()
		a.refuse[0], a.refuse[1] = read.Errorf(read.Stale, ""), read.Errorf(read.Stale, "")
		a.mu.Unlock()
		if _, err := one(t, g, &read.Query{Store: "totals", Op: read.Range, First: 100}); err == nil {
			t.Error("no partition answered, and it is no error")
		}
	})
}

func TestBreakerOpensAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("b", 0)
		fill(1, b)
		b.fail = errors.New("down")
		g := newTestGateway(t, newRoutes("b"), b)
		for range 3 {
			if _, err := one(t, g, getQuery("k1")); err == nil {
				t.Fatal("answered by an instance that is down")
			}
		}
		_, err := one(t, g, getQuery("k1"))
		if c := read.AsError(err).Code; c != read.CircuitOpen && c != read.Unavailable {
			t.Errorf("got %v", err)
		}
		if got := g.Breakers()["b"]; got == "closed" {
			t.Errorf("breaker is %s", got)
		}
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		time.Sleep(2 * time.Second)
		if r, err := one(t, g, getQuery("k1")); err != nil || keysOf(r.Rows) != "k1" {
			t.Errorf("after it came back: %v, %v", r, err)
		}
	})
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newFake("a", 0)
		g := newTestGateway(t, newRoutes("a"), a)
		for _, c := range []struct {
			name string
			q    *read.Query
			want read.Code
		}{
			{"unknown store", &read.Query{Store: "nope"}, read.UnknownStore},
			{"negative first", &read.Query{Store: "totals", Op: read.Range, First: -1}, read.BadInput},
			{"first over the limit", &read.Query{Store: "totals", Op: read.Top, First: 1001, Ranking: "n"}, read.TooLarge},
			{"last with from", &read.Query{Store: "totals", Op: read.Fetch, Time: read.Time{Last: 1, HasFrom: true}}, read.BadInput},
			{"from after to", &read.Query{Store: "totals", Op: read.Fetch, Time: read.Time{HasFrom: true, HasTo: true, From: 2, To: 1}}, read.BadInput},
			{"key of two columns", &read.Query{Store: "totals", Keys: [][]view.Value{{view.Null, view.Null}}}, read.BadInput},
		} {
			if _, err := one(t, g, c.q); err == nil || read.AsError(err).Code != c.want {
				t.Errorf("%s: got %v, want %v", c.name, err, c.want)
			}
		}
		_, errs := g.Read(context.WithValue(t.Context(), forbidden{}, true), []*read.Query{getQuery("k1")})
		if read.AsError(errs[0]).Code != read.Forbidden || a.calls != 0 {
			t.Errorf("without the scope: %v after %d calls", errs[0], a.calls)
		}
	})
}
