package processor

import (
	"fmt"
	"strings"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// fold is the plain answer: every record once, by store and key.
type fold map[string]*folded

type folded struct {
	c, s, hi    int64
	first, last int64
	from, to    view.Place
}

func (f fold) add(key string, n int64, at view.Place) {
	r := f[key]
	if r == nil {
		r = &folded{hi: n, first: n, last: n, from: at, to: at}
		f[key] = r
	}
	r.c++
	r.s += n
	r.hi = max(r.hi, n)
	if placeLess(at, r.from) {
		r.first, r.from = n, at
	}
	if placeLess(r.to, at) {
		r.last, r.to = n, at
	}
}

func placeLess(a, b view.Place) bool {
	if a.Time != b.Time {
		return a.Time < b.Time
	}
	if a.Partition != b.Partition {
		return a.Partition < b.Partition
	}
	return a.Offset < b.Offset
}

// text is the row as the store of that key should have it.
func (r *folded) text(key string) string {
	store, _, _ := strings.Cut(key, " ")
	switch store {
	case "by-user":
		return fmt.Sprintf("c=%d s=%d hi=%d last=%d", r.c, r.s, r.hi, r.last)
	case "by-page":
		return fmt.Sprintf("c=%d s=%d last=%d", r.c, r.s, r.last)
	case "by-tick":
		return fmt.Sprintf("c=%d s=%d first=%d", r.c, r.s, r.first)
	}
	return fmt.Sprintf("c=%d s=%d", r.c, r.s)
}

// observer checks that what was once read at a seq stays what that seq says,
// whoever answers, and that no count is less at a greater seq (invariant 2).
type observer struct {
	seen  map[sighting]string
	seqs  map[string]uint64 // greatest, by part
	count map[string]int64  // at that seq, by key

	copies map[string]uint64 // seq last read, by incarnation and part
	roles  map[read.Role]int // answers, by role
}

func newObserver() *observer {
	return &observer{
		seen: make(map[sighting]string), seqs: make(map[string]uint64), count: make(map[string]int64),
		copies: make(map[string]uint64), roles: make(map[read.Role]int),
	}
}

type sighting struct {
	part string
	seq  uint64
}

func (o *observer) saw(part string, seq uint64, what string, counts map[string]int64) error {
	at := sighting{part, seq}
	if before, ok := o.seen[at]; ok && before != what {
		return fmt.Errorf("%s at seq %d was\n%s and is\n%s", part, seq, before, what)
	}
	o.seen[at] = what
	if seq < o.seqs[part] {
		return nil // an older copy, which a caller with a token would not take
	}
	o.seqs[part] = seq
	for key, n := range counts {
		if n < o.count[key] {
			return fmt.Errorf("%s counted %d at an earlier seq and %d at %d", key, o.count[key], n, seq)
		}
		o.count[key] = n
	}
	return nil
}
