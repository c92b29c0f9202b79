package read

import (
	"context"
	"fmt"
	"time"

	"github.com/streamgauge/streamgauge/view"
)

// Op is a kind of read.
type Op uint8

// The reads.
const (
	Get   Op = iota // rows of whole keys
	Fetch           // windows of whole keys
	Range           // a page in key order
	Top             // the largest by a ranking
	Size            // the number of keys
)

var opNames = [...]string{"Get", "Fetch", "Range", "Top", "Size"}

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("Op(%d)", uint8(o))
}

// Query is one read of one store, whole: over all the partitions it concerns.
// It is not changed by those who answer it.
type Query struct {
	Store string
	Op    Op

	// Keys are whole keys (Get, Fetch), a value a key column. The answer has a
	// place for each, in this order.
	Keys [][]view.Value

	// Prefix fixes leading key columns (Range, Top, Size). With HasText the
	// column after them begins with Text.
	Prefix  []view.Value
	HasText bool
	Text    string

	// Time confines windows (Fetch; Top of a windowed view).
	Time Time
	// Merge makes one row of a key's whole time (Fetch).
	Merge bool

	First   int    // rows at most (Range, Top); must be positive
	After   []byte // Range: the store key to go on after; nil: from the start
	Reverse bool   // Range: descending

	Ranking string // Top: the name of the view's Ranking

	// Demand is how fresh the answer must be; nil: as the gateway is configured.
	// It stays with the gateway: an instance says what it has.
	Demand *Demand
}

// Demand is the freshness that an operation asks for (the directive @read). It
// is not changed by those who answer it.
type Demand struct {
	// MaxAge bounds how long ago each part's as-of may be, in milliseconds,
	// whatever its role. 0: the gateway's default, which bounds copies that are
	// not active.
	MaxAge int64
	// ActiveOnly forbids answers of other copies.
	ActiveOnly bool
	// AtLeast are the positions of a token: a part of the same incarnation must
	// not be older. One of another incarnation is not waited for; its part says so.
	AtLeast []Position
	// Complete makes a missing partition an error.
	Complete bool
}

// Time is a range of window starts and how to cut it. Times are milliseconds
// since the epoch.
type Time struct {
	HasFrom, HasTo bool
	From, To       int64 // [From, To)
	Last           int64 // >0: the last so many ms before now; excludes From and To
	Step           int64 // 0: the view's own window
	Zone           string
	Fill           view.Fill
}

// Row is one row of an answer.
type Row struct {
	Key       []byte // the store's key, a window's start included
	Values    []view.Value
	Partition int32
}

// Result answers a Query.
type Result struct {
	// Rows of a Get have a place for each key, nil where the key is missing.
	Rows []*Row
	// Series of a Fetch have a list for each key, windows in order.
	Series [][]*Row
	Count  int64 // of a Size
	More   bool  // Range: rows follow after the last

	// Parts tell where each partition's share came from, by partition.
	Parts []Part
}

// Views answers queries: the gateway, to those who resolve fields. Safe for
// concurrent use.
type Views interface {
	// Read answers all queries, each with a Result or an error, as few
	// requests to instances as there are instances concerned.
	Read(ctx context.Context, queries []*Query) ([]*Result, []error)

	// Watch sends the query's answer, then each newer one, not more often than
	// every; a reader that lags gets the newest only. The channel ends when ctx
	// does or after an Update with an error.
	Watch(ctx context.Context, q *Query, every time.Duration) (<-chan Update, error)
}

// Update is one event of a watch: an answer, or the error that ended it.
type Update struct {
	Result *Result
	Err    error
}
