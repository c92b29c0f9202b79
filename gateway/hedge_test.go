package gateway

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/streamgauge/streamgauge/view/read"
)

// usualTime has an instance answer often enough for its usual time to be known.
func usualTime(t *testing.T, g *Gateway, q *read.Query) {
	t.Helper()
	for range 30 {
		if _, err := one(t, g, q); err != nil {
			t.Fatal(err)
		}
	}
}

// Invariant 6: a stopped owner hurts nobody else. Reads come from the standby
// within moments, and soon do not even wait for the owner; when it goes on they
// come from it again.
func TestInvariant6StoppedOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, time.Second)
		b.slow = time.Millisecond
		g := newTestGateway(t, newRoutes("b c"), b, s)
		usualTime(t, g, getQuery("k"))
		b.change(func() { b.hang = true })
		stopped := time.Now()
		for i := 0; g.Breakers()["b"] != "open"; i++ {
			began := time.Now()
			answers(t, g, getQuery("k"), "c", read.Standby)
			if took := time.Since(began); took > 50*time.Millisecond {
				t.Fatalf("read %d took %v", i, took)
			}
			if time.Since(stopped) > time.Second {
				t.Fatal("the breaker does not open")
			}
			time.Sleep(20 * time.Millisecond)
		}
		began := time.Now()
		answers(t, g, getQuery("k"), "c", read.Standby)
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %v for an instance that is known not to answer", took)
		}
		b.change(func() { b.hang = false })
		time.Sleep(2 * time.Second)
		answers(t, g, getQuery("k"), "b", read.Active)
		answers(t, g, getQuery("k"), "b", read.Active)
	})
}

// Many readers at once exhaust the budget of hedges; the breaker lets the rest go
// on within about half a second.
func TestInvariant6StoppedOwnerUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, time.Second)
		b.slow = time.Millisecond
		g := newGateway(t, func(c *Config) { c.CallTime, c.Timeout = 2*time.Second, 5*time.Second }, newRoutes("b c"), b, s)
		usualTime(t, g, getQuery("k"))
		b.change(func() { b.hang = true })
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				began := time.Now()
				rs, errs := g.Read(t.Context(), []*read.Query{getQuery("k")})
				if errs[0] != nil || rs[0].Parts[0].Role != read.Standby {
					t.Errorf("%v, %v", rs[0], errs[0])
				}
				if took := time.Since(began); took > 600*time.Millisecond {
					t.Errorf("took %v", took)
				}
			})
		}
		wg.Wait()
	})
}

// A hedge takes the active copy's answer when it comes first, and does not ask
// where nothing but the active one will do.
func TestHedge(t *testing.T) {
	for _, c := range []struct {
		name       string
		slow, late time.Duration // of the active and of the standby
		demand     *read.Demand
		instance   string
		role       read.Role
		took       time.Duration
		hedged     int
	}{
		{"in its usual time", 20 * time.Millisecond, 0, nil, "b", read.Active, 20 * time.Millisecond, 0},
		{"the standby is faster", 300 * time.Millisecond, 5 * time.Millisecond, nil, "c", read.Standby, 35 * time.Millisecond, 1},
		{"the active one is faster after all", 60 * time.Millisecond, 200 * time.Millisecond, nil, "b", read.Active, 60 * time.Millisecond, 1},
		{"the standby is too old", 300 * time.Millisecond, 0, &read.Demand{MaxAge: 500}, "b", read.Active, 300 * time.Millisecond, 1},
		{"no other is allowed", 300 * time.Millisecond, 0, &read.Demand{ActiveOnly: true}, "b", read.Active, 300 * time.Millisecond, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, time.Second)
				b.slow = time.Millisecond
				g := newTestGateway(t, newRoutes("b c"), b, s)
				usualTime(t, g, getQuery("k"))
				b.change(func() { b.slow = c.slow })
				s.change(func() { s.slow = c.late })
				began := time.Now()
				answers(t, g, wants(c.demand, "k"), c.instance, c.role)
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
				if s.called() != c.hedged {
					t.Errorf("the standby was called %d times, want %d", s.called(), c.hedged)
				}
				time.Sleep(time.Second)
				if got := g.Breakers()["b"]; got != "closed" {
					t.Errorf("breaker is %s", got)
				}
			})
		})
	}
}

// Instances that are all slow do not get twice the load.
func TestHedgesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, time.Second)
		b.slow = time.Millisecond
		reg := prometheus.NewRegistry()
		g := newGateway(t, func(c *Config) { c.Registerer = reg }, newRoutes("b c"), b, s)
		usualTime(t, g, getQuery("k"))
		b.change(func() { b.slow = 450 * time.Millisecond })
		s.change(func() { s.slow = 450 * time.Millisecond })
		var wg sync.WaitGroup
		for range 400 {
			wg.Go(func() {
				if _, errs := g.Read(context.WithoutCancel(t.Context()), []*read.Query{getQuery("k")}); errs[0] != nil {
					t.Error(errs[0])
				}
			})
		}
		wg.Wait()
		if n := s.called(); n == 0 || n > 45 {
			t.Errorf("%d hedges of 400 reads", n)
		}
	})
}

// A caller that goes takes its calls along, and says nothing of the instance.
func TestCallerThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("b", 0)
		b.hang = true
		g := newTestGateway(t, newRoutes("b"), b)
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			time.AfterFunc(10*time.Millisecond, cancel)
			if _, errs := g.Read(ctx, []*read.Query{getQuery("k")}); errs[0] == nil {
				t.Fatal("answered")
			}
		}
		synctest.Wait()
		if got := g.Breakers()["b"]; got != "closed" {
			t.Errorf("breaker is %s", got)
		}
	})
}

func TestPatience(t *testing.T) {
	var a average
	for _, c := range []struct {
		took time.Duration
		want time.Duration
	}{{0, hedgeUnknown}, {time.Millisecond, hedgeLeast}, {20 * time.Millisecond, 80 * time.Millisecond}, {time.Second, hedgeMost}} {
		for range 60 {
			if c.took > 0 {
				a.observe(c.took)
			}
		}
		if got := a.patience().Round(time.Millisecond); got != c.want {
			t.Errorf("after answers of %v: %v, want %v", c.took, got, c.want)
		}
	}
}
