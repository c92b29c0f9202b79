package store

import (
	"bytes"
	"slices"
	"sort"
)

// rankingSlack is how many times limit rows a Ranking holds, so that rows may
// fall out of the best before the store must be scanned again.
const rankingSlack = 2

// Ranking keeps the best rows of a store by a compare function, ties by key
// ascending. It is built by one scan and follows every change of the store:
//
//	best ◄──────────────────────────────────────────────────► worst
//	├── limit, published ──┼── slack ──┤ floor ┤ not known ...
//
// Invariant: it holds exactly the rows that rank before floor, and no row
// outside ranks before floor. Rows at or behind it are not kept, since there
// may be better ones outside. Without a floor it holds the whole store.
//
// It belongs to one goroutine.
type Ranking[V any] struct {
	limit  int
	better func(a, b V) int

	rows   []Ranked[V]  // best first
	values map[string]V // of rows, by key
	floor  *Ranked[V]   // the best row that may be outside; nil: nothing is
	top    *Top[V]      // as published; nil: changed since
}

// Ranked is a row of a Ranking.
type Ranked[V any] struct {
	Key   []byte // must not be changed
	Value V
}

// Top is the outcome of a Ranking, immutable: the best rows of the store, best
// first. All of them are truly the best, also where there are fewer than the
// limit though the store has more (a repair is due).
type Top[V any] struct {
	Rows     []Ranked[V]
	Complete bool // Rows is the whole store
}

// NewRanking returns the ranking of an empty store that publishes at most
// limit rows. better is negative where a ranks before b, 0 in a tie; it must
// order all values.
func NewRanking[V any](limit int, better func(a, b V) int) *Ranking[V] {
	return &Ranking[V]{limit: limit, better: better, values: map[string]V{}}
}

// Rebuild starts over from all rows of the store, which scan yields in any
// order, each once; it stops where yield returns false, which it never does
// here. Keys are copied.
func (r *Ranking[V]) Rebuild(scan func(yield func(key []byte, v V) bool)) {
	r.rows, r.floor, r.top = nil, nil, nil
	most := rankingSlack * r.limit
	scan(func(key []byte, v V) bool {
		row := Ranked[V]{Key: key, Value: v}
		if !r.inside(row) {
			return true
		}
		row.Key = bytes.Clone(key)
		r.rows = append(r.rows, row)
		// Sorting now and then is cheaper than keeping the rows in order.
		if len(r.rows) >= 2*most {
			r.cut(most)
		}
		return true
	})
	r.cut(most)
	r.values = make(map[string]V, len(r.rows))
	for _, row := range r.rows {
		r.values[string(row.Key)] = row.Value
	}
}

// cut sorts rows and leaves the best n; the best of the others is the floor.
func (r *Ranking[V]) cut(n int) {
	slices.SortFunc(r.rows, r.compare)
	if len(r.rows) <= n {
		return
	}
	floor := r.rows[n]
	r.floor = &floor
	clear(r.rows[n:])
	r.rows = r.rows[:n]
}

// Set follows a new or changed row. The key is copied if it is kept.
func (r *Ranking[V]) Set(key []byte, v V) {
	r.Delete(key)
	row := Ranked[V]{Key: key, Value: v}
	if !r.inside(row) {
		return
	}
	row.Key = bytes.Clone(key)
	r.rows = slices.Insert(r.rows, r.place(row), row)
	r.values[string(key)] = v
	r.top = nil
	if last := len(r.rows) - 1; last >= rankingSlack*r.limit {
		floor := r.rows[last]
		r.floor = &floor
		r.rows = slices.Delete(r.rows, last, last+1)
		delete(r.values, string(floor.Key))
	}
}

// Delete follows a deleted row; one that is not held makes no difference.
func (r *Ranking[V]) Delete(key []byte) {
	v, ok := r.values[string(key)]
	if !ok {
		return
	}
	i := r.place(Ranked[V]{Key: key, Value: v})
	r.rows = slices.Delete(r.rows, i, i+1)
	delete(r.values, string(key))
	r.top = nil
}

// NeedsRepair tells that fewer than limit rows are left although the store may
// have more: time for Rebuild.
func (r *Ranking[V]) NeedsRepair() bool {
	return r.floor != nil && len(r.rows) < r.limit
}

// Publish returns the best rows as they are now: the same Top as before if
// nothing in the ranking has changed.
func (r *Ranking[V]) Publish() *Top[V] {
	if r.top == nil {
		n := min(len(r.rows), r.limit)
		r.top = &Top[V]{
			Rows:     slices.Clone(r.rows[:n]),
			Complete: r.floor == nil && n == len(r.rows),
		}
	}
	return r.top
}

func (r *Ranking[V]) inside(row Ranked[V]) bool {
	return r.floor == nil || r.compare(row, *r.floor) < 0
}

// place returns where row is or belongs.
func (r *Ranking[V]) place(row Ranked[V]) int {
	return sort.Search(len(r.rows), func(i int) bool { return r.compare(r.rows[i], row) >= 0 })
}

func (r *Ranking[V]) compare(a, b Ranked[V]) int {
	if c := r.better(a.Value, b.Value); c != 0 {
		return c
	}
	return bytes.Compare(a.Key, b.Key)
}
