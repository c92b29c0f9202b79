package view

// Expr computes a value from a list of values: of a record's fields in the
// order of its source type, or of a row's columns in the order of its view. It
// is pure and safe for concurrent use; an error makes the record a bad one.
type Expr func(values []Value) (Value, error)

// Role says where a column's value comes from.
type Role uint8

// The roles of a column.
const (
	KeyRole   Role = iota // part of the key
	AggRole               // an aggregate: a Cell in the row
	FieldRole             // a field of a table's record
	ExprRole              // computed from the other columns when read
	StartRole             // the window's start
	EndRole               // the window's end
	FinalRole             // whether nothing can change the window any more
	IDRole                // identity for client caches: key, start, end
)

// Column is one scalar column of a view or a table.
type Column struct {
	Name    string
	Type    Type
	NonNull bool
	Role    Role

	Agg Agg // AggRole only

	// Expr gives a KeyRole's value from a record, an ExprRole's from a row.
	Expr Expr

	// Fingerprint changes when the column's meaning does: its aggregate, of,
	// where or type.
	Fingerprint string
}

// Agg is an aggregate as declared.
type Agg struct {
	Fn    Fn
	Of    Expr // nil for a count of records
	Where Expr // nil: every record
	Q     float64
	Type  Type // of the values aggregated
}

// Window is how a windowed view cuts event time, all in milliseconds.
type Window struct {
	Size, Grace, Retain int64
}

// View is a view or a table, compiled: what its rows hold and how its keys
// become bytes and partitions. It is immutable.
type View struct {
	Name    string // the GraphQL type
	Store   string
	Scope   string
	Columns []Column
	Keys    []int // key columns, in key order, as indices into Columns
	Window  *Window

	Table  bool // rows are the fields of the latest record, not cells
	Global bool // whole on every instance

	// Topic is the one whose partitions divide the rows; a task reads each.
	Topic       string
	Subtopology string
	Partitioner Partitioner
	KeyFormat   KeyFormat

	Rankings []Ranking
}

// Ranking is an order that @top asks for: by a column, among the rows for which
// Where holds.
type Ranking struct {
	By        int // index into Columns
	WhereText string
	Where     Expr // over the row's columns; nil: every row
}

// Name identifies the ranking within its view.
func (r Ranking) Name(v *View) string {
	if r.WhereText == "" {
		return v.Columns[r.By].Name
	}
	return v.Columns[r.By].Name + " where " + r.WhereText
}

// Column finds a column by name, or −1.
func (v *View) Column(name string) int {
	for i := range v.Columns {
		if v.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

// KeyTypes are the types of the key columns, in key order.
func (v *View) KeyTypes() []Type {
	types := make([]Type, len(v.Keys))
	for i, c := range v.Keys {
		types[i] = v.Columns[c].Type
	}
	return types
}

// Expired says whether a window of that start is past its retention at the
// stream time.
func (w *Window) Expired(start, streamTime int64) bool {
	return start+w.Size+w.Retain <= streamTime
}

// Closed says whether a record for the window of that start is late.
func (w *Window) Closed(start, streamTime int64) bool {
	return start+w.Size+w.Grace <= streamTime
}

// Start is the start of the window that holds t.
func (w *Window) Start(t int64) int64 { return floorTo(t, w.Size) }

// Range is the range of window starts in [from, to), as multiples of the
// window: what a row that covers the range says of its bounds. Times beyond
// MinTime and MaxTime count as these.
func (w *Window) Range(from, to int64) (first, end int64) {
	from, to = ClampTime(from), ClampTime(to)
	return ceilTo(from, w.Size), ceilTo(to, w.Size)
}

// ClampTime brings the bound of a range, which may lie one past the last
// moment, into the years that a time may have.
func ClampTime(ms int64) int64 { return min(max(ms, MinTime), MaxTime+1) }

func floorTo(t, step int64) int64 {
	r := t % step
	if r < 0 {
		r += step
	}
	return t - r
}

func ceilTo(t, step int64) int64 {
	f := floorTo(t, step)
	if f == t {
		return t
	}
	return f + step
}
