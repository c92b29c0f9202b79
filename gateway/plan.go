package gateway

import (
	"context"
	"time"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// plan is one query, split by partition.
type plan struct {
	view   *view.View
	query  *read.Query
	mark   read.Mark // of the store
	demand *demand
	pieces []*piece
}

// plan checks a query and splits it. Partitions are those of the broker, never
// of what happens to be assigned.
func (g *Gateway) plan(ctx context.Context, q *read.Query) (*plan, error) {
	st := g.stores[q.Store]
	if st == nil {
		return nil, read.Errorf(read.UnknownStore, "no store %q", q.Store)
	}
	v := st.view
	if err := g.cfg.Allow(ctx, v); err != nil {
		return nil, err
	}
	if err := g.check(v, q); err != nil {
		return nil, err
	}
	n := int32(1)
	if !v.Global {
		var err error
		if n, err = g.partitions(ctx, v); err != nil {
			return nil, err
		}
	}
	timed := q
	if q.Op == read.Fetch || q.Op == read.Top {
		var err error
		if timed, err = absolute(q, time.Now()); err != nil {
			return nil, err
		}
	}
	p := &plan{view: v, query: timed, mark: st.mark, demand: newDemand(q.Demand, st.mark)}
	if q.Op == read.Get || q.Op == read.Fetch {
		p.byKey(n)
	} else {
		for part := range n {
			p.pieces = append(p.pieces, p.piece(part))
		}
	}
	return p, nil
}

func (p *plan) piece(partition int32) *piece {
	return &piece{view: p.view, mark: p.mark, demand: p.demand, req: &read.Request{Query: *p.query, Partition: partition}}
}

// check refuses what makes no sense or asks for too much.
func (g *Gateway) check(v *view.View, q *read.Query) error {
	if q.Op > read.Size {
		return read.Errorf(read.BadInput, "no such read: %s", q.Op)
	}
	if len(q.Keys) > g.cfg.MaxKeys {
		return read.Errorf(read.TooLarge, "%d keys, the limit is %d", len(q.Keys), g.cfg.MaxKeys)
	}
	for _, k := range q.Keys {
		if len(k) != len(v.Keys) {
			return read.Errorf(read.BadInput, "a key of %s has %d columns", v.Name, len(v.Keys))
		}
	}
	if q.Op != read.Range && q.Op != read.Top {
		return nil
	}
	switch {
	case q.First < 0:
		return read.Errorf(read.BadInput, "first must not be negative")
	case q.First > g.cfg.MaxFirst:
		return read.Errorf(read.TooLarge, "first is %d, the limit is %d", q.First, g.cfg.MaxFirst)
	}
	return nil
}

// partitions is the broker's count for a view, as soon as it is known.
func (g *Gateway) partitions(ctx context.Context, v *view.View) (int32, error) {
	if routes, _ := g.cfg.Routes.Routes(); routes.Partitions[v.Subtopology] > 0 {
		return routes.Partitions[v.Subtopology], nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
	defer cancel()
	for {
		routes, newer := g.cfg.Routes.Routes()
		if n := routes.Partitions[v.Subtopology]; n > 0 {
			return n, nil
		}
		select {
		case <-ctx.Done():
			return 0, &read.Error{Code: read.Rebalancing, Message: "no instance has joined yet", RetryAfter: time.Second}
		case <-newer:
		}
	}
}

// absolute turns a time relative to now into bounds.
func absolute(q *read.Query, now time.Time) (*read.Query, error) {
	t := q.Time
	switch {
	case t.Last < 0 || t.Step < 0:
		return nil, read.Errorf(read.BadInput, "last and step must be positive")
	case t.Last > 0 && (t.HasFrom || t.HasTo):
		return nil, read.Errorf(read.BadInput, "last goes without from and to")
	case t.HasFrom && t.HasTo && t.From > t.To:
		return nil, read.Errorf(read.BadInput, "from is after to")
	}
	ms := now.UnixMilli()
	if t.Last > 0 {
		t.HasFrom, t.From = true, ms-t.Last
	}
	if !t.HasTo {
		t.To = max(ms, t.From)
	}
	t.Last = 0
	c := *q
	c.Time = t
	return &c, nil
}

// byKey sends each key to its partition, all keys of a partition together.
func (p *plan) byKey(n int32) {
	if len(p.query.Keys) == 1 {
		pc := p.piece(p.partitionOf(p.query.Keys[0], n))
		pc.places = firstPlace
		p.pieces = []*piece{pc}
		return
	}
	parts := make(map[int32]*piece)
	for i, k := range p.query.Keys {
		part := p.partitionOf(k, n)
		pc := parts[part]
		if pc == nil {
			pc = p.piece(part)
			pc.req.Keys = nil
			parts[part] = pc
			p.pieces = append(p.pieces, pc)
		}
		pc.req.Keys = append(pc.req.Keys, k)
		pc.places = append(pc.places, i)
	}
}

// firstPlace are the places of a query with one key. It is not changed.
var firstPlace = []int{0}

func (p *plan) partitionOf(key []view.Value, n int32) int32 {
	if p.view.Global {
		return 0
	}
	var room [64]byte
	return p.view.Partitioner.Of(view.AppendPartitionBytes(room[:0], p.view.KeyFormat, key), n)
}
