package gateway

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// until takes updates until one is as wanted.
func until(t *testing.T, ch <-chan read.Update, within time.Duration, what string, ok func(*read.Result) bool) *read.Result {
	t.Helper()
	end := time.After(within)
	for {
		select {
		case u, more := <-ch:
			if !more || u.Err != nil {
				t.Fatalf("%s: the watch ended: %v", what, u.Err)
			}
			if ok(u.Result) {
				return u.Result
			}
		case <-end:
			t.Fatalf("no update: %s", what)
		}
	}
}

// interests counts what an instance is asked to watch.
func (f *fakeInstance) interests() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.streams {
		n += len(s)
	}
	return n
}

// With the owner away a watch goes on from another copy, flagged, and hears of
// changes by its stream; with the owner back it goes back.
func TestWatchGoesOnFromAStandby(t *testing.T) {
	for _, c := range []struct {
		name   string
		away   func(b *fakeInstance, r *fakeRoutes)
		back   func(b *fakeInstance, r *fakeRoutes)
		within time.Duration // for its interest to be placed
	}{
		{
			"no owner",
			func(b *fakeInstance, r *fakeRoutes) { r.set("- c") },
			func(b *fakeInstance, r *fakeRoutes) { r.set("b c") }, time.Second,
		},
		{
			"killed",
			func(b *fakeInstance, _ *fakeRoutes) { b.change(func() { b.fail = errors.New("down") }) },
			func(b *fakeInstance, _ *fakeRoutes) { b.change(func() { b.fail = nil }) }, 3 * time.Second,
		},
		{
			"stopped",
			func(b *fakeInstance, _ *fakeRoutes) { b.change(func() { b.hang = true }) },
			func(b *fakeInstance, _ *fakeRoutes) { b.change(func() { b.hang = false }) }, 6 * time.Second,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, 0)
				b.rows[0]["k"], s.rows[0]["k"] = 1, 1
				routes := newRoutes("b c")
				g := newTestGateway(t, routes, b, s)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ch := settled(t, ctx, g)
				c.away(b, routes)
				time.Sleep(c.within)
				synctest.Wait()
				if s.interests() != 1 {
					t.Fatalf("%d interests at the standby", s.interests())
				}
				// The standby tells of changes at once.
				s.set(0, "k", 2)
				began := time.Now()
				r := until(t, ch, 5*time.Second, "the standby's", func(r *read.Result) bool { return value(r) == 2 })
				if f := read.FreshnessOf(r.Parts); !f.Standby || f.Partial() {
					t.Errorf("%+v", f)
				}
				if took := time.Since(began); took > 300*time.Millisecond {
					t.Errorf("heard of the change after %v", took)
				}
				c.back(b, routes)
				b.change(func() { b.rows[0]["k"], b.seq[0] = 2, 1 })
				time.Sleep(12 * time.Second)
				synctest.Wait()
				if b.interests() != 1 || s.interests() != 0 {
					t.Errorf("%d and %d interests with the owner back", b.interests(), s.interests())
				}
				b.set(0, "k", 3)
				until(t, ch, 5*time.Second, "the owner's", func(r *read.Result) bool {
					return value(r) == 3 && r.Parts[0].Role == read.Active
				})
			})
		})
	}
}

// Invariant 2: a committed read never goes backwards for one key and one token. A
// standby that is behind what was sent waits until it is not.
func TestInvariant2WatchOnAStandbyBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, 0)
		b.rows[0]["k"], b.seq[0] = 7, 7
		s.rows[0]["k"], s.seq[0] = 5, 5
		g := newTestGateway(t, newRoutes("b c"), b, s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ch := settled(t, ctx, g)
		b.change(func() { b.fail = errors.New("down") })
		for i := range 3 {
			time.AfterFunc(time.Duration(i+1)*5*time.Second, func() { s.set(0, "k", int64(6+i)) })
		}
		said := false
		r := until(t, ch, time.Minute, "the standby's", func(r *read.Result) bool {
			if value(r) < 7 {
				t.Fatalf("went back to %d", value(r))
			}
			p := r.Parts[0]
			if p.Seq < 7 {
				t.Fatalf("the token went back to %d", p.Seq)
			}
			said = said || p.Err != nil && p.Err.Code == read.Stale
			return value(r) == 8
		})
		if !said || r.Parts[0].Role != read.Standby {
			t.Errorf("said %v, %+v", said, r.Parts[0])
		}
	})
}

// While no copy is to be had for the first answer, a page says so after 3 s; a
// lookup, which cannot, ends after 30 s with the reason.
func TestInvariant4WatchWithoutAFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("b", 0, 1)
		fill(2, b)
		restoring := &read.Error{Code: read.Restoring, Progress: &read.Progress{Done: 1, Total: 2}}
		b.refuse[0], b.refuse[1] = restoring, restoring
		g := newTestGateway(t, newRoutes("b", "b"), b)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		lookup := watchOne(t, ctx, g, getQuery("k1"))
		began := time.Now()
		page := watchOne(t, ctx, g, &read.Query{Store: "totals", Op: read.Range, First: 100})
		r := next(t, page, 10*time.Second)
		if took := time.Since(began); took < 3*time.Second || took > 6*time.Second {
			t.Errorf("said so after %v", took)
		}
		if f := read.FreshnessOf(r.Parts); len(f.Missing) != 2 || f.Missing[0].Reason != "restoring" || len(r.Rows) != 0 {
			t.Errorf("%+v, %d rows", f, len(r.Rows))
		}
		select { // once is enough
		case u := <-page:
			t.Errorf("again: %+v", u)
		case <-time.After(15 * time.Second):
		}
		u := <-lookup
		if took := time.Since(began); u.Err == nil || read.AsError(u.Err).Code != read.Restoring || took < 30*time.Second || took > 35*time.Second {
			t.Errorf("the lookup: %+v after %v", u, took)
		}
		b.change(func() { clear(b.refuse) })
		until(t, page, 10*time.Second, "whole", func(r *read.Result) bool { return len(r.Rows) == 10 })
	})
}

// Invariant 2: the token of an event without some partitions keeps where they
// were.
func TestInvariant2TokenOfAPartialEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newFake("a", 0, 1)
		fill(2, a)
		a.seq[0], a.seq[1] = 4, 8
		g := newTestGateway(t, newRoutes("a", "a"), a)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ch := watchOne(t, ctx, g, &read.Query{Store: "totals", Op: read.Size})
		next(t, ch, time.Second)
		synctest.Wait()
		a.change(func() { a.refuse[1] = read.Errorf(read.Restoring, "") })
		a.set(0, "new", 1)
		r := until(t, ch, 10*time.Second, "partial", func(r *read.Result) bool { f := read.FreshnessOf(r.Parts); return f.Partial() })
		got, err := read.DecodeToken(read.FreshnessOf(r.Parts).Token)
		if want := []read.Position{tokenOf("totals", a, 0, 5), tokenOf("totals", a, 1, 8)}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	})
}

// What is demanded of a subscription is demanded of each event.
func TestWatchDemands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, 0)
		b.rows[0]["k"], s.rows[0]["k"] = 1, 1
		g := newTestGateway(t, newRoutes("b c"), b, s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ch := watchOne(t, ctx, g, wants(&read.Demand{ActiveOnly: true}, "k"))
		next(t, ch, time.Second)
		synctest.Wait()
		b.change(func() { b.fail = errors.New("down") })
		s.set(0, "k", 2)
		r := until(t, ch, 20*time.Second, "the last rows", func(r *read.Result) bool { return r.Parts[0].Err != nil })
		if value(r) != 1 {
			t.Errorf("the standby's %d", value(r))
		}
	})
}
