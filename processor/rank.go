package processor

import (
	"context"
	"fmt"

	"github.com/streamgauge/streamgauge/processor/store"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/schema"
)

// rankings are a task's orders for @top: each the best rows by one column,
// among those for which a condition holds. One is built by a scan when it is
// first asked for, follows every commit, and is published with the snapshot.
// They belong to the task's loop.
type rankings struct {
	store *store.Store
	all   []*ranking
}

type ranking struct {
	id     topID
	view   *view.View
	order  view.Ranking
	reader *rowReader
	best   *store.Ranking[view.Value] // nil: not asked for yet
}

// topID names a ranking within a task.
type topID struct {
	store int
	name  string
}

// topTable has what is published of the rankings that were asked for. It is
// immutable.
type topTable map[topID]*store.Top[view.Value]

func newRankings(sub *schema.Subtopology, s *store.Store) *rankings {
	r := &rankings{store: s}
	for i, f := range sub.Feeds {
		if f.View.Window != nil {
			continue // ranked over a range of time, when read
		}
		for _, order := range f.View.Rankings {
			r.all = append(r.all, &ranking{
				id: topID{i, order.Name(f.View)}, view: f.View, order: order, reader: newRowReader(f.View),
			})
		}
	}
	return r
}

// better puts the larger value first and null last.
func better(a, b view.Value) int { return view.Compare(b, a) }

// value is what the ranking orders a row by; false when it is not ranked.
func (r *ranking) value(key, row []byte) (view.Value, bool) {
	values, err := r.reader.row(key, row, view.Bounds{})
	if err != nil {
		return view.Null, false
	}
	if r.order.Where != nil {
		if ok, err := r.order.Where(values); err != nil || !ok.Bool() {
			return view.Null, false
		}
	}
	return values[r.order.By], true
}

// follow takes a committed run, before it is published.
func (r *rankings) follow(run store.Run) {
	for _, k := range r.all {
		if k.best == nil {
			continue
		}
		for _, e := range run {
			if e.Store != k.id.store {
				continue
			}
			if e.Value != nil {
				if v, ok := k.value(e.Key, e.Value); ok {
					k.best.Set(e.Key, v)
					continue
				}
			}
			k.best.Delete(e.Key)
		}
	}
}

// repair rebuilds the rankings that have lost too many rows; true when any was.
func (r *rankings) repair() bool {
	some := false
	for _, k := range r.all {
		if k.best != nil && k.best.NeedsRepair() {
			r.build(k)
			some = true
		}
	}
	return some
}

// rebuild makes those that are kept anew.
func (r *rankings) rebuild() {
	for _, k := range r.all {
		if k.best != nil {
			r.build(k)
		}
	}
}

func (r *rankings) build(k *ranking) {
	if k.best == nil {
		k.best = store.NewRanking(rankingLimit, better)
	}
	snap := r.store.Snapshot()
	defer snap.Release()
	k.best.Rebuild(func(yield func([]byte, view.Value) bool) {
		snap.Scan(k.id.store, nil, nil, false, func(key, row []byte) bool {
			if v, ok := k.value(key, row); ok {
				return yield(key, v)
			}
			return true
		})
	})
}

// want builds the ranking of that id, if it is not there or has lost too many
// rows.
func (r *rankings) want(id topID) {
	for _, k := range r.all {
		if k.id == id && (k.best == nil || k.best.NeedsRepair()) {
			r.build(k)
		}
	}
}

func (r *rankings) publish() topTable {
	table := make(topTable)
	for _, k := range r.all {
		if k.best != nil {
			table[k.id] = k.best.Publish()
		}
	}
	return table
}

// ask has the loop of the life that serves run a message, and waits for it.
func (t *task) ask(ctx context.Context, s *serving, message func(*taskCopy)) error {
	ran := make(chan struct{})
	select {
	case t.asks <- func(c *taskCopy) { message(c); close(ran) }:
	case <-s.over:
		return errMoved
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-ran:
		return nil
	case <-s.over:
		return errMoved
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rowReader turns stored rows of one view into the columns of an answer. It is
// for one goroutine.
type rowReader struct {
	view  *view.View
	types []view.Type
	keys  []view.Value
	cells []view.Cell
}

func newRowReader(v *view.View) *rowReader {
	types := v.KeyTypes()
	return &rowReader{view: v, types: types, keys: make([]view.Value, len(types)), cells: make([]view.Cell, len(v.Columns))}
}

// row finishes one stored row. tuple is its key without a window's start.
func (r *rowReader) row(tuple, row []byte, w view.Bounds) ([]view.Value, error) {
	if err := view.DecodeKeys(r.keys, r.types, tuple); err != nil {
		return nil, fmt.Errorf("key of %s: %w", r.view.Name, err)
	}
	if r.view.Table {
		values := make([]view.Value, len(r.view.Columns))
		if err := r.view.DecodeFields(values, row); err != nil {
			return nil, err
		}
		return values, r.view.FinishFields(values, r.keys)
	}
	if err := r.view.DecodeCells(r.cells, row); err != nil {
		return nil, err
	}
	return r.view.Finish(nil, r.keys, r.cells, w)
}
