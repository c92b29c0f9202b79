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
	blocks [][]byte   // keys and values, one after another
	block  int        // the one that is being filled
	lanes  [][]placed // rows of each changelog
	room   []placed   // to sort them in
	bytes  int        // of the rows, as the store counts them
}

// placed is a row in the blocks: its key there, and behind it the value. It has
// no pointers: there are many, and the collector need not look at them.
type placed struct {
	block, at, key uint32
	value          int32 // −1: a tombstone
}

const (
	// backlogBlock is how much memory is taken at once, in bytes; a row that is
	// larger gets a block of its own.
	backlogBlock = 256 << 10
	// entryOverhead is what a row costs beside its bytes, as the store counts it.
	entryOverhead = 64
)

// add takes a copy of a row of changelog i; a nil value is a tombstone.
func (b *backlog) add(i int, key, value []byte) {
	for i >= len(b.lanes) {
		b.lanes = append(b.lanes, nil)
	}
	space := b.space(len(key) + len(value))
	p := placed{block: uint32(b.block), at: uint32(len(*space)), key: uint32(len(key)), value: int32(len(value))}
	if value == nil {
		p.value = -1
	}
	*space = append(append(*space, key...), value...)
	b.lanes[i] = append(b.lanes[i], p)
	b.bytes += len(key) + len(value) + entryOverhead
}

// space is the block being filled, which has room for n bytes.
func (b *backlog) space(n int) *[]byte {
	for ; b.block < len(b.blocks); b.block++ {
		if block := &b.blocks[b.block]; cap(*block)-len(*block) >= n {
			return block
		}
	}
	b.blocks = append(b.blocks, make([]byte, 0, max(n, backlogBlock)))
	return &b.blocks[b.block]
}

// take is the backlog as a run that shares nothing with it: the newest row of
// each key, in order. The backlog is empty afterwards.
func (b *backlog) take() store.Run {
	n := 0
	for i := range b.lanes {
		b.sort(i)
		n += len(b.lanes[i])
	}
	run := make(store.Run, 0, n)
	for i, lane := range b.lanes {
		for _, p := range lane {
			run = append(run, b.entry(i, p))
		}
		b.lanes[i] = lane[:0]
	}
	for i := range b.blocks {
		b.blocks[i] = b.blocks[i][:0]
	}
	b.block, b.bytes = 0, 0
	return run
}

// entry is a row in memory of its own, which goes when a newer row takes its
// place: rows that shared it would keep more than the store counts.
func (b *backlog) entry(i int, p placed) store.Entry {
	own := make([]byte, p.key+uint32(max(p.value, 0)))
	copy(own, b.blocks[p.block][p.at:])
	e := store.Entry{Store: i, Key: own[:p.key:p.key]}
	if p.value >= 0 {
		e.Value = own[p.key:]
	}
	return e
}

func (b *backlog) keyOf(p placed) []byte { return b.blocks[p.block][p.at : p.at+p.key] }

func (b *backlog) compare(x, y placed) int { return bytes.Compare(b.keyOf(x), b.keyOf(y)) }

// sort puts the rows of changelog i in order and leaves the last of each key: a
// merge sort of the runs that are in order already, since each transaction has
// written its rows so.
func (b *backlog) sort(i int) {
	rows, room := b.lanes[i], b.room
	if cap(room) < len(rows) {
		room = make([]placed, 0, cap(rows))
	}
	for runs := 2; runs > 1; {
		merged := room[:0]
		runs = 0
		for rest := rows; len(rest) > 0; runs++ {
			n := b.ascending(rest)
			m := n + b.ascending(rest[n:])
			merged = b.merge(merged, rest[:n], rest[n:m])
			rest = rest[m:]
		}
		rows, room = merged, rows
	}
	b.lanes[i], b.room = rows, room
}

// ascending is the length of the longest run at the beginning, each key once.
func (b *backlog) ascending(rows []placed) int {
	for i := 1; i < len(rows); i++ {
		if b.compare(rows[i-1], rows[i]) >= 0 {
			return i
		}
	}
	return len(rows)
}

// merge appends two runs to rows as one; of a key that both have the newer's row
// counts.
func (b *backlog) merge(rows, older, newer []placed) []placed {
	for len(older) > 0 && len(newer) > 0 {
		switch c := b.compare(older[0], newer[0]); {
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
