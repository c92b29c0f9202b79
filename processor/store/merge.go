package store

import (
	"bytes"

	"go.etcd.io/bbolt"
)

// merge walks sorted sources as one, in key order or in reverse. Where several
// have a key the one added first, the newest, is taken; a tombstone is an
// entry with a nil value, for the caller to skip or to apply. It is used by
// one goroutine and can be reset and used again without allocating.
type merge struct {
	sources  []source
	heap     []*source // smallest key (largest in reverse) first, then newest
	reverse  bool
	from, to []byte // bounds of cursors; nil is open
	spec     Spec
	floor    int64  // rows of segments below are skipped
	lo, hi   []byte // space for the bounds of a windows' scan
}

// source is what is left of one run or one bucket.
type source struct {
	key, value []byte // the current row
	age        int    // 0 is the newest
	rows       []Entry
	table      *table // nil for a run
	cursor     *bbolt.Cursor
}

// reset prepares for another walk over rows in [from, to).
func (m *merge) reset(spec Spec, floor int64, from, to []byte, reverse bool) {
	m.spec, m.floor, m.from, m.to, m.reverse = spec, floor, from, to, reverse
}

// close gives the cursors back and lets go of everything that was read.
func (m *merge) close() {
	for i := range m.sources {
		if s := &m.sources[i]; s.table != nil {
			s.table.cursors.Put(s.cursor)
		}
	}
	clear(m.sources)
	clear(m.heap)
	m.sources, m.heap, m.from, m.to = m.sources[:0], m.heap[:0], nil, nil
}

// addRows adds rows, sorted and already within the bounds.
func (m *merge) addRows(rows []Entry) {
	if len(rows) > 0 {
		m.sources = append(m.sources, source{age: len(m.sources), rows: rows})
	}
}

// addTable adds a bucket of the file; nil is none.
func (m *merge) addTable(t *table) {
	if t != nil {
		m.sources = append(m.sources, source{age: len(m.sources), table: t, cursor: t.cursor()})
	}
}

// start reads the first row of each source. No source may be added after it.
func (m *merge) start() {
	for i := range m.sources {
		s := &m.sources[i]
		if m.first(s) {
			m.heap = append(m.heap, s)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.down(i)
	}
}

// next returns the next row; ok is false at the end. The bytes are the
// source's own: a run's, or the transaction's.
func (m *merge) next() (key, value []byte, ok bool) {
	if len(m.heap) == 0 {
		return nil, nil, false
	}
	key, value = m.heap[0].key, m.heap[0].value
	m.advance()
	for len(m.heap) > 0 && bytes.Equal(m.heap[0].key, key) {
		m.advance()
	}
	return key, value, true
}

// advance moves the source on top to its next row, or drops it at its end.
func (m *merge) advance() {
	if !m.step(m.heap[0]) {
		last := len(m.heap) - 1
		m.heap[0] = m.heap[last]
		m.heap[last] = nil
		m.heap = m.heap[:last]
	}
	m.down(0)
}

func (m *merge) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.heap); child++ {
			if m.before(m.heap[child], m.heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heap[i], m.heap[least] = m.heap[least], m.heap[i]
		i = least
	}
}

func (m *merge) before(a, b *source) bool {
	c := bytes.Compare(a.key, b.key)
	if c == 0 {
		return a.age < b.age
	}
	return c < 0 != m.reverse
}

// first puts a source on its first row in bounds.
func (m *merge) first(s *source) bool {
	if s.table == nil {
		return m.stepRows(s)
	}
	var k, v []byte
	switch {
	case !m.reverse && len(m.from) == 0:
		k, v = s.cursor.First()
	case !m.reverse:
		k, v = s.cursor.Seek(m.from)
	case m.to == nil:
		k, v = s.cursor.Last()
	default:
		// Seek stands on the first key not below the bound, or past the end.
		if k, _ = s.cursor.Seek(m.to); k == nil {
			k, v = s.cursor.Last()
		} else {
			k, v = s.cursor.Prev()
		}
	}
	return m.accept(s, k, v)
}

// step moves a source by one row.
func (m *merge) step(s *source) bool {
	if s.table == nil {
		return m.stepRows(s)
	}
	var k, v []byte
	if m.reverse {
		k, v = s.cursor.Prev()
	} else {
		k, v = s.cursor.Next()
	}
	return m.accept(s, k, v)
}

// accept makes k the source's row unless the cursor has left the bounds.
func (m *merge) accept(s *source, k, v []byte) bool {
	if k == nil ||
		!m.reverse && m.to != nil && bytes.Compare(k, m.to) >= 0 ||
		m.reverse && bytes.Compare(k, m.from) < 0 {
		return false
	}
	s.key, s.value = k, v
	return true
}

func (m *merge) stepRows(s *source) bool {
	for len(s.rows) > 0 {
		var e *Entry
		if m.reverse {
			e, s.rows = &s.rows[len(s.rows)-1], s.rows[:len(s.rows)-1]
		} else {
			e, s.rows = &s.rows[0], s.rows[1:]
		}
		if m.floor == noFloor || m.spec.segment(e.Key) >= m.floor {
			s.key, s.value = e.Key, e.Value
			return true
		}
	}
	return false
}
