package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// closeWait is how long Close waits for snapshots to be released.
const closeWait = 5 * time.Second

// Close ends the store without writing what is not in the file. It waits for a
// WriteFrozen under way and up to 5 s for the snapshots in use; are some left,
// it returns ErrSnapshotsHeld and the file is closed, and its lock given back,
// with the last Release. It may be called again, and then waits again. The
// loop must have ended.
func (s *Store) Close() error {
	s.writeMu.Lock()
	first := !s.closed
	s.closed = true
	s.writeMu.Unlock()
	if first {
		s.letGo()
	}
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-s.done:
		return s.err
	case <-timer.C:
		return fmt.Errorf("closing store %s: %w", s.path, ErrSnapshotsHeld)
	}
}

// ended tells that Close was called: there is nothing left to publish over.
func (s *Store) ended() bool {
	s.baseMu.Lock()
	defer s.baseMu.Unlock()
	return s.closing
}

// letGo releases every reference that is the store's own.
func (s *Store) letGo() {
	s.baseMu.Lock()
	s.closing = true
	s.baseMu.Unlock()
	if f := s.frozen.Load(); f != nil {
		if b := f.base.Load(); b != nil {
			b.release()
		}
	}
	if snap := s.current.Swap(nil); snap != nil {
		snap.Release()
	}
	s.base.release()
}

// openBase begins a read transaction whose end is reported to baseEnded.
func (s *Store) openBase() (*base, error) {
	s.baseMu.Lock()
	s.bases++
	s.baseMu.Unlock()
	b, err := newBase(s.db, s.specs, s.baseEnded)
	if err != nil {
		s.baseEnded(nil)
		return nil, err
	}
	return b, nil
}

// baseEnded closes the file after the last read transaction: before, bbolt's
// Close would block.
func (s *Store) baseEnded(err error) {
	if err != nil {
		s.log.Error("ending a read transaction", "path", s.path, "err", err)
	}
	s.baseMu.Lock()
	s.bases--
	last := s.closing && s.bases == 0
	s.baseMu.Unlock()
	if last {
		s.err = s.closeFile()
		close(s.done)
	}
}

// closeFile takes the marker away while the lock is still ours, then closes.
// After damage was met the marker stays, for the next Open to look closely.
func (s *Store) closeFile() error {
	if s.broken.Load() {
		return s.dropFile()
	}
	err := os.Remove(markerPath(s.path))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err := errors.Join(err, s.db.Close()); err != nil {
		return fmt.Errorf("closing store %s: %w", s.path, err)
	}
	return nil
}
