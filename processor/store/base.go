package store

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
)

// base is one bbolt read transaction, shared by all snapshots published
// between two checkpoints, with its buckets looked up once.
type base struct {
	refs   atomic.Int64
	tx     *bbolt.Tx
	stores []baseStore
	onEnd  func(error) // after the transaction has ended
}

// baseStore is a store in the file.
type baseStore struct {
	plain    *table    // nil if windowed, or not in the file yet
	segments []segment // ascending; nil if not windowed
	empty    []Entry   // the row of the empty key, if there is one
}

type segment struct {
	number int64
	table  *table
}

// table is a bucket with its idle cursors: a cursor costs allocations, a Seek
// with one at hand none. Buckets of a read transaction may be read by many
// goroutines, a cursor by one at a time.
type table struct {
	bucket  *bbolt.Bucket
	cursors sync.Pool
}

// newBase begins a read transaction. The caller owns its one reference.
func newBase(db *bbolt.DB, specs []Spec, onEnd func(error)) (*base, error) {
	tx, err := db.Begin(false)
	if err != nil {
		return nil, fmt.Errorf("beginning a read transaction: %w", err)
	}
	b := &base{tx: tx, stores: make([]baseStore, len(specs)), onEnd: onEnd}
	b.refs.Store(1)
	stores, meta := tx.Bucket(bucketStores), tx.Bucket(bucketMeta)
	if stores == nil || meta == nil {
		return b, nil
	}
	for i, spec := range specs {
		if v := meta.Get(emptyRowKey(spec.Name)); v != nil {
			b.stores[i].empty = []Entry{{Store: i, Key: []byte{}, Value: v}}
		}
		bucket := stores.Bucket([]byte(spec.Name))
		if bucket == nil {
			continue
		}
		if spec.Segment == 0 {
			b.stores[i].plain = &table{bucket: bucket}
			continue
		}
		c := bucket.Cursor()
		for name, _ := c.First(); name != nil; name, _ = c.Next() {
			b.stores[i].segments = append(b.stores[i].segments,
				segment{number: Start(name), table: &table{bucket: bucket.Bucket(name)}})
		}
	}
	return b, nil
}

// acquire adds a reference; the caller holds one already.
func (b *base) acquire() *base {
	b.refs.Add(1)
	return b
}

func (b *base) release() {
	if b.refs.Add(-1) == 0 {
		b.onEnd(b.tx.Rollback())
	}
}

// find returns the table that has a key of segment n, nil if the file has none.
func (s *baseStore) find(n int64) *table {
	if s.plain != nil {
		return s.plain
	}
	i, ok := slices.BinarySearchFunc(s.segments, n, func(s segment, n int64) int { return cmp.Compare(s.number, n) })
	if !ok {
		return nil
	}
	return s.segments[i].table
}

func (t *table) cursor() *bbolt.Cursor {
	if c, ok := t.cursors.Get().(*bbolt.Cursor); ok {
		return c
	}
	return t.bucket.Cursor()
}

// get returns the value of key; it lives as long as the transaction.
func (t *table) get(key []byte) ([]byte, bool) {
	c := t.cursor()
	k, v := c.Seek(key)
	t.cursors.Put(c)
	if k == nil || !bytes.Equal(k, key) {
		return nil, false
	}
	return v, true
}
