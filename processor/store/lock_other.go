//go:build !unix || aix || solaris

package store

import "os"

// unlock does nothing where locks end with the handle or the descriptor.
func unlock(*os.File) error { return nil }
