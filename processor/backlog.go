package processor

import (
	"bytes"

	"github.com/streamgauge/streamgauge/processor/store"
)

// backlog is what a restore has read of its changelogs and not given to the
// store yet: rows in the order of each log, of which the last of a key counts.
// It is filled and drained again and again, in memory that it keeps. The zero
// value is ready for use.
type backlog struct {
	lanes  []backlogLane
	blocks [][]byte // what rows point into; those before the last are full
	filled int      // blocks in use
	bytes  int      // of the rows, as the store counts them
}

// backlogLane has the rows of one changelog, and room to sort them in.
type backlogLane struct{ rows, room []store.Entry }

const (
	// backlogBlock is how much memory is taken at once, in bytes; a row that is
	// larger has a block of its own.
	backlogBlock = 256 << 10
	// entryOverhead is what a row costs beside its bytes, as the store counts it.
	entryOverhead = 64
)

// add takes a copy of a row of changelog i; a nil value is a tombstone.
func (b *backlog) add(i int, key, value []byte) {
	for i >= len(b.lanes) {
		b.lanes = append(b.lanes, backlogLane{})
	}
	e := store.Entry{Store: i}
	space := b.space(len(key) + len(value))
	e.Key = append(space[:0:len(key)], key...)
	if value != nil {
		e.Value = append(space[len(key):len(key)], value...)
	}
	b.lanes[i].rows = append(b.lanes[i].rows, e)
	b.bytes += len(key) + len(value) + entryOverhead
}

// space is n bytes of the blocks.
func (b *backlog) space(n int) []byte {
	if b.filled == 0 || cap(b.blocks[b.filled-1])-len(b.blocks[b.filled-1]) < n {
		if b.filled == len(b.blocks) || cap(b.blocks[b.filled]) < n {
			b.blocks = append(b.blocks[:b.filled], make([]byte, 0, max(n, backlogBlock)))
		}
		b.filled++
	}
	block := &b.blocks[b.filled-1]
	at := len(*block)
	*block = (*block)[:at+n]
	return (*block)[at : at+n : at+n]
}

// take is the backlog as a run that shares nothing with it: the newest row of
// each key, in order. The backlog is empty afterwards.
func (b *backlog) take() store.Run {
	n := 0
	for i := range b.lanes {
		l := &b.lanes[i]
		l.rows, l.room = newest(l.rows, l.room)
		n += len(l.rows)
	}
	run := make(store.Run, 0, n)
	for i := range b.lanes {
		for _, e := range b.lanes[i].rows {
			run = append(run, alone(e))
		}
		b.lanes[i].rows = b.lanes[i].rows[:0]
	}
	for i := range b.filled {
		b.blocks[i] = b.blocks[i][:0]
	}
	b.filled, b.bytes = 0, 0
	return run
}

// alone is a copy of a row in memory of its own, which goes when a newer row takes
// its place: rows that shared it would keep more than the store counts.
func alone(e store.Entry) store.Entry {
	n := len(e.Key)
	own := append(append(make([]byte, 0, n+len(e.Value)), e.Key...), e.Value...)
	e.Key = own[:n:n]
	if e.Value != nil {
		e.Value = own[n:]
	}
	return e
}

// newest sorts rows of one store by key and leaves the last of each key: a merge
// sort of the runs that are sorted already, since each transaction has written
// its rows in order. room, if it is large enough, is used for it; both are given
// back, rows first.
func newest(rows, room []store.Entry) (sorted, other []store.Entry) {
	if cap(room) < len(rows) {
		room = make([]store.Entry, 0, cap(rows))
	}
	for {
		merged := room[:0]
		runs := 0
		for rest := rows; len(rest) > 0; runs++ {
			n := ascending(rest)
			older := rest[:n]
			rest = rest[n:]
			n = ascending(rest)
			merged = mergeNewer(merged, older, rest[:n])
			rest = rest[n:]
		}
		rows, room = merged, rows
		if runs <= 1 {
			return rows, room
		}
	}
}

// ascending is the length of the longest run at the beginning, each key once.
func ascending(rows []store.Entry) int {
	for i := 1; i < len(rows); i++ {
		if bytes.Compare(rows[i-1].Key, rows[i].Key) >= 0 {
			return i
		}
	}
	return len(rows)
}

// mergeNewer appends two sorted runs to rows as one; of a key that both have the
// newer's row counts.
func mergeNewer(rows, older, newer []store.Entry) []store.Entry {
	for len(older) > 0 && len(newer) > 0 {
		switch c := bytes.Compare(older[0].Key, newer[0].Key); {
		case c < 0:
			rows, older = append(rows, older[0]), older[1:]
		case c > 0:
			rows, newer = append(rows, newer[0]), newer[1:]
		default:
			rows, older, newer = append(rows, newer[0]), older[1:], newer[1:]
		}
	}
	rows = append(rows, older...)
	return append(rows, newer...)
}
