package processor

import (
	"bytes"
	"slices"
	"sort"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// top is the largest rows by a ranking, ties by key.
func (q *query) top() ([]*read.Row, error) {
	i := slices.IndexFunc(q.view.Rankings, func(r view.Ranking) bool { return r.Name(q.view) == q.req.Ranking })
	if i < 0 {
		return nil, read.Errorf(read.UnknownStore, "no ranking %q", q.req.Ranking)
	}
	order := q.view.Rankings[i]
	switch {
	case q.view.Window != nil:
		return q.topOverTime(order)
	case q.view.Table, len(q.req.Prefix) > 0: // tables keep no order of their own
		return q.topByScan(order)
	}
	best := q.pub.tops[topID{q.at, q.req.Ranking}]
	if best == nil {
		return nil, &read.Error{Code: read.NotOwner}
	}
	n := min(q.req.First, len(best.Rows))
	rows := make([]*read.Row, 0, n)
	for _, r := range best.Rows[:n] {
		b, ok := q.snap.Get(q.at, r.Key)
		if !ok {
			continue
		}
		row, err := q.finish(r.Key, b)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// topByScan ranks the rows of some leading columns by looking at all.
func (q *query) topByScan(order view.Ranking) ([]*read.Row, error) {
	from, to := q.span()
	podium := podium{order: order, first: q.req.First}
	var err error
	looked := 0
	q.snap.Scan(q.at, from, to, false, func(key, b []byte) bool {
		var row *read.Row
		if looked++; looked > q.maxRows {
			err = read.Errorf(read.TooLarge, "ranking looks at more than %d rows", q.maxRows)
		} else if err = q.look(); err != nil {
			return false
		} else if row, err = q.finish(key, b); err == nil {
			err = podium.add(row)
		}
		return err == nil
	})
	return podium.best(), err
}

// topOverTime merges each key's windows in a range of time, then ranks.
func (q *query) topOverTime(order view.Ranking) ([]*read.Row, error) {
	first, err := q.oldest(q.time)
	if err != nil {
		return nil, err
	}
	span := spanOfKey{query: q, podium: podium{order: order, first: q.req.First}, merged: make([]view.Cell, len(q.view.Columns))}
	span.from, span.to = q.view.Window.Range(first, q.time.To)
	keyFrom, keyTo := q.span()
	looked := 0
	q.snap.Scan(q.at, keyFrom, keyTo, false, func(key, b []byte) bool {
		tuple, start, kerr := view.SplitStart(key)
		if err = q.look(); err != nil {
			return false
		}
		if kerr != nil || start < span.from || start >= span.to {
			return true
		}
		if looked++; looked > q.maxRows {
			err = read.Errorf(read.TooLarge, "ranking looks at more than %d windows; ask for a shorter time", q.maxRows)
		} else {
			err = span.add(tuple, start, b)
		}
		return err == nil
	})
	if err == nil {
		err = span.close()
	}
	return span.podium.best(), err
}

// spanOfKey merges the windows of one key after the other, as a scan brings
// them, and ranks what comes of each key.
type spanOfKey struct {
	*query
	podium   podium
	from, to int64 // window starts looked at, [from, to)
	open     bool
	tuple    []byte
	merged   []view.Cell
	start    int64 // of the first window merged
	end      int64 // of the last
}

// add takes a window; that of another key ends the one before.
func (s *spanOfKey) add(tuple []byte, start int64, row []byte) error {
	if !s.open || !bytes.Equal(tuple, s.tuple) {
		if err := s.close(); err != nil {
			return err
		}
		s.open, s.tuple, s.start = true, append(s.tuple[:0], tuple...), start
		clear(s.merged)
	}
	s.end = start + s.view.Window.Size
	if err := s.view.DecodeCells(s.reader.cells, row); err != nil {
		return err
	}
	return s.view.MergeCells(s.merged, s.reader.cells)
}

// bounds are those of the range asked for, or of the windows found where the
// range is open, as a series' are that is merged whole.
func (s *spanOfKey) bounds() view.Bounds {
	from, to := s.from, s.to
	if !s.time.HasFrom {
		from = s.start
	}
	if !s.time.HasTo {
		to = s.end
	}
	return view.Bounds{Start: from, End: to, Final: s.view.Window.Closed(to-s.view.Window.Size, s.stream)}
}

// close ranks the key at hand, if there is one.
func (s *spanOfKey) close() error {
	if !s.open {
		return nil
	}
	if err := view.DecodeKeys(s.reader.keys, s.reader.types, s.tuple); err != nil {
		return err
	}
	bounds := s.bounds()
	values, err := s.view.Finish(nil, s.reader.keys, s.merged, bounds)
	if err != nil {
		return err
	}
	return s.podium.add(&read.Row{Key: view.AppendStart(slices.Clone(s.tuple), bounds.Start), Values: values, Partition: s.req.Partition})
}

// podium keeps the first rows of an order, among those for which its condition
// holds.
type podium struct {
	order view.Ranking
	first int
	rows  []*read.Row
}

func (p *podium) add(row *read.Row) error {
	if p.order.Where != nil {
		if ok, err := p.order.Where(row.Values); err != nil || !ok.Bool() {
			return err
		}
	}
	p.rows = append(p.rows, row)
	if len(p.rows) >= 2*p.first+64 { // now and then, those that cannot be among the first go
		p.rows = p.best()
	}
	return nil
}

func (p *podium) best() []*read.Row {
	sort.Slice(p.rows, func(i, j int) bool {
		a, b := p.rows[i], p.rows[j]
		if c := better(a.Values[p.order.By], b.Values[p.order.By]); c != 0 {
			return c < 0
		}
		return bytes.Compare(a.Key, b.Key) < 0
	})
	return p.rows[:min(len(p.rows), p.first)]
}
