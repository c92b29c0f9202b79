package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

const (
	// compactRatio is the file size, as a multiple of the live data, from
	// which it is compacted at Open. Under load it settles at 2 to 3.5.
	compactRatio = 4

	// compactTx bounds the memory of compaction, in bytes of rows.
	compactTx = 32 << 20
)

func compactPath(path string) string { return path + ".compact" }

// compact rewrites a file that is mostly free pages. Without room on the disk
// the file stays as it is: that is no reason not to open it.
func (s *Store) compact(o Options) error {
	if err := os.Remove(compactPath(s.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an unfinished compaction: %w", err)
	}
	var live int64
	for _, c := range s.census {
		live += c.total().bytes
	}
	size, err := s.size()
	if err != nil {
		return err
	}
	least := o.CompactSize
	if least == 0 {
		least = defaultCompactSize
	}
	if size < least || size <= compactRatio*live {
		return nil
	}
	begun, old, oldFile := s.now(), s.db, s.file
	if err := s.rewrite(o.MmapSize); err != nil {
		s.db, s.file = old, oldFile
		if errors.Is(err, ErrCorrupt) {
			return err
		}
		s.log.Warn("state file could not be compacted", "path", s.path, "bytes", size, "err", err)
		return nil
	}
	if err := old.Close(); err != nil {
		return fmt.Errorf("closing the file before compaction: %w", err)
	}
	after, err := s.size()
	s.log.Info("state file compacted", "path", s.path, "live", live,
		"before", size, "after", after, "took", s.now().Sub(begun))
	return err
}

// rewrite puts a copy in the file's place and leaves it in s; the old one stays
// open. The copy is opened under its final options and renamed while both are
// locked, so that nobody can get in between.
func (s *Store) rewrite(mmap int) error {
	src, path := s.db, compactPath(s.path)
	if err := s.openDB(path, mmap); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	err := guard(func() error { return bbolt.Compact(s.db, src, compactTx) })
	if err == nil {
		err = os.Rename(path, s.path)
	}
	if err != nil {
		s.abandon(err)
		return errors.Join(err, os.Remove(path))
	}
	if err := syncDir(filepath.Dir(s.path)); err != nil {
		// Power loss may bring the old file back: an earlier checkpoint.
		s.log.Warn("the compacted state file's name may not be durable", "path", s.path, "err", err)
	}
	return nil
}

// size is the part of the file that is in use or once was, in bytes.
func (s *Store) size() (size int64, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		size = tx.Size()
		return nil
	})
	return size, err
}
