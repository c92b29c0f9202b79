package read

// Routes say which instance holds which copy. A table is immutable; a newer
// one has a higher Generation.
type Routes struct {
	Generation int64
	Instances  map[string]Peer // by instance id
	// Partitions is the broker's count for each subtopology.
	Partitions map[string]int32
	// Copies by subtopology, then partition: the active one first, then standbys,
	// lingering copies and warm-ups. A partition whose owner is not known has no
	// active copy.
	Copies map[string][][]Copy
}

// Peer is an instance as others reach it.
type Peer struct {
	ID   string
	Addr string // host:port of its gRPC
	HTTP string // host:port of its HTTP, for people
	Rack string // where it is; "": nobody said
}

// Copy is one instance's copy of a partition.
type Copy struct {
	Instance string
	Role     Role
}

// RouteSource hands out the routes: the last known, and a channel that is
// closed when a newer table has come. Safe for concurrent use.
type RouteSource interface {
	Routes() (*Routes, <-chan struct{})
}
