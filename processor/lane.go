package processor

import (
	"slices"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/processor/store"
)

// lane is one changelog as a follower reads it: what was read and is not in the
// store yet, divided into the transactions that it came in.
type lane struct {
	at     int   // index of the store and of its changelog
	next   int64 // next offset to read
	target int64 // offset that must be reached before anything is shown
	end    int64 // end of the log as last told
	groups []group
	open   group // rows after the newest record
	bytes  int   // of groups and open
	idle   bool  // nothing is on its way: it is to be fetched on
}

// group is a transaction's share of one changelog: rows in the order of the log,
// up to its commit record. In a compacted log it may hold the rows of several.
type group struct {
	rec  *commitRecord
	rows store.Run
	next int64 // offset after the record
}

// row keeps a record of the log.
func (l *lane) row(r *broker.Record) {
	e := store.Entry{Store: l.at, Key: slices.Clone(r.Key)}
	if r.Value != nil {
		e.Value = append(make([]byte, 0, len(r.Value)), r.Value...)
	}
	l.open.rows = append(l.open.rows, e)
	l.bytes += len(r.Key) + len(r.Value) + 64
}

// commit ends a group. One that holds nothing newer than shown is dropped: its
// rows are in the store, or newer ones are.
func (l *lane) commit(rec *commitRecord, next int64, shown uint64) {
	g := l.open
	l.open = group{}
	if rec.Seq <= shown {
		l.bytes -= sizeOfRows(g.rows)
		return
	}
	g.rec, g.next = rec, next
	l.groups = append(l.groups, g)
}

func sizeOfRows(rows store.Run) (n int) {
	for i := range rows {
		n += len(rows[i].Key) + len(rows[i].Value) + 64
	}
	return n
}

// newest is the greatest seq read; 0 without a group.
func (l *lane) newest() uint64 {
	if n := len(l.groups); n > 0 {
		return l.groups[n-1].rec.Seq
	}
	return 0
}

func (l *lane) has(seq uint64) bool {
	_, ok := slices.BinarySearchFunc(l.groups, seq, func(g group, seq uint64) int {
		switch {
		case g.rec.Seq < seq:
			return -1
		case g.rec.Seq > seq:
			return 1
		}
		return 0
	})
	return ok
}

// take removes the groups up to a seq.
func (l *lane) take(seq uint64) []group {
	n := 0
	for n < len(l.groups) && l.groups[n].rec.Seq <= seq {
		l.bytes -= sizeOfRows(l.groups[n].rows)
		n++
	}
	taken := l.groups[:n]
	l.groups = slices.Clone(l.groups[n:])
	return taken
}

// aligned is the newest seq whose record was read from every changelog, and that
// nothing in the store is newer than; applied has the newest seq in the store, by
// lane. false: there is none.
func aligned(lanes []*lane, applied []uint64) (seq uint64, ok bool) {
	floor := slices.Max(applied)
	least := slices.MinFunc(lanes, func(a, b *lane) int { return len(a.groups) - len(b.groups) })
	for _, g := range slices.Backward(least.groups) { // a common one is there too
		if g.rec.Seq <= floor {
			break
		}
		if !slices.ContainsFunc(lanes, func(l *lane) bool { return !l.has(g.rec.Seq) }) {
			return g.rec.Seq, true
		}
	}
	for i, l := range lanes {
		if applied[i] != floor && !l.has(floor) {
			return 0, false
		}
	}
	return floor, true
}

// merged is the run that groups of several changelogs add up to: the last value
// of each key, sorted.
func merged(groups []group) store.Run {
	n := 0
	for _, g := range groups {
		n += len(g.rows)
	}
	run := make(store.Run, 0, n)
	for _, g := range groups {
		run = append(run, g.rows...)
	}
	slices.SortStableFunc(run, compareEntries)
	out := run[:0]
	for i := range run {
		if i+1 < len(run) && compareEntries(run[i], run[i+1]) == 0 {
			continue // a newer value follows
		}
		out = append(out, run[i])
	}
	return out
}
