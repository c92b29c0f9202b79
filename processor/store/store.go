package store

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

// Spec names a store.
type Spec struct {
	Name    string // unique within the task
	Segment int64  // ms of event time a segment spans; 0: not windowed
}

// Options of Open.
type Options struct {
	Path   string // of the file; its folder is created
	Stores []Spec // Entry.Store and the reads name them by index

	// MmapSize is the least memory map, in bytes of address space (default
	// 16 GiB). The file cannot grow beyond it while it is open.
	MmapSize int

	// CompactSize is the file size in bytes from which Open compares it with
	// the live data and compacts (default 64 MiB).
	CompactSize int64

	Logger *slog.Logger
	Now    func() time.Time // default time.Now
}

const (
	defaultMmapSize    = 16 << 30
	defaultCompactSize = 64 << 20
)

// Store is the state of one task. See the package comment for what may be
// called from where.
type Store struct {
	path  string
	specs []Spec
	log   *slog.Logger
	now   func() time.Time

	db     *bbolt.DB
	file   *os.File // the db's, for when bbolt cannot close it any more
	broken atomic.Bool
	merges sync.Pool // of *merge
	opened State     // as found on disk

	// The loop's.
	runs     []*run // newest first
	base     *base
	census   []storeCensus
	floors   []int64 // never changed in place: snapshots share it
	obsolete []string
	state    State
	dirty    bool      // something is not in the file and not frozen
	since    time.Time // since when

	frozen  atomic.Pointer[frozen] // set by Freeze, cleared by Installed
	current atomic.Pointer[Snapshot]

	overlay    atomic.Int64
	dirtySince atomic.Int64 // ns, 0: clean

	writeMu sync.Mutex // one WriteFrozen at a time, none once closed
	closed  bool

	baseMu  sync.Mutex // guards what follows
	bases   int        // open read transactions
	closing bool       // the last of them closes the file
	done    chan struct{}
	err     error // of closing the file; read after done
}

// Open opens or creates a store. It takes the lock of the file, waiting for a
// second at most. Errors to branch on: ErrInUse; ErrCorrupt, ErrVersion and
// ErrSpec, upon which the caller may Discard the file and rebuild.
func Open(o Options) (*Store, error) {
	s, err := newStore(o)
	if err == nil {
		err = s.open(o)
	}
	if err != nil {
		return nil, fmt.Errorf("opening store %s: %w", o.Path, err)
	}
	return s, nil
}

func newStore(o Options) (*Store, error) {
	s := &Store{
		path:   o.Path,
		specs:  slices.Clone(o.Stores),
		log:    o.Logger,
		now:    o.Now,
		floors: make([]int64, len(o.Stores)),
		done:   make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.merges.New = func() any { return new(merge) }
	for i, spec := range s.specs {
		if spec.Name == "" || spec.Segment < 0 {
			return nil, fmt.Errorf("store %d has no name or a negative segment", i)
		}
		if slices.ContainsFunc(s.specs[:i], func(o Spec) bool { return o.Name == spec.Name }) {
			return nil, fmt.Errorf("two stores are named %s", spec.Name)
		}
		s.floors[i] = noFloor
	}
	return s, nil
}

// State returns what the file said when it was opened; zero if it was new.
func (s *Store) State() State { return s.opened.clone() }

// OverlayBytes estimates the memory of everything that is not in the file, in
// bytes, frozen runs included. Any goroutine.
func (s *Store) OverlayBytes() int64 { return s.overlay.Load() }

// DirtySince returns since when there has been something that is not in the
// file; zero if there is nothing. Any goroutine.
func (s *Store) DirtySince() time.Time {
	ns := s.dirtySince.Load()
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Snapshot returns the newest snapshot, to be Released; nil after Close. Any
// goroutine.
func (s *Store) Snapshot() *Snapshot {
	for {
		snap := s.current.Load()
		if snap == nil || snap.acquire() {
			return snap
		}
		// Replaced in between: its last reference is gone.
	}
}

// Publish makes a committed run visible in a new snapshot, which carries
// commit, whatever that is to the caller. state is what the next checkpoint
// persists with it. The store keeps the run and its bytes: the caller must not
// change them any more. Rows of dropped segments are left out. Loop only.
//
// It panics on a run that is not sorted, repeats a key, or has a key that its
// store cannot hold (more than MaxKeySize, or shorter than a window's start).
// After Close it does nothing.
func (s *Store) Publish(entries Run, commit any, state State) {
	if s.ended() {
		return
	}
	entries = slices.DeleteFunc(entries, s.dropped)
	if len(entries) > 0 {
		r := newRun(entries, s.specs)
		s.count(entries)
		s.runs = pushRun(s.runs, r)
	}
	if len(entries) > 0 || !state.equal(s.state) {
		s.touch()
	}
	s.state = state.clone()
	s.publish(commit)
}

// DropSegments drops the segments of a windowed store whose whole span ends at
// or before the given time, in ms: they are invisible from the next snapshot
// on, which is Publish's, and leave the file with the next checkpoint. Time
// never goes back: an earlier one changes nothing. Loop only.
func (s *Store) DropSegments(store int, before int64) {
	span := s.specs[store].Segment
	if span == 0 {
		return
	}
	floor := floorDiv(before, span)
	if floor <= s.floors[store] {
		return
	}
	s.floors = slices.Clone(s.floors)
	s.floors[store] = floor
	for n := range s.census[store].segments {
		if n < floor {
			delete(s.census[store].segments, n)
			s.touch()
		}
	}
}

func (s *Store) dropped(e Entry) bool {
	if e.Store < 0 || e.Store >= len(s.specs) || s.floors[e.Store] == noFloor || !s.specs[e.Store].holds(e.Key) {
		return false // newRun says what is wrong with it
	}
	return s.specs[e.Store].segment(e.Key) < s.floors[e.Store]
}

// count brings the tallies up to date: each changed key is looked up as it was
// before. Keys come in order, which keeps the lookups in cached pages.
func (s *Store) count(entries Run) {
	before := s.view(nil)
	for i := range entries {
		e := &entries[i]
		was, ok := before.Get(e.Store, e.Key)
		if ok && was == nil {
			was = []byte{}
		}
		s.census[e.Store].change(s.specs[e.Store].segment(e.Key), e.Key, was, e.Value)
	}
}

// touch notes that the file is behind.
func (s *Store) touch() {
	if !s.dirty {
		s.dirty, s.since = true, s.now()
	}
}

// view is the present state as a snapshot that holds no reference.
func (s *Store) view(commit any) *Snapshot {
	runs := slices.Clip(s.runs)
	if f := s.frozen.Load(); f != nil {
		runs = append(runs, f.runs...)
	}
	return &Snapshot{store: s, runs: runs, base: s.base, floors: s.floors, commit: commit}
}

// publish replaces the current snapshot.
func (s *Store) publish(commit any) {
	snap := s.view(commit)
	snap.base.acquire()
	snap.refs.Store(1)
	snap.counts = make([]int64, len(s.specs))
	for i := range s.census {
		snap.counts[i] = s.census[i].total().rows
	}
	s.measure()
	if old := s.current.Swap(snap); old != nil {
		old.Release()
	}
}

// measure updates what others may ask for.
func (s *Store) measure() {
	overlay, since := sizeOf(s.runs), s.since
	if f := s.frozen.Load(); f != nil {
		overlay += sizeOf(f.runs)
		since = f.since
	} else if !s.dirty {
		since = time.Time{}
	}
	s.overlay.Store(overlay)
	if since.IsZero() {
		s.dirtySince.Store(0)
	} else {
		s.dirtySince.Store(since.UnixNano())
	}
}
