//go:build unix && !aix && !solaris

package store

import (
	"os"
	"syscall"
)

// unlock gives back the lock that bbolt has taken. Closing alone does not: the
// memory map keeps the file open.
func unlock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
}
