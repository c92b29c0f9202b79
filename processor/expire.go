package processor

import (
	"bytes"
	"math"
	"slices"

	"github.com/streamgauge/streamgauge/processor/store"
	"github.com/streamgauge/streamgauge/view"
)

// Reads leave expired windows out at once, by the snapshot's stream time. Their
// rows follow later: when a whole segment has expired its rows are deleted from
// the changelog, some with each commit, and then the segment is dropped.

const (
	sweepLook   = 20_000 // rows looked at in one commit
	sweepDelete = 2_000  // tombstones in one commit
)

// sweep is the deletion of one windowed store's expired rows.
type sweep struct {
	store  int
	window *view.Window
	done   int64  // everything that starts below is deleted
	target int64  // of the sweep under way; done: none is
	next   []byte // key to go on from; nil: from the first
	last   bool   // the commit under way ends the sweep
}

// reset begins anew: of a sweep that was under way it is not known how much was
// committed.
func (s *sweep) reset() {
	s.done, s.target, s.next, s.last = math.MinInt64, math.MinInt64, nil, false
}

// segmentSpan is the event time in a segment of a windowed store: two to four
// segments live at a time.
func segmentSpan(w *view.Window) int64 {
	span := max(w.Retain/3, w.Size)
	return (span + w.Size - 1) / w.Size * w.Size
}

// expire adds the tombstones that are due to a run, and keeps it sorted.
func (l *life) expire(run store.Run) store.Run {
	n := len(run)
	for i := range l.sweeps {
		run = l.sweeps[i].step(l, run, n)
	}
	if len(run) > n {
		slices.SortFunc(run, compareEntries)
	}
	return run
}

func compareEntries(a, b store.Entry) int {
	if a.Store != b.Store {
		return a.Store - b.Store
	}
	return bytes.Compare(a.Key, b.Key)
}

// step appends some tombstones; run[:n] is sorted and has what the commit
// changes anyway: of that, what has expired meanwhile becomes a tombstone too.
func (s *sweep) step(l *life, run store.Run, n int) store.Run {
	if s.target == s.done && !s.due(l.rec.Stream) {
		return run
	}
	for i := range run[:n] {
		if e := &run[i]; e.Store == s.store && s.past(e.Key) {
			e.Value = nil
		}
	}
	snap := l.store.Snapshot()
	defer snap.Release()
	looked, deleted := 0, 0
	var stopped []byte
	snap.Scan(s.store, s.next, nil, false, func(key, _ []byte) bool {
		if looked >= sweepLook || deleted >= sweepDelete {
			stopped = slices.Clone(key)
			return false
		}
		looked++
		if !s.past(key) {
			return true
		}
		e := store.Entry{Store: s.store, Key: slices.Clone(key)}
		if _, changed := slices.BinarySearchFunc(run[:n], e, compareEntries); !changed {
			run = append(run, e)
			deleted++
		}
		return true
	})
	s.next, s.last = stopped, stopped == nil
	return run
}

func (s *sweep) past(key []byte) bool {
	_, start, err := view.SplitStart(key)
	return err == nil && start < s.target
}

// committed is told that the tombstones are: only now may segments go.
func (s *sweep) committed(st *store.Store) {
	if s.last {
		s.done, s.last = s.target, false
		st.DropSegments(s.store, s.done)
	}
}

// due begins a sweep when stream time has left a whole segment behind.
func (s *sweep) due(stream int64) bool {
	if stream == noTime {
		return false
	}
	span := segmentSpan(s.window)
	limit := stream - s.window.Size - s.window.Retain + 1
	edge := limit / span * span
	if edge > limit {
		edge -= span
	}
	if edge <= s.done {
		return false
	}
	s.target, s.next = edge, nil
	return true
}
