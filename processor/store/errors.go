package store

import "errors"

// Errors of Open. All are wrapped with the path and the reason.
var (
	// ErrInUse says that another process, or another Store of this one,
	// holds the file.
	ErrInUse = errors.New("state file is in use by another process")

	// ErrCorrupt says that the file is damaged: Discard it and rebuild.
	// WriteFrozen returns it too; the Store must then be closed.
	ErrCorrupt = errors.New("state file is damaged")

	// ErrVersion says that the file was written by a newer version.
	ErrVersion = errors.New("state file has a newer format version")

	// ErrSpec says that a store in the file is not of the kind asked for:
	// its segments span another time.
	ErrSpec = errors.New("state file has another layout")
)

// Errors of an open Store.
var (
	// ErrFull is returned by WriteFrozen when the file nears the end of its
	// memory map. The file stays good and the frozen runs readable. Close and
	// open the store again: the map grows with the file.
	ErrFull = errors.New("state file has reached the end of its memory map")

	// ErrClosed is returned by WriteFrozen after Close.
	ErrClosed = errors.New("store is closed")

	// ErrSnapshotsHeld is returned by Close when snapshots were not released
	// in time. The file closes with the last release.
	ErrSnapshotsHeld = errors.New("snapshots are still held")
)
