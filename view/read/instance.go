package read

import "context"

// Role is what a copy of a partition is to its instance.
type Role uint8

// The roles of a copy.
const (
	Active Role = iota
	Standby
	WarmUp
	Lingering // a former owner that still serves
	Global    // a global table, whole on every instance
)

func (r Role) String() string {
	return [...]string{"active", "standby", "warm-up", "lingering", "global"}[r]
}

// Request is one partition's share of a Query: Keys are those of the
// partition, and Time is absolute (no Last).
type Request struct {
	Query
	Partition int32
}

// Answer answers a Request: what a Result has, of one partition.
type Answer struct {
	Rows   []*Row
	Series [][]*Row
	Count  int64
	More   bool
	Part   Part
	Err    *Error // nil: answered
}

// Part says where a partition's share of an answer came from.
type Part struct {
	Partition   int32
	Instance    string
	Role        Role
	Incarnation [16]byte // the changelog's topic id
	Seq         uint64
	Lag         int64 // source records not yet in the answer
	AsOf        int64 // ms: when the copy last held everything known to be in its source; 0: never
	Stream      int64 // ms: stream time; math.MinInt64: none yet
	// Reset: the demanded token was of another incarnation, so the state was
	// rebuilt since and says nothing of what the token's holder has seen. The
	// gateway sets it.
	Reset bool
	Err   *Error
}

// Instance answers requests for the partitions it holds, and never passes one
// on. Safe for concurrent use.
type Instance interface {
	// Read answers each request in its place. The error is that of the whole
	// call: the instance was not reached.
	Read(ctx context.Context, requests []*Request) ([]*Answer, error)

	// Watch takes interests until ctx ends or commands is closed, and reports
	// what happens to them. It returns when the stream is over.
	Watch(ctx context.Context, commands <-chan WatchCommand, events func(Event)) error
}
