package processor

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// query is one request being answered from one snapshot.
type query struct {
	source
	ctx       context.Context // the request's: its answer is made in one call
	req       *read.Request
	time      read.Time // the request's, within the years that a time may have
	reader    *rowReader
	maxRows   int
	maxPoints int
	stream    int64
	looked    int
}

// look is called for each row that is looked at, and now and then finds that
// nobody waits for the answer any more.
func (q *query) look() error {
	if q.looked++; q.looked%1024 != 0 {
		return nil
	}
	return q.ctx.Err()
}

// get answers each key in order, nil for one that is missing.
func (q *query) get() ([]*read.Row, error) {
	if q.view.Window != nil {
		return nil, read.Errorf(read.BadInput, "%s is windowed: fetch its windows", q.view.Name)
	}
	rows := make([]*read.Row, len(q.req.Keys))
	var key []byte
	for i, k := range q.req.Keys {
		if err := q.look(); err != nil {
			return nil, err
		}
		key = view.AppendKeys(key[:0], k)
		b, ok := q.snap.Get(q.at, key)
		if !ok {
			continue
		}
		row, err := q.finish(key, b)
		if err != nil {
			return nil, err
		}
		rows[i] = row
	}
	return rows, nil
}

// finish makes an answer's row of a stored one, whose key may have a window's
// start at its end.
func (q *query) finish(key, row []byte) (*read.Row, error) {
	tuple, bounds := key, view.Bounds{}
	if q.view.Window != nil {
		var start int64
		var err error
		if tuple, start, err = view.SplitStart(key); err != nil {
			return nil, err
		}
		bounds = q.bounds(start)
	}
	values, err := q.reader.row(tuple, row, bounds)
	if err != nil {
		return nil, err
	}
	return &read.Row{Key: slices.Clone(key), Values: values, Partition: q.req.Partition}, nil
}

func (q *query) bounds(start int64) view.Bounds {
	w := q.view.Window
	return view.Bounds{Start: start, End: start + w.Size, Final: w.Closed(start, q.stream)}
}

// expired says whether a key's window is past retention; never for a view
// without windows.
func (q *query) expired(key []byte) bool {
	if q.view.Window == nil || q.stream == noTime {
		return false
	}
	_, start, err := view.SplitStart(key)
	return err == nil && q.view.Window.Expired(start, q.stream)
}

// page is some rows in key order.
func (q *query) page() ([]*read.Row, bool, error) {
	from, to := q.span()
	// A cursor comes from outside: it may narrow what the fixed columns allow,
	// never widen it.
	switch after := q.req.After; {
	case len(after) == 0:
	case q.req.Reverse && (to == nil || bytes.Compare(after, to) < 0):
		to = after
	case !q.req.Reverse && bytes.Compare(after, from) >= 0:
		from = append(slices.Clone(after), 0)
	}
	if to != nil && bytes.Compare(from, to) >= 0 {
		return nil, false, nil
	}
	var rows []*read.Row
	var err error
	more := false
	q.snap.Scan(q.at, from, to, q.req.Reverse, func(key, row []byte) bool {
		if err = q.look(); err != nil {
			return false
		}
		if q.expired(key) {
			return true
		}
		if len(rows) == q.req.First {
			more = true
			return false
		}
		var r *read.Row
		if r, err = q.finish(key, row); err != nil {
			return false
		}
		rows = append(rows, r)
		return true
	})
	return rows, more, err
}

// span is the range of keys that the fixed columns and the text allow.
func (q *query) span() (from, to []byte) {
	if !q.req.HasText {
		return view.PrefixRange(q.req.Prefix)
	}
	prefix := view.AppendTextPrefix(view.AppendKeys(nil, q.req.Prefix), q.req.Text)
	return prefix, view.PrefixEnd(prefix)
}

func (q *query) size() (int64, error) {
	if len(q.req.Prefix) == 0 && !q.req.HasText && q.view.Window == nil {
		return q.snap.Count(q.at), nil
	}
	from, to := q.span()
	n := int64(0)
	var err error
	q.snap.Scan(q.at, from, to, false, func(key, _ []byte) bool {
		if !q.expired(key) {
			n++
		}
		err = q.look()
		return err == nil
	})
	return n, err
}

// fetch is the windows of each key, merged into steps or into one row.
func (q *query) fetch(zones *zoneCache) ([][]*read.Row, error) {
	w, t := q.view.Window, q.time
	if w == nil {
		return nil, read.Errorf(read.BadInput, "%s has no windows", q.view.Name)
	}
	zone, err := zones.get(t.Zone)
	if err != nil {
		return nil, err
	}
	grid, err := view.NewGrid(w.Size, t.Step, zone)
	if err != nil {
		return nil, err
	}
	from, err := q.oldest(t)
	if err != nil {
		return nil, err
	}
	if err := fits(grid, from, t.To); err != nil {
		return nil, err
	}
	series := make([][]*read.Row, len(q.req.Keys))
	room := q.maxRows // for all keys together
	for i, k := range q.req.Keys {
		if err := q.ctx.Err(); err != nil {
			return nil, err
		}
		if series[i], err = q.series(grid, k, from, room); err != nil {
			return nil, err
		}
		room -= len(series[i])
	}
	return series, nil
}

// fits refuses a grid that does not divide the days at either end of a range,
// whatever data there is within. Ends before 1970, when zones were off by
// minutes, are left to what data there is.
func fits(grid *view.Grid, from, to int64) error {
	for _, at := range [...]int64{from, to - 1} {
		if at < 0 || from >= to {
			continue
		}
		if _, _, err := grid.Bounds(at); err != nil {
			return err
		}
	}
	return nil
}

// oldest is the first window start to look at: what was asked for, or where
// retention ends. A time wholly before that is an error, not an empty answer.
func (q *query) oldest(t read.Time) (int64, error) {
	w := q.view.Window
	if q.stream == noTime {
		if t.HasFrom {
			return t.From, nil
		}
		return noTime, nil
	}
	kept := q.stream - w.Size - w.Retain + 1
	if t.HasTo && t.To <= kept {
		return 0, read.Errorf(read.BadInput, "the time asked for is older than the %s that %s is kept", view.FormatDuration(w.Retain), q.view.Name)
	}
	if t.HasFrom {
		return max(t.From, kept), nil
	}
	return kept, nil
}

func (q *query) series(grid *view.Grid, key []view.Value, from int64, room int) ([]*read.Row, error) {
	t := q.time
	tuple := view.AppendKeys(nil, key)
	if !t.HasFrom {
		from = q.firstWindow(tuple, from, t.To)
	}
	if from == noTime || from >= t.To {
		return nil, nil
	}
	limit := room
	if !q.req.Merge {
		limit = min(limit, q.maxPoints)
	}
	s := view.NewSeries(q.view, grid, from, t.To, q.stream, limit)
	var err error
	q.snap.ScanWindows(q.at, tuple, from, t.To, func(start int64, row []byte) bool {
		if err = q.look(); err != nil {
			return false
		}
		if err = q.view.DecodeCells(q.reader.cells, row); err == nil {
			err = s.Add(start, q.reader.cells)
		}
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return q.points(s, key, tuple)
}

func (q *query) points(s *view.Series, key []view.Value, tuple []byte) ([]*read.Row, error) {
	var points []view.Point
	var err error
	if q.req.Merge {
		var whole view.Point
		var ok bool
		if whole, ok, err = s.Whole(!q.time.HasFrom, !q.time.HasTo); ok {
			points = []view.Point{whole}
		}
	} else {
		points, err = s.Points(q.time.Fill)
	}
	if err != nil {
		return nil, err
	}
	rows, err := q.view.Rows(points, key, q.time.Fill)
	if err != nil {
		return nil, err
	}
	out := make([]*read.Row, len(rows))
	for i, values := range rows {
		at := view.AppendStart(slices.Clone(tuple), points[i].Start)
		out[i] = &read.Row{Key: at, Values: values, Partition: q.req.Partition}
	}
	return out, nil
}

// firstWindow is the start of the key's first window at or after from; noTime
// when it has none.
func (q *query) firstWindow(tuple []byte, from, to int64) int64 {
	first := int64(noTime)
	q.snap.ScanWindows(q.at, tuple, from, to, func(start int64, _ []byte) bool {
		first = start
		return false
	})
	return first
}

// zoneCache keeps the time zones that were asked for: as many as there are in
// the world at most. Safe for concurrent use.
type zoneCache struct{ zones sync.Map }

func (c *zoneCache) get(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if z, ok := c.zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	z, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, read.Errorf(read.BadInput, "no time zone %q", name)
	}
	c.zones.Store(name, z)
	return z, nil
}
