package schema

import "github.com/streamgauge/streamgauge/view"

// Topology is a checked schema, compiled: what the workers run and what the
// API reads. It is immutable and safe for concurrent use.
type Topology struct {
	Sources       []*Source
	Views         []*view.View // views and tables, in the order of the file
	Subtopologies []*Subtopology
	Tables        []*Table // global tables
	Reads         []*Read  // root fields and nested ones, in the order of the file

	// Fingerprint of everything that a row or a record form depends on.
	Fingerprint string
}

// Source is one source type: how the records of a topic become values.
type Source struct {
	Name   string // the GraphQL type
	Topic  string
	Fields []Field
	Time   int // index into Fields of the event time; -1: the record's timestamp

	Key         []int // fields that the producer's key holds, as indices into Fields; nil: not declared
	KeyFormat   view.KeyFormat
	Partitioner view.Partitioner
}

// The types of record fields are the package view's: the decoders use them too.
type (
	// Field is a field of a source or of a table's record.
	Field = view.Field
	// Path says where in a record a field comes from.
	Path = view.Path
	// Origin is the part of a record that a path begins in.
	Origin = view.Origin
)

// The origins of a path.
const (
	InValue   = view.InValue
	TheValue  = view.TheValue
	TheKey    = view.TheKey
	TheTime   = view.TheTime
	TheHeader = view.TheHeader
)

// Table is a global table: the latest record of each key of a topic.
type Table struct {
	View   *view.View
	Topic  string
	Fields []Field // one for each FieldRole or KeyRole column that the value or key gives
	Column []int   // the column of View that each field fills
}

// Subtopology is what one task a partition runs.
type Subtopology struct {
	Name        string // "flights", "flights-by-origin"
	Topic       string // the source topic; "" for a repartition, named after the application
	Repartition *Repartition

	Sources  []*Source      // a source subtopology: every source type on its topic
	Feeds    []*Feed        // the views kept here
	Forwards []*Repartition // a source subtopology: where its records go on to
}

// Repartition sends the records of one source on by other columns.
type Repartition struct {
	Name   string
	Source *Source
	By     []view.Expr // over the source's fields, in key order
	Types  []view.Type // of the key columns
	// Required: a record with null in a column whose place is true is dropped
	// and counted: no view behind it lets that column be null. Where it is
	// false, null is a group of its own for the views that allow it; the others
	// drop it by their column's NonNull.
	Required []bool
	Format   view.KeyFormat
	Carry    []int // the source's fields that the views downstream need
}

// Feed is a view as fed by a source's records.
type Feed struct {
	View   *view.View
	Source *Source
	Where  view.Expr // over the source's fields; nil: every record
}

// TopicOf is the topic that the subtopology's tasks read.
func (s *Subtopology) TopicOf(app string) string {
	if s.Repartition == nil {
		return s.Topic
	}
	return app + "-" + s.Name + "-repartition"
}

// Changelog is the topic of a store's changes.
func Changelog(app, store string) string { return app + "-" + store + "-changelog" }

// Op is what a field asks of a view.
type Op uint8

// The reads.
const (
	Lookup Op = iota
	Windows
	Range
	Top
	Size
)

// Shape is the form in which a field returns its answer.
type Shape uint8

// The shapes.
const (
	OneRow Shape = iota // the row, or null
	RowList
	Connection
	Wrapper // a type with rows and freshness
	Number  // of @size
)

// Read is one field that reads a view.
type Read struct {
	Parent string // Query, Subscription or a view's type
	Field  string
	Op     Op
	Shape  Shape
	View   *view.View

	// Args are the arguments that fix a leading key column, in key order. For a
	// nested field Columns are the parent's columns instead.
	Args    []KeyArg
	Columns []string
	ListArg string   // a lookup of many: the argument with the list
	ListOf  []string // of an input: its fields in key order; nil: the elements are the key

	Options []string // the other arguments declared: first, after, prefix, …
	By      string   // Top: the column
	Where   string   // Top: the condition, as written
	Batch   bool     // nested: answered for all parents of an operation at once
}

// KeyArg is an argument that fixes a key column.
type KeyArg struct {
	Name   string
	Column int // index into View.Columns
}

// Ranking is the name of what a @top reads, as view.Ranking.Name gives it; ""
// for any other read.
func (r *Read) Ranking() string {
	if r.Op != Top {
		return ""
	}
	k := view.Ranking{By: r.View.Column(r.By), WhereText: r.Where}
	return k.Name(r.View)
}

// View finds a view or a table by its GraphQL type; nil when there is none.
func (t *Topology) View(name string) *view.View {
	for _, v := range t.Views {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// ByStore finds a view or a table by its store's name; nil when there is none.
func (t *Topology) ByStore(store string) *view.View {
	for _, v := range t.Views {
		if v.Store == store {
			return v
		}
	}
	return nil
}
