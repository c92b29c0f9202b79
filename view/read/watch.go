package read

// Interest is what a watcher wants to hear of: changes of some keys of a
// partition, or of any.
type Interest struct {
	ID        uint64 // the watcher's, unique within its stream
	Store     string
	Partition int32
	// Keys are encoded tuples without a window's start; nil: every key.
	Keys [][]byte
	// Prefix of the encoded keys, when Keys is nil.
	Prefix []byte
}

// WatchCommand adds an interest or removes one.
type WatchCommand struct {
	Add    *Interest
	Remove uint64 // when Add is nil
}

// EventKind says what happened.
type EventKind uint8

// The events of a watch.
const (
	// Changed: read again. Sent once after an interest is added, too, so that
	// nothing between the first read and the registration is missed.
	Changed EventKind = iota
	// Moved: the partition is no longer served here; go on elsewhere.
	Moved
	// Beat comes each second and carries the newest seq.
	Beat
)

// Event reports on an interest; a Beat's ID is 0 and it stands for the stream.
type Event struct {
	Kind   EventKind
	ID     uint64
	Seq    uint64
	Stream int64 // stream time, ms
}
