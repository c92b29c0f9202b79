package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	crashChild()
	goleak.VerifyTestMain(m)
}

var modelSpecs = []Spec{{Name: "totals"}, {Name: "hours", Segment: 700}, {Name: "names"}}

// simulation drives a Store at random beside a model of it.
type simulation struct {
	t       *testing.T
	r       *rand.Rand
	options Options
	store   *Store
	now     model
	frozen  *model // set aside, perhaps written
	disk    model
	writing chan error // of a WriteFrozen under way
	held    []heldSnapshot
	floor   int64
	commits int
	reopen  func(func()) // keeps readers away meanwhile
}

type heldSnapshot struct {
	snap *Snapshot
	want model
}

func TestInvariant1StoreEqualsMap(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	for i := range rounds {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			s := &simulation{
				t: t, r: seeded(t), now: newModel(modelSpecs), disk: newModel(modelSpecs), floor: math.MinInt64,
				options: Options{Path: testPath(t), Stores: modelSpecs, MmapSize: testMap},
			}
			s.store = mustOpen(t, s.options)
			stop := s.readers()
			for range 250 {
				s.step()
			}
			stop()
			s.releaseAll()
			s.awaitWrite()
		})
	}
}

// readers read whatever is newest and check it against itself until stopped.
func (s *simulation) readers() (stop func()) {
	quit := make(chan struct{})
	var readers sync.WaitGroup
	var mu sync.Mutex // guards s.store against reopening
	s.reopen = func(f func()) { mu.Lock(); defer mu.Unlock(); f() }
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				mu.Lock()
				snap := s.store.Snapshot()
				mu.Unlock()
				if snap == nil {
					continue
				}
				if err := consistent(snap); err != nil {
					s.t.Error(err)
				}
				snap.Release()
			}
		})
	}
	return func() { close(quit); readers.Wait() }
}

// consistent checks that all ways of reading a snapshot agree.
func consistent(snap *Snapshot) (err error) {
	for i := range modelSpecs {
		var n int64
		snap.Scan(i, nil, nil, false, func(k, v []byte) bool {
			n++
			if got, ok := snap.Get(i, k); !ok || string(got) != string(v) {
				err = fmt.Errorf("store %d: Get(%q) = %q %v beside Scan's %q", i, k, got, ok, v)
			}
			return err == nil
		})
		if err == nil && n != snap.Count(i) {
			err = fmt.Errorf("store %d: %d rows and a count of %d", i, n, snap.Count(i))
		}
	}
	return err
}

func (s *simulation) step() {
	switch n := s.r.IntN(100); {
	case n < 50:
		s.publish(randomRun(s.r, modelSpecs, 40))
	case n < 62:
		if s.store.Freeze() {
			frozen := s.now.clone()
			s.frozen = &frozen
		}
	case n < 74:
		s.startWrite()
	case n < 84:
		s.awaitWrite()
	case n < 88:
		before := int64(s.r.IntN(4000) - 4000)
		s.floor = max(s.floor, before)
		s.store.DropSegments(1, before)
		s.now.drop(1, s.floor)
		s.publish(nil)
	case n < 92:
		s.held = append(s.held, heldSnapshot{s.store.Snapshot(), s.now.clone()})
	case n < 96:
		s.releaseAll()
	default:
		s.restart()
	}
	with(s.t, s.store, func(snap *Snapshot) { s.check(snap, s.now) })
	s.checkOverlay()
}

func (s *simulation) publish(run Run) {
	s.commits++
	s.now.record = fmt.Sprint(s.commits)
	s.now.apply(run)
	if s.floor > math.MinInt64 {
		s.now.drop(1, s.floor)
	}
	s.store.Publish(slices.Clone(run), s.commits, State{Record: []byte(s.now.record), CaughtUp: int64(s.commits)})
}

func (s *simulation) startWrite() {
	if s.frozen == nil || s.writing != nil {
		return
	}
	s.writing = make(chan error, 1)
	go func() { s.writing <- s.store.WriteFrozen(context.Background()) }()
}

func (s *simulation) awaitWrite() {
	if s.writing == nil {
		return
	}
	if err := <-s.writing; err != nil {
		s.t.Fatal(err)
	}
	s.disk = *s.frozen
	s.frozen, s.writing = nil, nil
	s.store.Installed()
}

// restart closes the store at whatever point it is and opens it again: it must
// be what was last written. A write under way may end before.
func (s *simulation) restart() {
	s.releaseAll()
	if s.writing != nil {
		if err := <-s.writing; err != nil {
			s.t.Fatal(err)
		}
		s.disk, s.writing = *s.frozen, nil
	}
	s.frozen, s.floor = nil, math.MinInt64
	s.reopen(func() {
		mustClose(s.t, s.store)
		s.store = mustOpen(s.t, s.options)
	})
	s.now = s.disk.clone()
	if got := string(s.store.State().Record); got != s.now.record {
		s.t.Fatalf("state is %q, want %q", got, s.now.record)
	}
	if s.now.record != "" {
		fmt.Sscan(s.now.record, &s.commits)
	}
	s.publish(nil)
}

func (s *simulation) check(snap *Snapshot, want model) {
	s.t.Helper()
	if err := want.check(snap, s.r); err != nil {
		s.t.Fatal(err)
	}
	if got := fmt.Sprint(snap.Commit()); got != want.record && want.record != "" {
		s.t.Fatalf("snapshot of commit %s, want %s", got, want.record)
	}
}

func (s *simulation) checkOverlay() {
	bytes, since := s.store.OverlayBytes(), s.store.DirtySince()
	if bytes < 0 || bytes > 0 && since.IsZero() {
		s.t.Fatalf("overlay of %d bytes, dirty since %v", bytes, since)
	}
	if len(s.store.runs) > maxRuns {
		s.t.Fatalf("%d runs", len(s.store.runs))
	}
}

func (s *simulation) releaseAll() {
	for _, h := range s.held {
		s.check(h.snap, h.want)
		h.snap.Release()
	}
	s.held = nil
}

func TestStatePersists(t *testing.T) {
	o := Options{Path: testPath(t), Stores: []Spec{{Name: "a"}}}
	s := mustOpen(t, o)
	if st := s.State(); !st.equal(State{}) {
		t.Fatalf("a new store has state %+v", st)
	}
	want := State{
		Record:    []byte("record 7"),
		Positions: []Position{{Topic: "app-a-changelog", ID: [16]byte{1, 2, 15: 9}, Next: 1 << 40}, {Topic: "b", Next: -1}},
		CaughtUp:  1_700_000_000_123,
	}
	s.Publish(Run{row(0, "k", "v")}, nil, want)
	mustCheckpoint(t, s)
	s.Publish(Run{row(0, "k", "later")}, nil, State{Record: []byte("record 8")})
	mustClose(t, s)
	s = mustOpen(t, o)
	if got := s.State(); !got.equal(want) {
		t.Fatalf("state %+v, want %+v", got, want)
	}
	with(t, s, func(snap *Snapshot) {
		if v, ok := snap.Get(0, []byte("k")); !ok || string(v) != "v" {
			t.Fatalf("row is %q, want that of the checkpoint", v)
		}
	})
	if s.Freeze() {
		t.Fatal("there is something to write right after Open")
	}
	s.Publish(nil, "parsed", want)
	if s.Freeze() || !s.DirtySince().IsZero() {
		t.Fatal("publishing the state that is in the file made the store dirty")
	}
}

func TestFreezeLifecycle(t *testing.T) {
	now := time.UnixMilli(1000)
	s := mustOpen(t, Options{Path: testPath(t), Stores: []Spec{{Name: "a"}}, Now: func() time.Time { return now }})
	s.Publish(Run{row(0, "k", "1")}, 1, State{CaughtUp: 1})
	first := s.OverlayBytes()
	if first < 2 || !s.DirtySince().Equal(now) {
		t.Fatalf("overlay %d since %v", first, s.DirtySince())
	}
	if !s.Freeze() {
		t.Fatal("nothing to freeze")
	}
	now = time.UnixMilli(2000)
	s.Publish(Run{row(0, "k", "2")}, 2, State{CaughtUp: 2})
	if s.Freeze() {
		t.Fatal("froze twice")
	}
	if s.OverlayBytes() != 2*first || !s.DirtySince().Equal(time.UnixMilli(1000)) {
		t.Fatalf("overlay %d since %v", s.OverlayBytes(), s.DirtySince())
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.WriteFrozen(cancelled); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	s.Installed() // nothing was written: nothing changes
	for range 2 { // the second finds it written
		if err := s.WriteFrozen(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	s.Installed()
	if s.OverlayBytes() != first || !s.DirtySince().Equal(now) {
		t.Fatalf("overlay %d since %v", s.OverlayBytes(), s.DirtySince())
	}
	with(t, s, func(snap *Snapshot) {
		if v, _ := snap.Get(0, []byte("k")); string(v) != "2" || snap.Commit() != 2 {
			t.Fatalf("row %q of commit %v", v, snap.Commit())
		}
	})
}

func TestEmptyKeyAndValue(t *testing.T) {
	o := Options{Path: testPath(t), Stores: []Spec{{Name: "one"}}}
	s := mustOpen(t, o)
	s.Publish(Run{row(0, "", "whole stream"), row(0, "e", "")}, nil, State{CaughtUp: 1})
	check := func() {
		t.Helper()
		with(t, s, func(snap *Snapshot) {
			want := model{specs: o.Stores, stores: []rows{{"": "whole stream", "e": ""}}}
			if err := want.check(snap, seeded(t)); err != nil {
				t.Fatal(err)
			}
			if v, ok := snap.Get(0, []byte("e")); !ok || v == nil {
				t.Fatal("an empty value is not a row")
			}
		})
	}
	check()
	mustCheckpoint(t, s)
	check()
	mustClose(t, s)
	s = mustOpen(t, o)
	check()
	s.Publish(Run{gone(0, "")}, nil, State{CaughtUp: 2})
	mustCheckpoint(t, s)
	with(t, s, func(snap *Snapshot) {
		if _, ok := snap.Get(0, nil); ok || snap.Count(0) != 1 {
			t.Fatal("the row of the empty key was not deleted")
		}
	})
}

func TestWindowsBefore1970(t *testing.T) {
	for _, c := range []struct{ start, span, want int64 }{
		{-1, 60000, -1}, {0, 60000, 0}, {59999, 60000, 0}, {60000, 60000, 1}, {-60000, 60000, -1}, {-60001, 60000, -2},
		{math.MinInt64, 1, math.MinInt64},
	} {
		if got := (Spec{Segment: c.span}).segment([]byte(window("k", c.start))); got != c.want {
			t.Errorf("start %d lies in segment %d of %d ms, want %d", c.start, got, c.span, c.want)
		}
	}
	s := mustOpen(t, Options{Path: testPath(t), Stores: []Spec{{Name: "w", Segment: 100}}})
	starts := []int64{-250, -100, -1, 0, 1, 100, 250}
	for i, start := range starts {
		s.Publish(Run{row(0, window("k", start), fmt.Sprint(start))}, nil, State{CaughtUp: int64(i)})
		if i == 3 {
			mustCheckpoint(t, s)
		}
	}
	with(t, s, func(snap *Snapshot) {
		var got []int64
		snap.ScanWindows(0, []byte("k"), -100, 101, func(start int64, v []byte) bool {
			got = append(got, start)
			return string(v) == fmt.Sprint(start)
		})
		if want := starts[1:6]; !slices.Equal(got, want) {
			t.Fatalf("windows %v, want %v", got, want)
		}
		snap.ScanWindows(0, []byte("k"), math.MinInt64, math.MaxInt64, func(int64, []byte) bool {
			got = append(got, 0)
			return false
		})
		if len(got) != 6 {
			t.Fatal("the scan did not stop where it was told to")
		}
	})
}

func TestDropSegments(t *testing.T) {
	o := Options{Path: testPath(t), Stores: []Spec{{Name: "w", Segment: 100}}}
	s := mustOpen(t, o)
	s.Publish(Run{row(0, window("k", -150), "a"), row(0, window("k", -50), "b"), row(0, window("k", 50), "c")}, nil, State{CaughtUp: 1})
	mustCheckpoint(t, s)
	held := s.Snapshot()
	s.DropSegments(0, 99) // ends of segments: -100, 0, 100
	s.Publish(Run{row(0, window("k", -10), "too late")}, nil, State{CaughtUp: 2})
	with(t, s, func(snap *Snapshot) {
		if _, ok := snap.Get(0, []byte(window("k", -50))); ok || snap.Count(0) != 1 {
			t.Fatalf("%d rows left", snap.Count(0))
		}
	})
	if held.Count(0) != 3 {
		t.Fatal("a snapshot changed")
	}
	held.Release()
	mustCheckpoint(t, s)
	mustClose(t, s)
	s = mustOpen(t, o)
	with(t, s, func(snap *Snapshot) {
		if n := len(snap.base.stores[0].segments); n != 1 || snap.Count(0) != 1 {
			t.Fatalf("%d segments and %d rows in the file", n, snap.Count(0))
		}
	})
}

func TestStoreThatIsNoMore(t *testing.T) {
	o := Options{Path: testPath(t), Stores: []Spec{{Name: "a"}, {Name: "b"}}}
	s := mustOpen(t, o)
	s.Publish(Run{row(0, "", "1"), row(0, "x", "1"), row(1, "x", "2")}, nil, State{CaughtUp: 1})
	mustCheckpoint(t, s)
	mustClose(t, s)
	without := Options{Path: o.Path, Stores: o.Stores[1:]}
	s = mustOpen(t, without)
	s.Publish(nil, nil, s.State())
	mustCheckpoint(t, s)
	mustClose(t, s)
	s = mustOpen(t, o)
	with(t, s, func(snap *Snapshot) {
		if snap.Count(0) != 0 || snap.Count(1) != 1 || snap.base.stores[0].plain != nil || snap.base.stores[0].empty != nil {
			t.Fatalf("counts %d and %d", snap.Count(0), snap.Count(1))
		}
	})
}

func TestRunOutOfOrderPanics(t *testing.T) {
	s := mustOpen(t, Options{Path: testPath(t), Stores: []Spec{{Name: "a"}, {Name: "w", Segment: 5}}})
	for name, run := range map[string]Run{
		"order":     {row(0, "b", ""), row(0, "a", "")},
		"twice":     {row(0, "a", ""), row(0, "a", "")},
		"stores":    {row(1, window("", 1), ""), row(0, "a", "")},
		"no store":  {row(2, "a", "")},
		"too short": {row(1, "a", "")},
		"too long":  {row(0, strings.Repeat("x", MaxKeySize+1), "")},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			s.Publish(run, nil, State{})
		})
	}
	s.Publish(Run{row(0, strings.Repeat("x", MaxKeySize), "longest")}, nil, State{})
	mustCheckpoint(t, s)
	with(t, s, func(snap *Snapshot) {
		if snap.Count(0) != 1 {
			t.Fatalf("%d rows", snap.Count(0))
		}
		if _, ok := snap.Get(1, []byte("short")); ok {
			t.Fatal("a key that cannot be is there")
		}
	})
}

func TestInvariant8CloseWithHeldSnapshot(t *testing.T) {
	o := Options{Path: testPath(t), Stores: []Spec{{Name: "a"}}, MmapSize: testMap}
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Publish(Run{row(0, "k", "v")}, nil, State{CaughtUp: 1})
		mustCheckpoint(t, s)
		snap := s.Snapshot()
		if err := s.Close(); !errors.Is(err, ErrSnapshotsHeld) {
			t.Fatal(err)
		}
		if s.Snapshot() != nil {
			t.Fatal("a closed store gave a snapshot")
		}
		if err := s.WriteFrozen(context.Background()); !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		s.Publish(Run{row(0, "k", "too late")}, nil, State{})
		s.Installed()
		if v, _ := snap.Get(0, []byte("k")); string(v) != "v" {
			t.Fatal("the held snapshot is not readable")
		}
		snap.Release()
		mustClose(t, s)
	})
	mustClose(t, mustOpen(t, o)) // the lock is free
}
