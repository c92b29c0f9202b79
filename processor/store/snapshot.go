package store

import (
	"bytes"
	"sync/atomic"
)

// Snapshot is the state after one commit, immutable and safe for concurrent
// use until Release. Bytes it hands out belong to it: they must not be
// changed, nor be used after Release. It must not be held across a network
// write: a bbolt file with an old reader grows with every checkpoint.
type Snapshot struct {
	refs   atomic.Int64
	store  *Store
	runs   []*run // newest first, the frozen ones last
	base   *base
	floors []int64 // per store: segments below were dropped
	counts []int64 // live rows per store
	commit any
}

// acquire adds a reference unless the last one is gone.
func (s *Snapshot) acquire() bool {
	for {
		n := s.refs.Load()
		if n == 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives the snapshot back. It must be called once for each Snapshot
// that Store.Snapshot returned.
func (s *Snapshot) Release() {
	if n := s.refs.Add(-1); n == 0 {
		s.base.release()
	} else if n < 0 {
		panic("store: Snapshot released twice")
	}
}

// Commit returns what was given to the Publish that made the snapshot; nil
// right after Open.
func (s *Snapshot) Commit() any { return s.commit }

// Count returns the number of live rows of a store. It is exact and costs
// nothing.
func (s *Snapshot) Count(store int) int64 { return s.counts[store] }

// Get returns the value of a key. An empty value is a value; a missing key,
// one of a dropped segment and one too short or too long to be the store's are
// not ok.
func (s *Snapshot) Get(store int, key []byte) (value []byte, ok bool) {
	spec := s.store.specs[store]
	if !spec.holds(key) {
		return nil, false
	}
	n := spec.segment(key)
	if n < s.floors[store] {
		return nil, false
	}
	for _, r := range s.runs {
		if e := find(r.stores[store], key); e != nil {
			return e.Value, e.Value != nil
		}
	}
	b := &s.base.stores[store]
	if len(key) == 0 {
		if len(b.empty) == 0 {
			return nil, false
		}
		return b.empty[0].Value, true
	}
	t := b.find(n)
	if t == nil {
		return nil, false
	}
	return t.get(key)
}

// Scan calls fn for the rows of a store with keys in [from, to) in key order,
// or in reverse, until fn returns false. Nil bounds are open. The order is
// that of whole keys, whatever segment they are in.
func (s *Snapshot) Scan(store int, from, to []byte, reverse bool, fn func(key, value []byte) bool) {
	m := s.store.merges.Get().(*merge)
	defer s.store.merges.Put(m)
	defer m.close()
	m.reset(s.store.specs[store], s.floors[store], from, to, reverse)
	for _, r := range s.runs {
		m.addRows(between(r.stores[store], from, to))
	}
	b := &s.base.stores[store]
	m.addRows(between(b.empty, from, to))
	m.addTable(b.plain)
	for i := range b.segments {
		if b.segments[i].number >= s.floors[store] {
			m.addTable(b.segments[i].table)
		}
	}
	m.start()
	for {
		k, v, ok := m.next()
		if !ok {
			return
		}
		if v != nil && !fn(k, v) {
			return
		}
	}
}

// ScanWindows calls fn for the windows of one key, given without its start,
// whose starts lie in [from, to), in ms since the epoch, in ascending order
// until fn returns false. Only segments that overlap the range are read.
func (s *Snapshot) ScanWindows(store int, key []byte, from, to int64, fn func(start int64, value []byte) bool) {
	spec := s.store.specs[store]
	if spec.Segment == 0 || from >= to {
		return
	}
	m := s.store.merges.Get().(*merge)
	defer s.store.merges.Put(m)
	defer m.close()
	m.lo = AppendStart(append(m.lo[:0], key...), from)
	m.hi = AppendStart(append(m.hi[:0], key...), to)
	m.reset(spec, s.floors[store], m.lo, m.hi, false)
	for _, r := range s.runs {
		m.addRows(between(r.stores[store], m.lo, m.hi))
	}
	first, last := max(floorDiv(from, spec.Segment), s.floors[store]), floorDiv(to-1, spec.Segment)
	for i := range s.base.stores[store].segments {
		if g := &s.base.stores[store].segments[i]; g.number >= first && g.number <= last {
			m.addTable(g.table)
		}
	}
	m.start()
	for {
		k, v, ok := m.next()
		if !ok {
			return
		}
		// A longer key that begins with this one may lie between its windows.
		if v == nil || len(k) != len(m.lo) || !bytes.HasPrefix(k, key) {
			continue
		}
		if !fn(Start(k), v) {
			return
		}
	}
}
