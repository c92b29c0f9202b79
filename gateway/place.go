package gateway

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// For how long an instance is avoided that does not serve an interest's partition:
// twice as long each time, within bounds. It may serve it again without newer
// routes, and says nothing of that to who is not there.
const (
	avoidLeast = 2 * time.Second
	avoidMost  = 8 * time.Second
)

// interest is shared by the watchers that want the same. The mux's lock guards
// it.
type interest struct {
	read.Interest
	key      string
	watchers map[*watcher]struct{}
	at       string // the instance whose stream has it; "": none
	// firm says that it is where changes are made, and so are told.
	firm    bool
	avoided map[string]avoidance // instances that said Moved since the routes last changed
}

// avoidance is how an instance is avoided that said that a partition has moved.
type avoidance struct {
	wait  time.Duration
	until time.Time
}

// mark has the watchers read again.
func (in *interest) mark() {
	for w := range in.watchers {
		w.mark()
	}
}

// avoid takes the interest away from an instance that does not serve it.
func (in *interest) avoid(id string, now time.Time) {
	if in.avoided == nil {
		in.avoided = make(map[string]avoidance)
	}
	wait := min(max(2*in.avoided[id].wait, avoidLeast), avoidMost)
	in.avoided[id] = avoidance{wait: wait, until: now.Add(wait)}
	in.at, in.firm = "", false
}

// settle puts every interest where it is served best.
func (m *mux) settle(ctx context.Context, wg *sync.WaitGroup, routes *read.Routes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(m.down, func(_ string, until time.Time) bool { return !until.After(now) })
	newer := routes.Generation != m.newest
	if newer || m.g.metrics.routesAt.Load() == 0 {
		m.g.metrics.routesAt.Store(now.UnixMilli())
	}
	m.newest = routes.Generation
	for _, in := range m.byID {
		if newer {
			clear(in.avoided)
		}
		to := m.place(routes, in, now)
		if to != "" && m.streams[to] == nil {
			m.open(ctx, wg, to, routes)
		}
		if to != in.at && !m.stays(routes, in, to) {
			m.hand(in, to)
		}
		firm := m.isFirm(routes, in)
		if in.firm && !firm {
			in.mark() // what is told from now on is not all
		}
		in.firm = firm
	}
}

// hand gives an interest to another instance's stream; "": to none.
func (m *mux) hand(in *interest, to string) {
	if old := m.streams[in.at]; old != nil {
		old.send(read.WatchCommand{Remove: in.ID})
	}
	if in.at = to; to != "" {
		add := in.Interest
		m.streams[to].send(read.WatchCommand{Add: &add})
	}
}

// place is the instance to have an interest: the one with the active copy, or
// another while that one does not serve it or its stream is down; "" when there
// is none to try now.
func (m *mux) place(routes *read.Routes, in *interest, now time.Time) string {
	first := ""
	for _, id := range m.holders(routes, in) {
		if now.Before(in.avoided[id].until) {
			continue
		}
		if _, down := m.down[id]; !down {
			return id
		}
		if first == "" {
			first = id
		}
	}
	return first
}

// stays says whether an interest stays where it is for the moment: what it has is
// alive and what it shall have is not known to be.
func (m *mux) stays(routes *read.Routes, in *interest, to string) bool {
	from, next := m.streams[in.at], m.streams[to]
	return from != nil && from.alive && next != nil && !next.alive && slices.Contains(m.holders(routes, in), in.at)
}

// holders are the instances with a copy of an interest's partition, in the order
// in which they are preferred.
func (m *mux) holders(routes *read.Routes, in *interest) []string {
	pc := m.pieceOf(in)
	var ids []string
	if pc.view.Global {
		if _, there := routes.Instances[in.at]; there {
			ids = append(ids, in.at) // every instance has it: no need to move
		}
		if id := m.g.active(routes, pc); id != "" && id != in.at {
			ids = append(ids, id)
		}
		for _, id := range slices.Sorted(maps.Keys(routes.Instances)) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	for _, c := range copiesOf(routes, pc.view, in.Partition) {
		ids = append(ids, c.Instance)
	}
	return ids
}

// isFirm says whether an interest is with the active copy, or, of a global table,
// with any.
func (m *mux) isFirm(routes *read.Routes, in *interest) bool {
	pc := m.pieceOf(in)
	return in.at != "" && (pc.view.Global || in.at == m.g.active(routes, pc))
}

func (m *mux) pieceOf(in *interest) *piece {
	return &piece{view: m.g.stores[in.Store].view, req: &read.Request{Partition: in.Partition}}
}

// firm says whether a watcher hears of every change: whether all it wants is.
func (m *mux) firm(w *watcher) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !slices.ContainsFunc(w.wants, func(in *interest) bool { return !in.firm })
}
