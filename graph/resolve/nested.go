package resolve

import (
	"context"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// OneEach looks up a row for each parent, in one read. A parent whose key is
// null in a column has none.
func OneEach[P, T any](ctx context.Context, v read.Views, parents []*P, key func(*P) []view.Value, query func(keys ...[]view.Value) *read.Query, maker Make[T]) ([]*T, error) {
	out, err := each(ctx, v, parents, key, query, maker)
	if err != nil {
		return nil, err
	}
	ones := make([]*T, len(parents))
	for i, rows := range out {
		if len(rows) > 0 {
			ones[i] = rows[0]
		}
	}
	return ones, nil
}

// ListEach reads the windows of each parent's key, in one read.
func ListEach[P, T any](ctx context.Context, v read.Views, parents []*P, key func(*P) []view.Value, query func(keys ...[]view.Value) *read.Query, maker Make[T]) ([][]*T, error) {
	return each(ctx, v, parents, key, query, maker)
}

func each[P, T any](ctx context.Context, v read.Views, parents []*P, key func(*P) []view.Value, query func(keys ...[]view.Value) *read.Query, maker Make[T]) ([][]*T, error) {
	out := make([][]*T, len(parents))
	var keys [][]view.Value
	places := map[string][]int{} // equal keys are asked for once
	var order []string
	for i, p := range parents {
		if p == nil {
			continue
		}
		k := key(p)
		if anyNull(k) {
			continue
		}
		id := string(view.AppendKeys(nil, k))
		if places[id] == nil {
			keys, order = append(keys, k), append(order, id)
		}
		places[id] = append(places[id], i)
	}
	if len(keys) == 0 {
		return out, nil
	}
	r, err := ask(ctx, v, query(keys...))
	if err != nil {
		return nil, err
	}
	for n, id := range order {
		var rows []*T
		switch {
		case r.Series != nil:
			rows = makeAll(r.Series[n], r.Parts, maker)
		case r.Rows[n] != nil:
			rows = []*T{maker(r.Rows[n], r.Parts)}
		}
		for _, i := range places[id] {
			out[i] = rows
		}
	}
	return out, nil
}

func anyNull(key []view.Value) bool {
	for _, v := range key {
		if v.IsNull() {
			return true
		}
	}
	return false
}
