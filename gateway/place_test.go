package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// newerWithin checks that a watch comes to say n within so long.
func newerWithin(t *testing.T, ch <-chan read.Update, n int64, within time.Duration) *read.Result {
	t.Helper()
	return until(t, ch, within, "what was committed", func(r *read.Result) bool { return value(r) == n })
}

// drain reads a watch for so long, as a reader does to whom all is the same.
func drain(ch <-chan read.Update, d time.Duration) {
	for end := time.After(d); ; {
		select {
		case <-ch:
		case <-end:
			return
		}
	}
}

// An owner that starts over without newer routes has its interests back within
// seconds, and tells of its commits at once.
func TestInterestComesBackToAnOwnerThatStartedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, 0)
		b.rows[0]["k"], s.rows[0]["k"] = 1, 1
		g := newTestGateway(t, newRoutes("b c"), b, s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ch := settled(t, ctx, g)
		b.change(func() { b.tell(0, read.Moved) })
		drain(ch, 4*time.Second)
		synctest.Wait()
		if b.interests() != 1 || s.interests() != 0 {
			t.Fatalf("%d interests at the owner, %d at the standby", b.interests(), s.interests())
		}
		b.set(0, "k", 2)
		newerWithin(t, ch, 2, 150*time.Millisecond)
	})
}

// While the owner turns its interests away, as one that restores does, it is not
// asked in a loop; nor is a standby that does the same.
func TestInterestTurnedAwayIsNotOfferedInALoop(t *testing.T) {
	for _, others := range []string{"", " c"} {
		t.Run("b"+others, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, 0)
				b.rows[0]["k"], s.rows[0]["k"] = 1, 1
				b.unready[0], s.unready[0] = true, true
				g := newTestGateway(t, newRoutes("b"+others), b, s)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ch := settled(t, ctx, g)
				drain(ch, time.Minute)
				b.change(func() {
					if b.adds < 6 || b.adds > 12 {
						t.Errorf("asked %d times in a minute", b.adds)
					}
					if b.calls > 100 {
						t.Errorf("read %d times in a minute", b.calls)
					}
				})
				if b.interests() != 0 || s.interests() != 0 {
					t.Errorf("%d and %d interests are left where they were turned away", b.interests(), s.interests())
				}
				// What nobody tells is found out.
				b.set(0, "k", 2)
				newerWithin(t, ch, 2, 1500*time.Millisecond)
				b.change(func() { clear(b.unready) })
				drain(ch, avoidMost+2*time.Second)
				b.set(0, "k", 3)
				newerWithin(t, ch, 3, 150*time.Millisecond)
			})
		})
	}
}

// Newer routes put an interest where they say, whoever turned it away before.
func TestNewerRoutesEndAvoidance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("b", 0)
		b.rows[0]["k"] = 1
		b.unready[0] = true
		routes := newRoutes("b")
		g := newTestGateway(t, routes, b)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ch := settled(t, ctx, g)
		drain(ch, 20*time.Second) // as long as can be
		b.change(func() { clear(b.unready) })
		routes.set("b")
		synctest.Wait()
		if b.interests() != 1 {
			t.Errorf("%d interests", b.interests())
		}
	})
}

// An answer of the active copy is looked at again while the interest is on
// another copy's stream, which may tell nothing.
func TestWatchLooksAgainWhileItsInterestIsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, 0)
		b.rows[0]["k"], s.rows[0]["k"] = 1, 1
		b.unready[0] = true
		g := newTestGateway(t, newRoutes("b c"), b, s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ch := settled(t, ctx, g)
		drain(ch, 15*time.Second)
		synctest.Wait()
		for n := int64(2); n < 12; n++ {
			if s.interests() != 1 {
				t.Fatalf("%d interests at the standby", s.interests())
			}
			b.set(0, "k", n) // nobody is told
			newerWithin(t, ch, n, 1500*time.Millisecond)
			synctest.Wait()
		}
	})
}

// A watch all of whose interests are with the active copies reads when it is told
// alone.
func TestWatchThatIsToldDoesNotLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, 0)
		b.rows[0]["k"], s.rows[0]["k"] = 1, 1
		g := newTestGateway(t, newRoutes("b c"), b, s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ch := settled(t, ctx, g)
		drain(ch, 5*time.Second)
		before := b.called()
		drain(ch, time.Minute)
		if after := b.called(); after != before {
			t.Errorf("%d reads in a minute without a change", after-before)
		}
	})
}

// When the active copy goes to where the interest is not, the watch looks again
// until the interest is there, however long that takes to be heard of.
func TestWatchLooksAgainUntilTheNewOwnerIsHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, d := newFake("b", 0), newFake("d", 0)
		b.rows[0]["k"], d.rows[0]["k"] = 1, 1
		d.mute = true // it answers reads, and its stream brings nothing
		routes := newRoutes("b")
		g := newTestGateway(t, routes, b, d)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ch := settled(t, ctx, g)
		drain(ch, 2*time.Second)
		d.change(func() { d.rows[0]["k"], d.seq[0] = 2, 1 })
		routes.set("d b")
		newerWithin(t, ch, 2, 1500*time.Millisecond)
	})
}
