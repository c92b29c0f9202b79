package store

import (
	"fmt"

	"go.etcd.io/bbolt"
)

// Peek reads the State of a file that is not open here, without verifying its
// rows: for those who only want to know how far it is. ErrInUse when it is open;
// ErrCorrupt and ErrVersion as of Open.
func Peek(path string) (State, error) {
	var f fileMeta
	err := guard(func() error {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
		if err != nil {
			return openError(err)
		}
		err = db.View(func(tx *bbolt.Tx) (err error) {
			f, err = readMeta(tx)
			return err
		})
		if cerr := db.Close(); err == nil {
			err = cerr
		}
		return err
	})
	if err != nil {
		return State{}, fmt.Errorf("looking at store %s: %w", path, err)
	}
	return f.state, nil
}
