package resolve

import (
	"bytes"
	"context"
	"encoding/base64"
	"hash/fnv"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// Make turns a row into a type of the schema. parts are those of the answer.
type Make[T any] func(row *read.Row, parts []read.Part) *T

// Options are the arguments that fields share; nil: not given.
type Options struct {
	First    *int
	After    *string
	Prefix   *string
	Reverse  *bool
	From, To *DateTime
	Last     *Duration
	Step     *Duration
	Zone     *string
	Fill     *Fill
	Every    *Duration
}

// defaultFirst is the length of a page or a ranking that nobody gave.
const defaultFirst = 50

func (o *Options) time() read.Time {
	var t read.Time
	if o.From != nil {
		t.HasFrom, t.From = true, int64(*o.From)
	}
	if o.To != nil {
		t.HasTo, t.To = true, int64(*o.To)
	}
	t.Last, t.Step = positive(o.Last), positive(o.Step)
	t.Zone, t.Fill = deref(o.Zone), view.Fill(deref(o.Fill))
	return t
}

// positive is 0 for a span that was not given, and −1, which is refused, for one
// that is not positive.
func positive(d *Duration) int64 {
	switch {
	case d == nil:
		return 0
	case *d <= 0:
		return -1
	}
	return int64(*d)
}

func (o *Options) first() int {
	if o.First == nil {
		return defaultFirst
	}
	return *o.First
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// Query builders, one a kind of read; subscriptions use them too.

// LookupQuery asks for the row of a key.
func LookupQuery(store string, keys ...[]view.Value) *read.Query {
	return &read.Query{Store: store, Op: read.Get, Keys: keys}
}

// WindowsQuery asks for a key's windows; merge makes one row of them.
func WindowsQuery(store string, merge bool, o *Options, keys ...[]view.Value) *read.Query {
	return &read.Query{Store: store, Op: read.Fetch, Keys: keys, Time: o.time(), Merge: merge}
}

// RangeQuery asks for a page in key order.
func RangeQuery(store string, o *Options, prefix ...view.Value) (*read.Query, error) {
	q := &read.Query{Store: store, Op: read.Range, Prefix: prefix, First: o.first(), Reverse: deref(o.Reverse)}
	if o.Prefix != nil {
		q.HasText, q.Text = true, *o.Prefix
	}
	if o.After != nil {
		key, err := decodeCursor(store, *o.After)
		if err != nil {
			return nil, err
		}
		q.After = key
	}
	return q, nil
}

// TopQuery asks for the largest rows by a ranking.
func TopQuery(store, ranking string, o *Options, prefix ...view.Value) *read.Query {
	return &read.Query{Store: store, Op: read.Top, Ranking: ranking, Prefix: prefix, First: o.first(), Time: o.time()}
}

// SizeQuery asks for the number of keys.
func SizeQuery(store string, prefix ...view.Value) *read.Query {
	return &read.Query{Store: store, Op: read.Size, Prefix: prefix}
}

// ask reads one query for the field that ctx resolves.
func ask(ctx context.Context, v read.Views, q *read.Query) (*read.Result, error) {
	results, errs := v.Read(ctx, []*read.Query{q})
	if errs[0] != nil {
		return nil, errs[0]
	}
	note(ctx, results[0].Parts)
	return results[0], nil
}

// One answers a lookup: the row, or nil.
func One[T any](ctx context.Context, v read.Views, q *read.Query, maker Make[T]) (*T, error) {
	r, err := ask(ctx, v, q)
	if err != nil {
		return nil, err
	}
	return oneOf(r, maker), nil
}

func oneOf[T any](r *read.Result, maker Make[T]) *T {
	rows := r.Rows
	if r.Series != nil {
		rows = r.Series[0]
	}
	if len(rows) == 0 || rows[0] == nil {
		return nil
	}
	return maker(rows[0], r.Parts)
}

// List answers with rows: of many keys (nil where one is missing), of a key's
// windows, of a ranking.
func List[T any](ctx context.Context, v read.Views, q *read.Query, maker Make[T]) ([]*T, error) {
	r, err := ask(ctx, v, q)
	if err != nil {
		return nil, err
	}
	return listOf(r, maker), nil
}

func listOf[T any](r *read.Result, maker Make[T]) []*T {
	rows := r.Rows
	if r.Series != nil {
		rows = r.Series[0]
	}
	return makeAll(rows, r.Parts, maker)
}

func makeAll[T any](rows []*read.Row, parts []read.Part, f Make[T]) []*T {
	out := make([]*T, len(rows))
	for i, row := range rows {
		if row != nil {
			out[i] = f(row, parts)
		}
	}
	return out
}

// Rows answers with rows and how they stand.
func Rows[T any](ctx context.Context, v read.Views, q *read.Query, maker Make[T]) ([]*T, *Freshness, error) {
	r, err := ask(ctx, v, q)
	if err != nil {
		return nil, nil, err
	}
	return listOf(r, maker), FreshnessOf(r.Parts), nil
}

// Page is a page of rows, each with its cursor.
type Page[T any] struct {
	Nodes     []*T
	Cursors   []string
	Info      *PageInfo
	Freshness *Freshness
}

// Pages answers with a page.
func Pages[T any](ctx context.Context, v read.Views, q *read.Query, maker Make[T]) (*Page[T], error) {
	r, err := ask(ctx, v, q)
	if err != nil {
		return nil, err
	}
	return pageOf(r, q, maker), nil
}

func pageOf[T any](r *read.Result, q *read.Query, maker Make[T]) *Page[T] {
	p := &Page[T]{
		Nodes: makeAll(r.Rows, r.Parts, maker), Freshness: FreshnessOf(r.Parts),
		Info: &PageInfo{HasNextPage: r.More, HasPreviousPage: q.After != nil},
	}
	for _, row := range r.Rows {
		p.Cursors = append(p.Cursors, encodeCursor(q.Store, row.Key))
	}
	if n := len(p.Cursors); n > 0 {
		p.Info.StartCursor, p.Info.EndCursor = &p.Cursors[0], &p.Cursors[n-1]
	}
	return p
}

// Count answers with a number.
func Count(ctx context.Context, v read.Views, q *read.Query) (*int64, error) {
	r, err := ask(ctx, v, q)
	if err != nil {
		return nil, err
	}
	return &r.Count, nil
}

const cursorVersion = 1

// A cursor is a version, a mark of the store, so that one of another store is
// not taken for one of this, and the row's key.
func encodeCursor(store string, key []byte) string {
	b := append([]byte{cursorVersion}, storeMark(store)...)
	return base64.RawURLEncoding.EncodeToString(append(b, key...))
}

func decodeCursor(store, s string) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	head := append([]byte{cursorVersion}, storeMark(store)...)
	if err != nil || !bytes.HasPrefix(b, head) {
		return nil, read.Errorf(read.BadInput, "after is no cursor of this field")
	}
	return b[len(head):], nil
}

func storeMark(store string) []byte {
	h := fnv.New32a()
	h.Write([]byte(store))
	return h.Sum(nil)
}

// Bounds of what a list counts for in an operation's complexity. A series
// without a fill has a row where records fell, and is bounded elsewhere; with
// one, every step counts.
const (
	maxCounted = 1000
	maxCost    = 1 << 30
)

// RowCount is what a page or a ranking counts for.
func RowCount(o *Options) int { return min(max(o.first(), 1), maxCounted) }

// WindowCount is what a series counts for: the steps in the time asked for, over
// windows of size kept for retain, in milliseconds.
func WindowCount(size, retain int64, o *Options) int {
	n := steps(size, retain, o)
	if o.Fill == nil || view.Fill(*o.Fill) == view.FillNone {
		n = min(n, maxCounted)
	}
	return n
}

// ScanCount is what a ranking over a range of time counts for beside its rows:
// the windows of one key that it looks at.
func ScanCount(size, retain int64, o *Options) int { return steps(size, retain, o) }

func steps(size, retain int64, o *Options) int {
	filled := o.Fill != nil && view.Fill(*o.Fill) != view.FillNone
	span := retain
	switch {
	case o.Last != nil:
		span = int64(*o.Last)
	case o.From != nil && o.To != nil:
		// DateTimes are within the years 0 to 9999: this does not overflow.
		span = int64(*o.To) - int64(*o.From)
	case o.To != nil && filled:
		return maxCost // how much is filled depends on the data
	}
	if !filled {
		span = min(span, retain)
	}
	step := max(size, int64(deref(o.Step)))
	return int(min(max(span/step, 1), maxCost))
}

// Cost is what a list of n elements costs when one costs child; it does not
// overflow.
func Cost(n, child int) int { return int(min(int64(n)*int64(child), maxCost)) + 1 }
