package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// next takes the next update within so long of virtual time.
func next(t *testing.T, ch <-chan read.Update, within time.Duration) *read.Result {
	t.Helper()
	select {
	case u, ok := <-ch:
		if !ok || u.Err != nil {
			t.Fatalf("the watch ended: %v", u.Err)
		}
		return u.Result
	case <-time.After(within):
		t.Fatal("no update")
		return nil
	}
}

func value(r *read.Result) int64 { return r.Rows[0].Values[1].Int() }

func watchOne(t *testing.T, ctx context.Context, g *Gateway, q *read.Query) <-chan read.Update {
	t.Helper()
	ch, err := g.Watch(ctx, q, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// settled is a watch of k that has had its snapshot and is registered.
func settled(t *testing.T, ctx context.Context, g *Gateway) <-chan read.Update {
	t.Helper()
	ch := watchOne(t, ctx, g, getQuery("k"))
	next(t, ch, time.Second)
	synctest.Wait()
	return ch
}

func TestWatchSnapshotThenNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newFake("a", 0)
		a.rows[0]["k"] = 1
		g := newTestGateway(t, newRoutes("a"), a)
		ctx, cancel := context.WithCancel(t.Context())
		ch := watchOne(t, ctx, g, getQuery("k"))
		if got := value(next(t, ch, time.Second)); got != 1 {
			t.Errorf("snapshot %d", got)
		}
		synctest.Wait()
		a.set(0, "k", 2)
		for got := int64(0); got != 2; {
			got = value(next(t, ch, time.Second))
		}
		// A reader that takes its time gets the newest alone.
		for n := int64(3); n <= 50; n++ {
			a.set(0, "k", n)
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		if got := value(next(t, ch, time.Second)); got != 50 {
			t.Errorf("a slow reader got %d, want the newest", got)
		}
		cancel()
		for range ch { // it closes
		}
	})
}

// Invariant 2: a committed read never goes backwards for one key and one token.
func TestInvariant2WatchNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFake("a", 0), newFake("b")
		a.rows[0]["k"] = 7
		a.seq[0] = 7
		routes := newRoutes("a")
		g := newTestGateway(t, routes, a, b)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ch := watchOne(t, ctx, g, getQuery("k"))
		if got := value(next(t, ch, time.Second)); got != 7 {
			t.Fatalf("snapshot %d", got)
		}
		synctest.Wait()
		// The new owner begins behind, and catches up.
		a.move(0, b)
		b.mu.Lock()
		b.rows[0] = map[string]int64{"k": 5}
		b.seq[0] = 5
		b.mu.Unlock()
		routes.set("b")
		time.AfterFunc(time.Second, func() { b.set(0, "k", 6) })
		time.AfterFunc(2*time.Second, func() { b.set(0, "k", 7) })
		time.AfterFunc(3*time.Second, func() { b.set(0, "k", 8) })
		for last := int64(7); last != 8; {
			got := value(next(t, ch, 10*time.Second))
			if got < last {
				t.Fatalf("went back from %d to %d", last, got)
			}
			last = got
		}
	})
}

func TestWatchMovesWithItsPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFake("a"), newFake("b", 0)
		b.rows[0]["k"] = 1
		routes := newRoutes("b")
		g := newTestGateway(t, routes, a, b)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ch := settled(t, ctx, g)
		b.move(0, a)
		routes.set("a")
		time.Sleep(3 * time.Second)
		a.set(0, "k", 9)
		for got := int64(0); got != 9; {
			got = value(next(t, ch, 5*time.Second))
		}
	})
}

// A peer that is cut off sends no end: three missed beats tell.
func TestInvariant6WatchOutlivesASilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("b", 0)
		b.rows[0]["k"] = 1
		g := newTestGateway(t, newRoutes("b"), b)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ch := settled(t, ctx, g)
		b.mu.Lock()
		b.mute = true
		b.mu.Unlock()
		b.set(0, "k", 2) // nobody is told
		for got := int64(0); got != 2; {
			got = value(next(t, ch, 10*time.Second))
		}
	})
}

// While no copy is to be had a watch stays open, and after 3 s says so.
func TestWatchSaysThatNothingNewerComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("b", 0)
		b.rows[0]["k"] = 1
		g := newTestGateway(t, newRoutes("b"), b)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ch := settled(t, ctx, g)
		b.mu.Lock()
		b.fail = context.DeadlineExceeded
		b.mu.Unlock()
		for partial := false; !partial; {
			r := next(t, ch, 20*time.Second)
			f := read.FreshnessOf(r.Parts)
			if partial = f.Partial(); value(r) != 1 {
				t.Fatalf("the last rows are gone: %d", value(r))
			}
		}
		b.mu.Lock()
		b.fail = nil
		b.mu.Unlock()
		b.set(0, "k", 2)
		for got := int64(0); got != 2; {
			got = value(next(t, ch, 20*time.Second))
		}
	})
}

// Equal interests are one.
func TestEqualInterestsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("b", 0)
		b.rows[0]["k"] = 1
		g := newTestGateway(t, newRoutes("b"), b)
		ctx, cancel := context.WithCancel(t.Context())
		var all []<-chan read.Update
		for range 20 {
			ch := watchOne(t, ctx, g, getQuery("k"))
			next(t, ch, time.Second)
			all = append(all, ch)
		}
		synctest.Wait()
		b.mu.Lock()
		interests := 0
		for _, s := range b.streams {
			interests += len(s)
		}
		if len(b.streams) != 1 || interests != 1 {
			t.Errorf("%d streams with %d interests, want 1 with 1", len(b.streams), interests)
		}
		b.mu.Unlock()
		cancel()
		for _, ch := range all {
			for range ch {
			}
		}
		synctest.Wait()
		g.mux.mu.Lock()
		defer g.mux.mu.Unlock()
		if len(g.mux.byID) != 0 || len(g.mux.byKey) != 0 {
			t.Errorf("%d interests are left", len(g.mux.byID))
		}
	})
}

// The least time between events is none before the first.
func TestFirstEventDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newFake("a", 0)
		a.rows[0]["k"] = 1
		g := newTestGateway(t, newRoutes("a"), a)
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			ch, err := g.Watch(ctx, getQuery("k"), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			next(t, ch, time.Second)
			cancel()
			for range ch {
			}
		}
	})
}

// What was missing in an answer may come back without an event.
func TestWatchMendsAPartialAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newFake("a", 0, 1)
		fill(2, a)
		a.refuse[1] = read.Errorf(read.Timeout, "")
		g := newTestGateway(t, newRoutes("a", "a"), a)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ch := watchOne(t, ctx, g, &read.Query{Store: "totals", Op: read.Range, First: 100})
		r := next(t, ch, 5*time.Second)
		if f := read.FreshnessOf(r.Parts); !f.Partial() {
			t.Fatal("nothing is missing")
		}
		a.mu.Lock()
		delete(a.refuse, 1)
		a.mu.Unlock()
		for {
			r = next(t, ch, 5*time.Second)
			if f := read.FreshnessOf(r.Parts); !f.Partial() {
				break
			}
		}
		if len(r.Rows) != 10 {
			t.Errorf("%d rows, want 10", len(r.Rows))
		}
	})
}

// An interest that moved is taken back from where it was.
func TestMovedInterestIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFake("a"), newFake("b", 0)
		b.rows[0]["k"] = 1
		routes := newRoutes("b")
		g := newTestGateway(t, routes, a, b)
		ctx, cancel := context.WithCancel(t.Context())
		ch := watchOne(t, ctx, g, getQuery("k"))
		next(t, ch, time.Second)
		synctest.Wait()
		b.move(0, a)
		routes.set("a")
		time.Sleep(3 * time.Second)
		b.mu.Lock()
		for _, interests := range b.streams {
			if len(interests) != 0 {
				t.Errorf("%d interests are left at the old owner", len(interests))
			}
		}
		b.mu.Unlock()
		cancel()
		for range ch {
		}
	})
}
