package processor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// followed is a copy without a broker that follows changelogs read up to offset
// 10, with some keys in it.
func followed(t *testing.T, keys int) *follower {
	t.Helper()
	l := benched(t, keys, 1)
	l.order(read.Standby, 0)
	l.leading.Store(false)
	f := &follower{taskCopy: l.taskCopy, began: time.Now()}
	for i := range f.changelog {
		f.lanes = append(f.lanes, &lane{at: i, next: 10, target: 10, end: 10})
	}
	f.cond.set(Starting, nil)
	f.cond.set(Following, nil)
	return f
}

// restores puts it back to restoring, up to a target.
func (f *follower) restores(target int64) {
	f.hide()
	f.cond.set(Restoring, nil)
	for _, ln := range f.lanes {
		ln.target, ln.end = target, target
	}
}

// reads takes a record of changelog i.
func (f *follower) reads(t *testing.T, i int, offset int64, key, value []byte) {
	t.Helper()
	if err := f.record(f.lanes[i], &broker.Record{Offset: offset, Key: key, Value: value}); err != nil {
		t.Fatal(err)
	}
	f.lanes[i].next = offset + 1
}

func (f *follower) advances(t *testing.T) {
	t.Helper()
	if err := f.advance(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// somebodys is a commit record of another owner, some commits on.
func (f *follower) somebodys(on uint64) []byte {
	return (&commitRecord{Seq: f.last.Seq + on, Owner: "another", Stream: noTime, Columns: columnsOf(f.sub.Feeds)}).encode()
}

// A ranking knows what a restore has brought, when the copy is shown again.
func TestRankingsAreMadeAnewAfterRestore(t *testing.T) {
	f := followed(t, 3)
	id := f.rankings.all[0].id
	f.rankings.want(id)
	f.republish()
	var row []byte
	snap := f.store.Snapshot()
	snap.Scan(id.store, nil, nil, false, func(_, r []byte) bool { row = slices.Clone(r); return false })
	snap.Release()
	f.restores(20)
	commit := f.somebodys(7)
	for i := range f.lanes {
		if i == id.store {
			f.reads(t, i, 10, view.AppendKey(nil, view.OfString("new")), row)
		}
		f.reads(t, i, 19, commitKey, commit)
	}
	f.advances(t)
	if !f.whole {
		t.Fatal("it is not whole")
	}
	snap = f.store.Snapshot()
	defer snap.Release()
	if top := snap.Commit().(*published).tops[id]; int64(len(top.Rows)) != snap.Count(id.store) {
		t.Errorf("the ranking has %d of %d rows", len(top.Rows), snap.Count(id.store))
	}
}

// A copy that fills its share of the memory reads no more until a checkpoint has
// made room (invariant 7).
func TestFollowerStopsAtTheCap(t *testing.T) {
	f := followed(t, 0)
	f.w.cfg.OverlayBytes = 1 << 20
	value, offset := make([]byte, 10_000), int64(10)
	at := f.rankings.all[0].id.store
	for n := 0; n < 2000; n++ {
		commit := f.somebodys(1)
		for i, ln := range f.lanes {
			if i == at {
				f.reads(t, i, offset, view.AppendKey(nil, view.OfInt(int64(n))), value)
			}
			f.reads(t, i, offset+1, commitKey, commit)
			ln.idle, ln.end = true, 1<<40
		}
		offset += 2
		f.advances(t)
		if f.fetchOn(); f.lanes[at].idle {
			break
		}
	}
	if got, share := f.store.OverlayBytes(), f.w.overlayShare(); got > 3*share {
		t.Errorf("it reads on with %d bytes that are not in the file; its share is %d", got, share)
	}
	if err := f.store.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f.fetchOn(); f.lanes[at].idle {
		t.Error("it does not go on when there is room")
	}
}

// Of what was read below the target the cleaner may have taken the newest value,
// which then lies beyond: nothing is shown before that is read too.
func TestHoleBelowTheTargetMovesIt(t *testing.T) {
	f := followed(t, 0)
	f.restores(100)
	commit := f.somebodys(5)
	for i := range f.lanes {
		f.reads(t, i, 49, commitKey, commit)
	}
	f.reads(t, 0, 99, view.AppendKey(nil, view.OfString("k")), []byte{0x80})
	for i, ln := range f.lanes {
		ln.next = 100
		if i == 0 {
			if err := f.gap(t.Context(), ln, 150); err != nil {
				t.Fatal(err)
			}
		}
	}
	f.advances(t)
	if f.whole {
		t.Fatalf("it shows seq %d with a row of a later commit", f.last.Seq)
	}
	later := f.somebodys(9)
	f.reads(t, 0, 149, commitKey, later)
	for i := 1; i < len(f.lanes); i++ {
		f.reads(t, i, 101, commitKey, later)
	}
	f.advances(t)
	if !f.whole || f.recs[0].Seq != f.last.Seq {
		t.Errorf("whole %t, seq %d", f.whole, f.last.Seq)
	}
}

// A standby that meets a commit of a schema that dropped a column stops, and says
// so; its instance, which owns other tasks, goes on.
func TestStandbyOfAnotherSchemaStopsAlone(t *testing.T) {
	f := followed(t, 0)
	rec := &commitRecord{Seq: f.last.Seq + 1, Owner: "another", Columns: map[string]string{}}
	for i := range f.lanes {
		f.reads(t, i, 10, commitKey, rec.encode())
	}
	err := f.advance(t.Context())
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.AtStart || !strings.Contains(refused.Reason, "written by another schema") {
		t.Errorf("it ended with %v", err)
	}
}

// A former owner that is given its task back in the moment in which it would end
// stays.
func TestLingeringEndsOnlyWhileItLingers(t *testing.T) {
	f := followed(t, 0)
	if !f.order(read.Lingering, 1) || !f.order(read.Active, 2) {
		t.Fatal("a task that is open takes no order")
	}
	if f.endLingering() || f.ctx.Err() != nil {
		t.Error("the owner's task was ended")
	}
	f.order(read.Lingering, 3)
	if !f.endLingering() || f.ctx.Err() == nil {
		t.Error("the lingering copy goes on")
	}
	if f.order(read.Active, 4) {
		t.Error("a task that has ended took an order")
	}
}
