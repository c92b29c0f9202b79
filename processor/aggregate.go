package processor

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/streamgauge/streamgauge/processor/store"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/schema"
)

// pendingRow is a row as changed since the last commit.
type pendingRow struct {
	cells []view.Cell
}

// feed is one view being fed: its compiled declaration and what belongs to it
// here.
type feed struct {
	*schema.Feed
	store   int // index in the task's store
	pending map[string]*pendingRow
	free    []*pendingRow // for reuse
	room    int           // of the largest row encoded last
	scratch []view.Value
	late    prometheus.Counter
	dropped prometheus.Counter
}

// aggregator folds records into the rows of a task's views. It belongs to the
// task's loop. Rows changed since the last commit are pending: decoded, in
// memory, and nobody else's to see.
type aggregator struct {
	feeds []*feed
	store *store.Store
	bytes int // estimate of what is pending

	key  []byte
	keys []view.Value
}

func newAggregator(sub *schema.Subtopology, s *store.Store, m *metrics) *aggregator {
	a := &aggregator{store: s}
	for i, f := range sub.Feeds {
		a.feeds = append(a.feeds, &feed{
			Feed: f, store: i,
			pending: make(map[string]*pendingRow),
			scratch: make([]view.Value, len(f.View.Columns)),
			late:    m.late.WithLabelValues(f.View.Store),
			dropped: m.nullKeys.WithLabelValues(f.View.Store),
		})
	}
	return a
}

// apply takes one record into one view's row. A record that is late, outside
// the view's where, or without a key it must have, is no error.
func (a *aggregator) apply(f *feed, values []view.Value, at view.Place, stream int64) error {
	if f.Where != nil {
		ok, err := f.Where(values)
		if err != nil || !ok.Bool() {
			return err
		}
	}
	ok, err := a.keyOf(f, values)
	if err != nil || !ok {
		return err
	}
	if w := f.View.Window; w != nil {
		start := w.Start(at.Time)
		if w.Closed(start, stream) {
			f.late.Inc()
			return nil
		}
		a.key = view.AppendStart(a.key, start)
	}
	if err := view.CheckKey(len(a.key)); err != nil {
		return err
	}
	row, fresh, err := a.row(f)
	if err != nil {
		return err
	}
	err = f.View.Accumulate(row.cells, values, at, f.scratch)
	if err != nil && fresh {
		delete(f.pending, string(a.key)) // a bad record makes no row
	}
	return err
}

// keyOf computes the record's key into a.key; false when a column that must
// not be null is.
func (a *aggregator) keyOf(f *feed, values []view.Value) (bool, error) {
	a.key, a.keys = a.key[:0], a.keys[:0]
	for _, i := range f.View.Keys {
		c := &f.View.Columns[i]
		v, err := c.Expr(values)
		if err != nil {
			return false, err
		}
		if v.IsNull() && c.NonNull {
			f.dropped.Inc()
			return false, nil
		}
		a.keys = append(a.keys, v)
		a.key = view.AppendKey(a.key, v)
	}
	return true, nil
}

// row finds the pending row of a.key, or, fresh, makes one of what is
// committed.
func (a *aggregator) row(f *feed) (row *pendingRow, fresh bool, err error) {
	if r, ok := f.pending[string(a.key)]; ok {
		return r, false, nil
	}
	r := f.blank()
	snap := a.store.Snapshot()
	defer snap.Release()
	if b, ok := snap.Get(f.store, a.key); ok {
		if err := f.View.DecodeCells(r.cells, b); err != nil {
			return nil, false, err
		}
	}
	f.pending[string(a.key)] = r
	a.bytes += len(a.key) + 64*len(f.View.Columns)
	return r, true, nil
}

// maxFree bounds the rows that a feed keeps for reuse.
const maxFree = 4096

// blank is a row to be filled.
func (f *feed) blank() *pendingRow {
	if n := len(f.free) - 1; n >= 0 {
		r := f.free[n]
		f.free = f.free[:n]
		return r
	}
	return &pendingRow{cells: make([]view.Cell, len(f.View.Columns))}
}

// takeRun encodes what is pending as a sorted run. Nothing is pending
// afterwards.
func (a *aggregator) takeRun() store.Run {
	n := 0
	for _, f := range a.feeds {
		n += len(f.pending)
	}
	run := make(store.Run, 0, n)
	for _, f := range a.feeds {
		from, room := len(run), 0
		for k, r := range f.pending {
			row := f.View.AppendCells(make([]byte, 0, f.room), r.cells)
			room = max(room, len(row))
			run = append(run, store.Entry{Store: f.store, Key: []byte(k), Value: row})
			if len(f.free) < maxFree {
				clear(r.cells)
				f.free = append(f.free, r)
			}
		}
		f.room = room
		slices.SortFunc(run[from:], compareEntries)
		clear(f.pending)
	}
	a.bytes = 0
	return run
}

func (a *aggregator) dirty() bool {
	for _, f := range a.feeds {
		if len(f.pending) > 0 {
			return true
		}
	}
	return false
}
