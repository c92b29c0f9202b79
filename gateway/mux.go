package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
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

// watcher holds nothing of what changed but a flag: read again.
type watcher struct {
	dirty chan struct{} // of one
	wants []*interest   // guarded by mux.mu
}

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
		w.wants = append(w.wants, in)
	}
	m.poke()
	return func() { m.release(w) }
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

func (m *mux) release(w *watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, in := range w.wants {
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
		in.avoid(s.id, s.lastHit)
		m.poke()
	} else {
		delete(in.avoided, s.id)
	}
	in.mark()
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
		in.at, in.firm = "", false
		in.mark()
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
