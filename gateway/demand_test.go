package gateway

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// tokenOf is the position of a fake's partition, as a token has it.
func tokenOf(store string, f *fakeInstance, p int32, seq uint64) read.Position {
	return read.Position{Incarnation: read.Incarnation(read.MarkOf(store), f.topic), Partition: p, Seq: seq}
}

func TestDemandedAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newFake("b", 0).as(read.Active, 10*time.Second), newFake("c", 0).as(read.Standby, 2*time.Second)
		g := newTestGateway(t, newRoutes("b c"), b, s)
		five := &read.Demand{MaxAge: 5000}
		answers(t, g, getQuery("k"), "b", read.Active) // nothing is demanded of an active copy
		answers(t, g, wants(&read.Demand{MaxAge: 15_000}, "k"), "b", read.Active)
		answers(t, g, wants(five, "k"), "c", read.Standby)
		s.change(func() { s.age[0] = 6 * time.Second })
		began := time.Now()
		e := fails(t, g, wants(five, "k"), read.Stale, "old, and at most 5s was allowed")
		if e.RetryAfter == 0 {
			t.Error("no time to ask again")
		}
		// An active copy that is far behind will not catch up in a moment.
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %v in vain", took)
		}
		// A longer age than the default is granted, too.
		b.change(func() { b.fail = errors.New("down") })
		s.change(func() { s.age[0] = time.Hour })
		answers(t, g, wants(&read.Demand{MaxAge: 7_200_000}, "k"), "c", read.Standby)
		fails(t, g, getQuery("k"), read.Stale, "at most 1m was allowed")
	})
}

// A copy that has never been whole has no age, and none that is demanded.
func TestDemandedAgeOfACopyThatWasNeverWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := time.Duration(time.Now().UnixMilli()) * time.Millisecond
		b := newFake("b", 0).as(read.Active, never)
		g := newTestGateway(t, newRoutes("b"), b)
		answers(t, g, getQuery("k"), "b", read.Active)
		fails(t, g, wants(&read.Demand{MaxAge: 5000}, "k"), read.Stale, "")
	})
}

// An as-of that is a little too old is waited for: it moves on each second.
func TestDemandedAgeIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFake("b", 0).as(read.Active, 1200*time.Millisecond)
		g := newTestGateway(t, newRoutes("b"), b)
		time.AfterFunc(400*time.Millisecond, func() { b.change(func() { b.age[0] = 0 }) })
		answers(t, g, wants(&read.Demand{MaxAge: 1000}, "k"), "b", read.Active)
	})
}

func TestActiveOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, 0)
		fill(1, b, s)
		g := newTestGateway(t, newRoutes("b c"), b, s)
		active := wants(&read.Demand{ActiveOnly: true}, "k1")
		answers(t, g, active, "b", read.Active)
		b.change(func() { b.fail = errors.New("down") })
		if _, err := one(t, g, active); err == nil {
			t.Error("answered")
		}
		b.change(func() { b.fail, b.slow = nil, 400*time.Millisecond })
		time.Sleep(2 * time.Second) // the breaker's
		answers(t, g, active, "b", read.Active)
		b.as(read.Standby, 0)
		b.change(func() { b.slow = 0 })
		fails(t, g, active, read.Rebalancing, "the active copy is away")
		if s.called() != 0 {
			t.Errorf("the standby was called %d times", s.called())
		}
	})
}

// Invariant 2: a committed read never goes backwards for one key and one token.
func TestInvariant2TokenIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := newFake("b", 0), newFake("c", 0).as(read.Standby, time.Second)
		b.seq[0], s.seq[0] = 7, 9
		g := newTestGateway(t, newRoutes("b c"), b, s)
		at := func(seq uint64) *read.Query {
			return wants(&read.Demand{AtLeast: []read.Position{tokenOf("totals", b, 0, seq)}}, "k")
		}
		answers(t, g, at(7), "b", read.Active)
		answers(t, g, at(8), "c", read.Standby) // the active one is behind: a new owner
		time.AfterFunc(300*time.Millisecond, func() { b.change(func() { b.seq[0] = 10 }) })
		began := time.Now()
		if r := answers(t, g, at(10), "b", read.Active); r.Parts[0].Seq != 10 || r.Parts[0].Reset {
			t.Errorf("%+v", r.Parts[0])
		}
		if took := time.Since(began); took < 300*time.Millisecond || took > 700*time.Millisecond {
			t.Errorf("waited %v", took)
		}
		fails(t, g, at(11), read.Stale, "older than what the token has seen")
	})
}

// A token of another incarnation is flagged, not awaited; one of another store
// demands nothing.
func TestTokenOfAnotherIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, old := newFake("b", 0), &fakeInstance{topic: [16]byte{15: 9}}
		b.seq[0] = 2
		g := newTestGateway(t, newRoutes("b"), b)
		for _, c := range []struct {
			name  string
			token []read.Position
			reset bool
		}{
			{"an old one", []read.Position{tokenOf("totals", old, 0, 50)}, true},
			{"an old one and the new", []read.Position{tokenOf("totals", old, 0, 50), tokenOf("totals", b, 0, 1)}, false},
			{"another partition of an old one", []read.Position{tokenOf("totals", old, 1, 50)}, false},
			{"another store", []read.Position{tokenOf("hours", b, 0, 50), tokenOf("hours", old, 0, 50)}, false},
			{"nothing", nil, false},
		} {
			began := time.Now()
			r := answers(t, g, wants(&read.Demand{AtLeast: c.token}, "k"), "b", read.Active)
			if r.Parts[0].Reset != c.reset || read.FreshnessOf(r.Parts).Reset != c.reset {
				t.Errorf("%s: reset is %v", c.name, r.Parts[0].Reset)
			}
			if time.Since(began) != 0 {
				t.Errorf("%s: waited", c.name)
			}
		}
	})
}

// The token of an answer without some partitions keeps where they were.
func TestInvariant2TokenOfAPartialAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newFake("a", 0)
		a.seq[0] = 5
		g := newTestGateway(t, newRoutes("a", "-"), a)
		q := &read.Query{Store: "totals", Op: read.Size, Demand: &read.Demand{AtLeast: []read.Position{tokenOf("totals", a, 0, 4), tokenOf("totals", a, 1, 8)}}}
		r, err := one(t, g, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := read.DecodeToken(read.FreshnessOf(r.Parts).Token)
		if want := []read.Position{tokenOf("totals", a, 0, 5), tokenOf("totals", a, 1, 8)}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	})
}

// Missing partitions are an error where all are demanded, each with its reason.
func TestInvariant4Complete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newFake("a", 0, 1, 2)
		fill(4, a)
		a.refuse[2] = read.Errorf(read.Restoring, "")
		g := newTestGateway(t, newRoutes("a", "a", "a", "-"), a)
		page := &read.Query{Store: "totals", Op: read.Range, First: 100}
		if r, err := one(t, g, page); err != nil || len(read.FreshnessOf(r.Parts).Missing) != 2 {
			t.Fatalf("partial by default: %v, %v", r, err)
		}
		page.Demand = &read.Demand{Complete: true}
		e := fails(t, g, page, read.Incomplete, "partition 2 (restoring); partition 3 (rebalancing")
		var missing read.MissingPartitions
		if !errors.As(e, &missing) || len(missing) != 2 || missing[1].Partition != 3 || !strings.Contains(missing[1].Reason, "no instance holds") {
			t.Errorf("%+v", missing)
		}
		a.change(func() { delete(a.refuse, 2) })
		if r, err := one(t, g, wants(page.Demand, "k0", "k1")); err == nil && len(r.Rows) != 2 {
			t.Errorf("%v", r)
		}
	})
}
