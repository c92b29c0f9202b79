package gateway

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// wants is getQuery with a demand.
func wants(d *read.Demand, keys ...string) *read.Query {
	q := getQuery(keys...)
	q.Demand = d
	return q
}

// answers checks that a read is answered by an instance in a role.
func answers(t *testing.T, g *Gateway, q *read.Query, instance string, role read.Role) *read.Result {
	t.Helper()
	r, err := one(t, g, q)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if p := r.Parts[0]; p.Instance != instance || p.Role != role || read.FreshnessOf(r.Parts).Standby != role.Flagged() {
		t.Fatalf("answered by %s as %v, want %s as %v", p.Instance, p.Role, instance, role)
	}
	return r
}

// fails checks the code and message of a read that has no answer.
func fails(t *testing.T, g *Gateway, q *read.Query, code read.Code, message string) *read.Error {
	t.Helper()
	r, err := one(t, g, q)
	if err == nil {
		t.Fatalf("answered: %+v", r.Parts)
	}
	e := read.AsError(err)
	if e.Code != code || !strings.Contains(e.Message, message) {
		t.Fatalf("got %v, want %v: …%s…", err, code, message)
	}
	return e
}

// A read does not fail because the active copy is away: another answers, flagged,
// and at once.
func TestFallsBackWhenTheActiveIsAway(t *testing.T) {
	for _, c := range []struct {
		name   string
		routes string
		fault  func(b *fakeInstance)
		within time.Duration
	}{
		{"no route", "- c", func(*fakeInstance) {}, 0},
		{"not reached", "b c", func(b *fakeInstance) { b.fail = errors.New("down") }, 0},
		{"restoring", "b c", func(b *fakeInstance) { b.refuse[0] = read.Errorf(read.Restoring, "") }, 0},
		{"rebalancing", "b c", func(b *fakeInstance) { b.refuse[0] = read.Errorf(read.Rebalancing, "") }, 0},
		{"not the owner, twice", "b c", func(b *fakeInstance) { b.refuse[0] = read.Errorf(read.NotOwner, "") }, 50 * time.Millisecond},
		{"stopped", "b c", func(b *fakeInstance) { b.hang = true }, 100 * time.Millisecond},
		{"no address", "x c", func(*fakeInstance) {}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, 10*time.Second)
				fill(1, b, s)
				c.fault(b)
				g := newTestGateway(t, newRoutes(c.routes), b, s)
				began := time.Now()
				r := answers(t, g, getQuery("k1"), "c", read.Standby)
				if took := time.Since(began); took > c.within {
					t.Errorf("took %v, want at most %v", took, c.within)
				}
				if keysOf(r.Rows) != "k1" {
					t.Errorf("rows %s", keysOf(r.Rows))
				}
			})
		})
	}
}

// Whatever its role, a copy beside the active one answers, the freshest first,
// and only within maxAge.
func TestFallBackPrefersTheFreshest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d, e := newFake("c", 0).as(read.Standby, 50*time.Second), newFake("d", 0).as(read.Lingering, 2*time.Second), newFake("e", 0).as(read.WarmUp, 40*time.Second)
		d.slow = 20 * time.Millisecond
		g := newTestGateway(t, newRoutes("- c d:lingering e:warm-up"), c, d, e)
		answers(t, g, getQuery("k1"), "d", read.Lingering)
		d.change(func() { d.hang = true })
		answers(t, g, getQuery("k1"), "e", read.WarmUp)
		e.change(func() { e.age[0] = 61 * time.Second })
		answers(t, g, getQuery("k1"), "c", read.Standby)
		c.change(func() { c.age[0] = 100 * time.Second })
		fails(t, g, getQuery("k1"), read.Stale, "old, and at most 1m was allowed")
	})
}

// Invariant 4: an empty answer means empty. A key that a standby lacks is missing
// as of its as-of; one that no copy may answer for is an error.
func TestInvariant4MissingKeyOfAStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFake("c", 0).as(read.Standby, time.Second)
		g := newTestGateway(t, newRoutes("- c"), s)
		r := answers(t, g, getQuery("k1"), "c", read.Standby)
		if r.Rows[0] != nil || r.Parts[0].AsOf != time.Now().Add(-time.Second).UnixMilli() {
			t.Errorf("row %v as of %d", r.Rows[0], r.Parts[0].AsOf)
		}
		s.change(func() { s.age[0] = time.Hour })
		e := fails(t, g, getQuery("k1"), read.Stale, "the state is 1h")
		if strings.Contains(e.Message, "c ") || e.RetryAfter == 0 {
			t.Errorf("%+v", e)
		}
	})
}

// An owner that lost the group, and does not know who has it now, is one copy
// among others: its answer is flagged, bounded, and a fresher one wins.
func TestInvariant2ZombieDoesNotPassForFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFake("a", 0).as(read.Standby, 20*time.Second), newFake("b", 0)
		fill(1, a, b)
		g := newTestGateway(t, newRoutes("a b"), a, b)
		answers(t, g, getQuery("k1"), "b", read.Active) // the owner by now
		b.as(read.Standby, 30*time.Second)
		answers(t, g, getQuery("k1"), "a", read.Standby)
		a.as(read.Standby, 2*time.Minute)
		answers(t, g, getQuery("k1"), "b", read.Standby)
		b.as(read.Standby, 3*time.Minute)
		fails(t, g, getQuery("k1"), read.Stale, "at most 1m was allowed")
	})
}

// While the deadline allows, a read goes on looking: for a new owner, too.
func TestGoesOnLookingForAFreshCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, time.Hour)
		fill(1, b, s)
		b.fail = errors.New("down")
		routes := newRoutes("b c")
		g := newTestGateway(t, routes, b, s)
		time.AfterFunc(500*time.Millisecond, func() {
			s.as(read.Active, 0)
			routes.set("c")
		})
		answers(t, g, getQuery("k1"), "c", read.Active)
	})
}

// One that is not the owner any more says that there is another: it is looked for
// before a standby answers.
func TestLooksForTheNewOwnerFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, d := newFake("b"), newFake("c", 0).as(read.Standby, time.Second), newFake("d", 0)
		routes := newRoutes("b c")
		g := newTestGateway(t, routes, b, s, d)
		time.AfterFunc(5*time.Millisecond, func() { routes.set("d c") })
		answers(t, g, getQuery("k1"), "d", read.Active)
	})
}

// A local global table that is not ready is read from another instance.
func TestGlobalTableOfAnotherInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFake("a", 0).as(read.Global, 0), newFake("b", 0).as(read.Global, 0)
		fill(1, a, b)
		global := *totals
		global.Global = true
		g := newGateway(t, func(c *Config) { c.Views = []*view.View{&global} }, newRoutes("a", "b"), a, b)
		answers(t, g, getQuery("k1"), "a", read.Global)
		a.change(func() { a.refuse[0] = read.Errorf(read.Restoring, "") })
		answers(t, g, getQuery("k1"), "b", read.Global)
		answers(t, g, wants(&read.Demand{ActiveOnly: true}, "k1"), "b", read.Global)
		b.change(func() { b.fail = errors.New("down") })
		fails(t, g, getQuery("k1"), read.Restoring, "")
	})
}

// What waits in the local instance, as a ranking that is to be built there, is
// bounded like any call; others are asked then, and the caller's own deadline,
// however far, has no say.
func TestLocalWaitIsBounded(t *testing.T) {
	queries := []*read.Query{
		{Store: "totals", Op: read.Top, Ranking: "n", First: 3},
		{Store: "totals", Op: read.Range, First: 3},
		{Store: "totals", Op: read.Size},
	}
	for _, q := range queries {
		t.Run(q.Op.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, s := newFake("a", 0), newFake("c", 0).as(read.Standby, time.Second)
				fill(1, a, s)
				a.stall[q.Op] = true
				routes := newRoutes("a c")
				g := newTestGateway(t, routes, a, s)
				began := time.Now()
				answers(t, g, q, "c", read.Standby)
				if took := time.Since(began); took > g.cfg.CallTime {
					t.Errorf("took %v", took)
				}
				answers(t, g, getQuery("k1"), "a", read.Active)
				routes.set("a")
				began = time.Now()
				if r, err := one(t, g, q); err == nil {
					t.Errorf("answered: %+v", r.Parts)
				}
				if took := time.Since(began); took > g.cfg.Timeout {
					t.Errorf("without others it took %v", took)
				}
			})
		})
	}
}

// Pieces of one query fall back each for itself, those of one instance together.
func TestFallsBackByPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, c := newFake("a", 0, 1), newFake("b", 2, 3), newFake("c", 2, 3).as(read.Standby, time.Second)
		fill(4, a, b, c)
		b.fail = errors.New("down")
		g := newTestGateway(t, newRoutes("a", "a", "b c", "b c"), a, b, c)
		r, err := one(t, g, &read.Query{Store: "totals", Op: read.Range, First: 100})
		if err != nil || len(r.Rows) != 10 {
			t.Fatalf("%v, %v", r, err)
		}
		got := ""
		for _, p := range r.Parts {
			got += fmt.Sprintf("%s %v; ", p.Instance, p.Role)
		}
		if got != "a active; a active; c standby; c standby; " || c.called() != 1 {
			t.Errorf("%safter %d calls", got, c.called())
		}
	})
}

// scrape is what Prometheus would read.
func scrape(reg *prometheus.Registry) string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func TestReadMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, 10*time.Second)
		reg := prometheus.NewRegistry()
		g := newGateway(t, func(c *Config) { c.Registerer = reg }, newRoutes("b c"), b, s)
		answers(t, g, getQuery("k1"), "b", read.Active)
		b.change(func() { b.fail = errors.New("down") })
		answers(t, g, getQuery("k1"), "c", read.Standby)
		s.change(func() { s.age[0] = time.Hour })
		fails(t, g, getQuery("k1"), read.Stale, "")
		got := scrape(reg)
		for _, want := range []string{
			`streamgauge_gateway_fallbacks_total{role="standby"} 1`, `streamgauge_gateway_fallbacks_total{role="warm-up"} 0`,
			`streamgauge_gateway_queries_total{op="Get",outcome="fresh"} 1`, `streamgauge_gateway_queries_total{op="Get",outcome="standby"} 1`,
			`streamgauge_gateway_queries_total{op="Get",outcome="stale"} 1`, `streamgauge_gateway_queries_total{op="Get",outcome="partial"} 0`,
			`streamgauge_gateway_answer_age_seconds_bucket{le="5"} 1`, `streamgauge_gateway_answer_age_seconds_bucket{le="10"} 2`,
			`streamgauge_gateway_routes_generation 0`, `streamgauge_gateway_hedges_total{result="sent"} 0`, `streamgauge_gateway_watches 0`,
		} {
			if !strings.Contains(got, want+"\n") {
				t.Errorf("no %s in\n%s", want, got)
			}
		}
		time.Sleep(3 * time.Second)
		if age := g.metrics.routesAge(); age < 3 {
			t.Errorf("the routes are %v s old", age)
		}
	})
}
