package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// ctxCheckEvery is how many rows are written between two looks at the context.
const ctxCheckEvery = 1024

// frozen is what one checkpoint writes. It does not change after Freeze.
type frozen struct {
	runs     []*run // newest first
	census   []storeCensus
	floors   []int64
	obsolete []string
	state    State
	since    time.Time

	base atomic.Pointer[base] // set once written; Installed takes it
}

// Freeze sets the present runs aside for WriteFrozen. It returns false if
// frozen runs are still there or if the file is up to date. Loop only.
func (s *Store) Freeze() bool {
	if !s.dirty || s.frozen.Load() != nil {
		return false
	}
	s.frozen.Store(&frozen{
		runs:     s.runs,
		census:   cloneCensus(s.census),
		floors:   s.floors,
		obsolete: s.obsolete,
		state:    s.state,
		since:    s.since,
	})
	s.runs, s.dirty = nil, false
	s.measure()
	return true
}

// WriteFrozen writes the frozen runs in key order, their State and counts in
// one synced transaction, without the dropped segments and the stores that are
// no more. Upon an error nothing has changed: the frozen runs stay readable
// and WriteFrozen may be tried again (ErrFull: only after opening anew;
// ErrCorrupt: not at all). With nothing frozen, or what is frozen written
// already, it does nothing. Any goroutine; reads, Publish and Freeze go on.
func (s *Store) WriteFrozen(ctx context.Context) error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	if s.closed {
		return ErrClosed
	}
	f := s.frozen.Load()
	if f == nil || f.base.Load() != nil {
		return nil
	}
	err := guard(func() error {
		return s.db.Update(func(tx *bbolt.Tx) error { return s.write(ctx, tx, f) })
	})
	if errors.Is(err, ErrCorrupt) {
		s.broken.Store(true)
	}
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		err = ErrFull
	}
	if err != nil {
		return fmt.Errorf("writing checkpoint to %s: %w", s.path, err)
	}
	b, err := s.openBase()
	if err != nil {
		return fmt.Errorf("reading checkpoint of %s: %w", s.path, err)
	}
	f.base.Store(b)
	return nil
}

// Installed lets the file take the place of the frozen runs, in a new
// snapshot. It is called after WriteFrozen has returned nil, whose goroutine
// says so by a message; otherwise it does nothing. Loop only.
func (s *Store) Installed() {
	f := s.frozen.Load()
	if f == nil || f.base.Load() == nil || s.ended() {
		return
	}
	s.frozen.Store(nil)
	s.obsolete = nil
	old := s.base
	s.base = f.base.Load()
	var commit any
	if snap := s.current.Load(); snap != nil {
		commit = snap.commit
	}
	s.publish(commit)
	old.release()
}

// Checkpoint freezes and writes and installs in one go, for a caller whose
// loop has ended, or that can wait. Loop only.
func (s *Store) Checkpoint(ctx context.Context) error {
	for {
		if s.frozen.Load() == nil && !s.Freeze() {
			return nil
		}
		if err := s.WriteFrozen(ctx); err != nil {
			return err
		}
		s.Installed()
	}
}

func (s *Store) write(ctx context.Context, tx *bbolt.Tx, f *frozen) error {
	meta, err := tx.CreateBucketIfNotExists(bucketMeta)
	if err != nil {
		return err
	}
	stores, err := tx.CreateBucketIfNotExists(bucketStores)
	if err != nil {
		return err
	}
	for _, name := range f.obsolete {
		if err := dropStore(meta, stores, name); err != nil {
			return fmt.Errorf("dropping store %s: %w", name, err)
		}
	}
	for i, spec := range s.specs {
		w := writer{store: i, spec: spec, meta: meta, floor: f.floors[i]}
		if w.bucket, err = stores.CreateBucketIfNotExists([]byte(spec.Name)); err == nil {
			err = w.write(ctx, f.runs)
		}
		if err != nil {
			return fmt.Errorf("store %s: %w", spec.Name, err)
		}
	}
	if err := meta.Put(keyVersion, binary.BigEndian.AppendUint32(nil, formatVersion)); err != nil {
		return err
	}
	if err := meta.Put(keyCensus, seal(appendCensus(nil, f.census))); err != nil {
		return err
	}
	return meta.Put(keyState, seal(appendState(nil, f.state)))
}

func dropStore(meta, stores *bbolt.Bucket, name string) error {
	if err := meta.Delete(emptyRowKey(name)); err != nil {
		return err
	}
	err := stores.DeleteBucket([]byte(name))
	if errors.Is(err, berrors.ErrBucketNotFound) {
		return nil
	}
	return err
}

// writer writes the rows of one store. Within a bucket they come in key order:
// in any other, bbolt moves half a page's elements for every new key.
type writer struct {
	store  int
	spec   Spec
	bucket *bbolt.Bucket
	meta   *bbolt.Bucket
	floor  int64

	segments map[int64]*bbolt.Bucket
}

func (w *writer) write(ctx context.Context, runs []*run) error {
	if err := w.dropSegments(); err != nil {
		return err
	}
	w.segments = map[int64]*bbolt.Bucket{}
	var m merge
	m.reset(w.spec, w.floor, nil, nil, false)
	for _, r := range runs {
		m.addRows(r.stores[w.store])
	}
	m.start()
	for n := 0; ; n++ {
		if n%ctxCheckEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		k, v, ok := m.next()
		if !ok {
			return nil
		}
		if err := w.put(k, v); err != nil {
			return fmt.Errorf("key of %d bytes: %w", len(k), err)
		}
	}
}

func (w *writer) put(k, v []byte) error {
	if len(k) == 0 {
		if v == nil {
			return w.meta.Delete(emptyRowKey(w.spec.Name))
		}
		return w.meta.Put(emptyRowKey(w.spec.Name), v)
	}
	b := w.bucket
	if w.spec.Segment > 0 {
		var err error
		if b, err = w.segment(w.spec.segment(k), v != nil); b == nil || err != nil {
			return err
		}
	}
	if v == nil {
		return b.Delete(k)
	}
	return b.Put(k, v)
}

// segment returns the bucket of a segment; nil if it is not there and not to
// be created.
func (w *writer) segment(n int64, create bool) (*bbolt.Bucket, error) {
	b := w.segments[n]
	if b != nil {
		return b, nil
	}
	name := AppendStart(nil, n)
	if b = w.bucket.Bucket(name); b == nil && create {
		var err error
		if b, err = w.bucket.CreateBucket(name); err != nil {
			return nil, fmt.Errorf("segment %d: %w", n, err)
		}
	}
	if b != nil {
		w.segments[n] = b
	}
	return b, nil
}

func (w *writer) dropSegments() error {
	if w.spec.Segment == 0 || w.floor == noFloor {
		return nil
	}
	var names [][]byte
	c := w.bucket.Cursor()
	for name, _ := c.First(); name != nil && Start(name) < w.floor; name, _ = c.Next() {
		names = append(names, bytes.Clone(name)) // deleting moves the cursor
	}
	for _, name := range names {
		if err := w.bucket.DeleteBucket(name); err != nil {
			return fmt.Errorf("dropping segment %d: %w", Start(name), err)
		}
	}
	return nil
}
