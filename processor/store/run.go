package store

import (
	"bytes"
	"fmt"
)

const (
	// MaxKeySize is the largest key in bytes, a window's start included:
	// bbolt's limit. Whoever makes keys refuses larger ones beforehand.
	MaxKeySize = 32768

	// maxRuns is how many runs a read looks through before the frozen ones.
	maxRuns = 4

	// entryOverhead is what an Entry costs beside its bytes: three words for
	// each slice, the store index, and the allocator's rounding.
	entryOverhead = 64
)

// Entry is one changed row. A nil Value is a tombstone; an empty one is a row.
type Entry struct {
	Store      int // index into Options.Stores
	Key, Value []byte
}

// Run is the outcome of one commit: sorted by store, then key, each key once.
type Run []Entry

// run is an immutable Run with its rows found by store.
type run struct {
	stores [][]Entry
	bytes  int64 // estimated memory
}

// newRun takes over entries. Order and uniqueness are what every read relies
// on, so it panics where they do not hold.
func newRun(entries Run, specs []Spec) *run {
	r := &run{stores: make([][]Entry, len(specs))}
	begin := 0
	for i := range entries {
		e := &entries[i]
		if e.Store < 0 || e.Store >= len(specs) || !specs[e.Store].holds(e.Key) {
			panic(fmt.Sprintf("store: entry %d has a key of %d bytes in store %d", i, len(e.Key), e.Store))
		}
		if i > 0 {
			p := &entries[i-1]
			if p.Store > e.Store || p.Store == e.Store && bytes.Compare(p.Key, e.Key) >= 0 {
				panic(fmt.Sprintf("store: entry %d of a run is out of order", i))
			}
		}
		r.bytes += int64(len(e.Key) + len(e.Value) + entryOverhead)
		if i+1 == len(entries) || entries[i+1].Store != e.Store {
			r.stores[e.Store] = entries[begin : i+1]
			begin = i + 1
		}
	}
	return r
}

// find returns the entry of key, nil if the run does not have it.
func find(rows []Entry, key []byte) *Entry {
	if i := lowerBound(rows, key); i < len(rows) && bytes.Equal(rows[i].Key, key) {
		return &rows[i]
	}
	return nil
}

// lowerBound returns the index of the first row whose key is not below key.
func lowerBound(rows []Entry, key []byte) int {
	lo, hi := 0, len(rows)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if bytes.Compare(rows[mid].Key, key) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// between narrows rows to the keys in [from, to); nil is open.
func between(rows []Entry, from, to []byte) []Entry {
	if to != nil {
		rows = rows[:lowerBound(rows, to)]
	}
	if len(from) > 0 {
		rows = rows[lowerBound(rows, from):]
	}
	return rows
}

// pushRun puts newest in front of runs (newest first). An older run is merged
// into the newer while it is under twice the newer's size, so that a row is
// copied a logarithmic number of times, or while there are too many runs.
// runs itself is not changed: snapshots have it.
func pushRun(runs []*run, newest *run) []*run {
	for len(runs) > 0 && (runs[0].bytes < 2*newest.bytes || len(runs) >= maxRuns) {
		newest = mergeRuns(runs[0], newest)
		runs = runs[1:]
	}
	return append([]*run{newest}, runs...)
}

// mergeRuns returns a run with the rows of both, the newer's where both have
// the key. Tombstones stay: the file may have the key.
func mergeRuns(older, newer *run) *run {
	merged := &run{stores: make([][]Entry, len(newer.stores))}
	for i := range merged.stores {
		a, b := older.stores[i], newer.stores[i]
		switch {
		case len(a) == 0:
			merged.stores[i] = b
		case len(b) == 0:
			merged.stores[i] = a
		default:
			merged.stores[i] = mergeRows(a, b)
		}
		for j := range merged.stores[i] {
			e := &merged.stores[i][j]
			merged.bytes += int64(len(e.Key) + len(e.Value) + entryOverhead)
		}
	}
	return merged
}

func mergeRows(older, newer []Entry) []Entry {
	rows := make([]Entry, 0, len(older)+len(newer))
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

// sizeOf is the memory of runs together.
func sizeOf(runs []*run) (n int64) {
	for _, r := range runs {
		n += r.bytes
	}
	return n
}
