package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const (
	// pageSize is fixed, not the system's: larger ones are slower.
	pageSize = 4096

	lockTimeout = time.Second
)

// markerPath is where a file lies as long as the store is open.
func markerPath(path string) string { return path + ".open" }

// Discard deletes the file of a store, for it to be rebuilt. The store must
// not be open, here or elsewhere.
func Discard(path string) error {
	for _, p := range []string{compactPath(path), path, markerPath(path)} {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("discarding store %s: %w", path, err)
		}
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("syncing folder: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// guard runs f and turns its panics and memory faults into ErrCorrupt: bbolt
// panics on a page that is not what it expects, and faults outside the file.
func guard(f func() error) (err error) {
	was := debug.SetPanicOnFault(true)
	defer func() {
		debug.SetPanicOnFault(was)
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, r)
		}
	}()
	return f()
}

// open brings the file up: verified, of this layout, compacted if need be,
// marked, with a first snapshot.
func (s *Store) open(o Options) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return fmt.Errorf("creating its folder: %w", err)
	}
	if err := s.verify(); err != nil {
		return err
	}
	if err := s.openDB(s.path, o.MmapSize); err != nil {
		return err
	}
	err := guard(s.load)
	if err == nil {
		err = s.compact(o)
	}
	if err == nil {
		err = s.mark()
	}
	if err == nil {
		s.base, err = s.openBase()
	}
	if err != nil {
		s.abandon(err)
		return err
	}
	s.publish(nil)
	return nil
}

// abandon closes what is in s after it did not open.
func (s *Store) abandon(reason error) {
	var err error
	if errors.Is(reason, ErrCorrupt) {
		err = s.dropFile()
	} else {
		err = s.db.Close()
	}
	if err != nil {
		s.log.Warn("closing a state file that did not open", "path", s.path, "err", err)
	}
}

// dropFile closes the file under a database that has panicked: bbolt may hold
// locks it panicked with, so that its own Close would block. The memory map
// stays, which costs address space.
func (s *Store) dropFile() error {
	return errors.Join(unlock(s.file), s.file.Close())
}

// verify looks at an existing file under its shared lock before bbolt relies
// on it: every page if the last owner did not close it.
func (s *Store) verify() error {
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Size() < 2*pageSize {
		return fmt.Errorf("%w: it has %d bytes", ErrCorrupt, info.Size())
	}
	lock, err := bbolt.Open(s.path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
	if err != nil {
		return openError(err)
	}
	_, err = os.Stat(markerPath(s.path))
	unclean := err == nil
	begun := s.now()
	err = verifyFile(s.path, unclean)
	if err == nil && unclean {
		s.log.Debug("state file was not closed; all of it was verified",
			"path", s.path, "bytes", info.Size(), "took", s.now().Sub(begun))
	}
	return errors.Join(err, lock.Close())
}

// openDB opens path with at least the given map, larger for a large file so
// that there is room to grow in, and leaves it in s.
func (s *Store) openDB(path string, mmap int) error {
	if mmap <= 0 {
		mmap = defaultMmapSize
	}
	if info, err := os.Stat(path); err == nil {
		mmap = max(mmap, 4*int(info.Size()))
	}
	mmap = mapSize(mmap)
	s.file = nil
	options := &bbolt.Options{
		Timeout:         lockTimeout,
		FreelistType:    bbolt.FreelistArrayType,
		InitialMmapSize: mmap,
		// One byte less: at the very end bbolt would map anew, and wait for
		// the read transaction that is always open.
		MaxSize:  mmap - 1,
		PageSize: pageSize,
		OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
			var err error
			s.file, err = os.OpenFile(name, flag, perm)
			return s.file, err
		},
	}
	err := guard(func() (err error) {
		s.db, err = bbolt.Open(path, 0o600, options)
		return err
	})
	if err != nil {
		if errors.Is(err, ErrCorrupt) && s.file != nil {
			err = errors.Join(err, s.dropFile())
		}
		return openError(err)
	}
	return s.sameFile()
}

// mapSize rounds up as bbolt does: to a power of two, from 1 GiB on to a whole
// number of them.
func mapSize(n int) int {
	const step = 1 << 30
	if n > step {
		return (n + step - 1) / step * step
	}
	size := 1 << 15
	for size < n {
		size <<= 1
	}
	return size
}

// sameFile refuses a file that was renamed over or deleted while its lock was
// awaited: two owners would each have a lock, of different files.
func (s *Store) sameFile() error {
	ours, err := s.file.Stat()
	if err == nil {
		var named os.FileInfo
		if named, err = os.Stat(s.db.Path()); err == nil && !os.SameFile(ours, named) {
			err = ErrInUse
		}
	}
	if err != nil {
		return errors.Join(err, s.db.Close())
	}
	return nil
}

func openError(err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return ErrInUse
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// mark leaves the marker that Close takes away, durably: after power loss it
// must be there.
func (s *Store) mark() error {
	f, err := os.OpenFile(markerPath(s.path), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("marking it open: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("marking it open: %w", err)
	}
	return syncDir(filepath.Dir(s.path))
}

// load reads the meta bucket and compares the stores with what is asked for.
func (s *Store) load() error {
	return s.db.View(func(tx *bbolt.Tx) error {
		f, err := readMeta(tx)
		if err != nil {
			return err
		}
		s.opened, s.state = f.state, f.state.clone()
		for _, c := range f.census {
			if !slices.ContainsFunc(s.specs, func(o Spec) bool { return o.Name == c.spec.Name }) {
				s.log.Info("state file has a store that is no more; it goes with the next checkpoint",
					"path", s.path, "store", c.spec.Name, "rows", c.total().rows)
				s.obsolete = append(s.obsolete, c.spec.Name)
				s.touch()
			}
		}
		for _, spec := range s.specs {
			c := storeCensus{spec: spec, segments: map[int64]tally{}}
			if i := slices.IndexFunc(f.census, func(o storeCensus) bool { return o.spec.Name == spec.Name }); i >= 0 {
				if f.census[i].spec != spec {
					return fmt.Errorf("%w: segments of %s span %d ms, not %d",
						ErrSpec, spec.Name, f.census[i].spec.Segment, spec.Segment)
				}
				c = f.census[i]
			}
			s.census = append(s.census, c)
		}
		return nil
	})
}

// fileMeta is what a file says of itself.
type fileMeta struct {
	state  State
	census []storeCensus
}

// readMeta reads the meta bucket; a file without one is new.
func readMeta(tx *bbolt.Tx) (f fileMeta, err error) {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		if tx.Bucket(bucketStores) != nil {
			return f, fmt.Errorf("%w: rows without a meta bucket", ErrCorrupt)
		}
		return f, nil
	}
	if err := checkVersion(meta.Get(keyVersion)); err != nil {
		return f, err
	}
	if f.state, err = unsealState(meta.Get(keyState)); err != nil {
		return f, err
	}
	f.census, err = unsealCensus(meta.Get(keyCensus))
	return f, err
}

func unsealState(b []byte) (s State, err error) {
	if b, err = unseal(b); err == nil {
		s, err = decodeState(b)
	}
	if err != nil {
		return s, fmt.Errorf("%w: its state: %w", ErrCorrupt, err)
	}
	return s, nil
}

func unsealCensus(b []byte) (c []storeCensus, err error) {
	if b, err = unseal(b); err == nil {
		c, err = decodeCensus(b)
	}
	if err != nil {
		return c, fmt.Errorf("%w: its counts: %w", ErrCorrupt, err)
	}
	return c, nil
}
