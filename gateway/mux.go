package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// Beats that a watch stream may miss before it counts as dead.
const (
	beatEvery   = time.Second
	missedBeats = 3
	// downFor is how long other copies' streams are preferred to one that ended.
	downFor = 2 * time.Second
)

// mux keeps one watch stream to each instance concerned, with the interests of
// all watchers; equal interests are one. It moves an interest to wherever its
// partition is served best, which is another copy while the active one's stream
// is down, and wakes its watchers whenever they might have missed something.
// Safe for concurrent use.
type mux struct {
	g    *Gateway
	wake chan struct{} // of one: there is something for run to do

	mu      sync.Mutex // guards the following
	nextID  uint64
	byKey   map[string]*interest
	byID    map[uint64]*interest
	streams map[string]*stream   // by instance
	down    map[string]time.Time // instances whose stream has ended, until when others are preferred
	newest  int64                // generation of the routes that interests were placed by
}

// interest is shared by the watchers that want the same.
type interest struct {
	read.Interest
	key      string
	watchers map[*watcher]struct{}
	at       string // the instance whose stream has it; "": none
	moved    moved
}

// moved is what an instance said that no longer serves an interest's partition.
type moved struct {
	from       string
	at         time.Time
	generation int64 // of the routes at that moment
}

// watcher holds nothing but a flag: something changed, read again.
type watcher struct{ dirty chan struct{} }

func newWatcher() *watcher { return &watcher{dirty: make(chan struct{}, 1)} }

func (w *watcher) mark() {
	select {
	case w.dirty <- struct{}{}:
	default:
	}
}

// stream is one instance's watch stream. Commands queue here until its
// goroutine takes them.
type stream struct {
	id      string
	cancel  context.CancelFunc
	queue   []read.WatchCommand // guarded by mux.mu
	signal  chan struct{}       // of one
	lastHit time.Time           // guarded by mux.mu
	alive   bool                // something was heard; guarded by mux.mu
}

func newMux(g *Gateway) *mux {
	return &mux{
		g: g, wake: make(chan struct{}, 1),
		byKey: make(map[string]*interest), byID: make(map[uint64]*interest), streams: make(map[string]*stream),
		down: make(map[string]time.Time),
	}
}

// add registers a watcher for the interests and returns what takes them back.
func (m *mux) add(w *watcher, wants []read.Interest) (release func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	shared := make([]*interest, 0, len(wants))
	for _, want := range wants {
		key := interestKey(&want)
		in := m.byKey[key]
		if in == nil {
			m.nextID++
			want.ID = m.nextID
			in = &interest{Interest: want, key: key, watchers: make(map[*watcher]struct{})}
			m.byKey[key], m.byID[want.ID] = in, in
		}
		in.watchers[w] = struct{}{}
		shared = append(shared, in)
	}
	m.poke()
	return func() { m.release(w, shared) }
}

func interestKey(i *read.Interest) string {
	b := append([]byte(i.Store), 0)
	b = binary.AppendVarint(b, int64(i.Partition))
	b = binary.AppendUvarint(b, uint64(len(i.Prefix)))
	b = append(b, i.Prefix...)
	for _, k := range i.Keys {
		b = binary.AppendUvarint(b, uint64(len(k)))
		b = append(b, k...)
	}
	return string(b)
}

func (m *mux) release(w *watcher, shared []*interest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, in := range shared {
		if delete(in.watchers, w); len(in.watchers) > 0 {
			continue
		}
		if s := m.streams[in.at]; s != nil {
			s.send(read.WatchCommand{Remove: in.ID})
		}
		delete(m.byKey, in.key)
		delete(m.byID, in.ID)
	}
}

// poke is called with the lock held or not: run looks again.
func (m *mux) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// send is called with the mux's lock held.
func (s *stream) send(c read.WatchCommand) {
	s.queue = append(s.queue, c)
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// run places interests on streams until ctx ends, then waits for the streams.
func (m *mux) run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		routes, newer := m.g.cfg.Routes.Routes()
		m.settle(ctx, &wg, routes)
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-newer:
		case <-tick.C:
			m.reap()
		}
	}
}

// settle puts every interest where it is served best.
func (m *mux) settle(ctx context.Context, wg *sync.WaitGroup, routes *read.Routes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(m.down, func(_ string, until time.Time) bool { return !until.After(now) })
	if m.g.metrics.routesAt.Load() == 0 || routes.Generation != m.newest {
		m.g.metrics.routesAt.Store(now.UnixMilli())
	}
	m.newest = routes.Generation
	for _, in := range m.byID {
		to := m.place(routes, in, now)
		if to != "" && m.streams[to] == nil {
			m.open(ctx, wg, to, routes)
		}
		if to == in.at || m.stays(routes, in, to) {
			continue
		}
		if old := m.streams[in.at]; old != nil {
			old.send(read.WatchCommand{Remove: in.ID})
		}
		if in.at = to; to == "" {
			continue
		}
		add := in.Interest
		m.streams[to].send(read.WatchCommand{Add: &add})
	}
}

// place is the instance to have an interest: the one with the active copy, or
// another while that one's stream is down; "" when there is none to try now.
func (m *mux) place(routes *read.Routes, in *interest, now time.Time) string {
	ids := m.holders(routes, in)
	first := ""
	for _, id := range ids {
		if id == in.moved.from && in.moved.generation == routes.Generation && (len(ids) > 1 || now.Sub(in.moved.at) < beatEvery) {
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
	pc := &piece{view: m.g.stores[in.Store].view, req: &read.Request{Partition: in.Partition}}
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

// open is called with the lock held.
func (m *mux) open(ctx context.Context, wg *sync.WaitGroup, id string, routes *read.Routes) {
	inner, cancel := context.WithCancel(ctx)
	began := time.Now()
	s := &stream{id: id, cancel: cancel, signal: make(chan struct{}, 1), lastHit: began}
	m.streams[id] = s
	wg.Go(func() {
		err := m.follow(inner, s, routes)
		cancel()
		if time.Since(began) < beatEvery {
			pauseFor(ctx, beatEvery/2) // a peer that is down is not asked in a loop
		}
		m.ended(s)
		if err != nil && !errors.Is(err, context.Canceled) {
			m.g.log.Debug("watch stream ended", "host", id, "err", err)
		}
	})
}

// follow runs one stream: a goroutine of its own hands the queued commands on.
func (m *mux) follow(ctx context.Context, s *stream, routes *read.Routes) error {
	instance, err := m.instance(routes, s.id)
	if err != nil {
		return err
	}
	commands := make(chan read.WatchCommand)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(commands)
		m.feed(ctx, s, commands)
	})
	err = instance.Watch(ctx, commands, func(e read.Event) { m.event(s, e) })
	s.cancel()
	for range commands { // what is left is of no use
	}
	wg.Wait()
	return err
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d/2 + rand.N(d)):
	}
}

func (m *mux) instance(routes *read.Routes, id string) (read.Instance, error) {
	if id == m.g.cfg.LocalID && m.g.cfg.Local != nil {
		return m.g.cfg.Local, nil
	}
	p, err := m.g.peers.get(routes, id)
	if err != nil {
		return nil, err
	}
	return p.instance, nil
}

func (m *mux) feed(ctx context.Context, s *stream, commands chan<- read.WatchCommand) {
	for {
		m.mu.Lock()
		queue := s.queue
		s.queue = nil
		m.mu.Unlock()
		for _, c := range queue {
			select {
			case commands <- c:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-s.signal:
		case <-ctx.Done():
			return
		}
	}
}

// event is called by a stream.
func (m *mux) event(s *stream, e read.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.lastHit = time.Now()
	if !s.alive {
		s.alive = true
		m.poke() // interests that waited for it move here
	}
	in := m.byID[e.ID]
	if in == nil || in.at != s.id {
		return
	}
	if e.Kind == read.Moved {
		s.send(read.WatchCommand{Remove: in.ID})
		in.at, in.moved = "", moved{from: s.id, at: s.lastHit, generation: m.newest}
		m.poke()
	}
	for w := range in.watchers {
		w.mark()
	}
}

// ended takes a stream out; its interests are placed again, and their watchers
// read again, for they may have missed something.
func (m *mux) ended(s *stream) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.streams[s.id] == s {
		delete(m.streams, s.id)
		m.down[s.id] = time.Now().Add(downFor)
	}
	for _, in := range m.byID {
		if in.at != s.id {
			continue
		}
		in.at = ""
		for w := range in.watchers {
			w.mark()
		}
	}
	m.poke()
}

// reap ends the streams that have not been heard of for some beats: a peer that
// is cut off sends no end.
func (m *mux) reap() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.streams {
		if time.Since(s.lastHit) > missedBeats*beatEvery {
			s.cancel()
		}
	}
}
