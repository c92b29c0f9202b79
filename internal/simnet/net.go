package simnet

import (
	"context"
	"hash/fnv"
	"net"
	"sync"
	"syscall"
	"time"
)

// Net is the network. Safe for concurrent use.
type Net struct {
	seed         uint64
	base, jitter time.Duration

	mu        sync.Mutex // guards everything below, the hosts and the connections
	listeners map[string]*listener
	hosts     map[string]*Host
}

// New makes a network on which a message takes base and up to jitter more, by
// the seed.
func New(seed uint64, base, jitter time.Duration) *Net {
	return &Net{seed: seed, base: base, jitter: jitter, listeners: make(map[string]*listener), hosts: make(map[string]*Host)}
}

// Host is the host of that name; it is made when first asked for. A process that
// is started again after a kill needs a new name.
func (n *Net) Host(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[name]
	if h == nil {
		h = &Host{net: n, name: name, conns: make(map[*conn]struct{})}
		n.hosts[name] = h
	}
	return h
}

// Host is one process. Safe for concurrent use.
type Host struct {
	net  *Net
	name string

	// Guarded by the network's lock.
	dials     uint64
	conns     map[*conn]struct{}
	listeners []*listener
	dead      bool
	thaw      chan struct{} // closed when the host thaws; nil: not frozen
}

// Name is the host's.
func (h *Host) Name() string { return h.name }

// Kill ends the host: nothing that it does from now on reaches anybody. Its
// peers see their connections reset, or, silent, nothing at all, as when power
// fails.
func (h *Host) Kill(silent bool) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.dead = true
	for _, l := range h.listeners {
		l.close()
	}
	for c := range h.conns {
		if !silent {
			c.peer.reset = true
			c.peer.wake()
		}
		c.reset = true
		c.wake()
	}
	h.thawed()
}

// Freeze holds up everything that the host reads, writes or dials.
func (h *Host) Freeze() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if h.thaw == nil && !h.dead {
		h.thaw = make(chan struct{})
	}
}

// Thaw ends a Freeze.
func (h *Host) Thaw() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.thawed()
}

func (h *Host) thawed() {
	if h.thaw != nil {
		close(h.thaw)
		h.thaw = nil
	}
}

// gate waits while the host is frozen.
func (h *Host) gate() {
	for {
		h.net.mu.Lock()
		thaw := h.thaw
		h.net.mu.Unlock()
		if thaw == nil {
			return
		}
		<-thaw
	}
}

// Listen listens at an address of the host's choice.
func (h *Host) Listen(_, address string) (net.Listener, error) {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if h.net.listeners[address] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := &listener{host: h, addr: addr(address), accepted: make(chan *conn, 128), done: make(chan struct{})}
	h.net.listeners[address] = l
	h.listeners = append(h.listeners, l)
	return l, nil
}

// Dial connects to who listens at an address.
func (h *Host) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	h.gate()
	n := h.net
	n.mu.Lock()
	h.dials++
	id := mix(n.seed ^ mix(hash(h.name)) ^ mix(hash(address)+h.dials))
	l := n.listeners[address]
	n.mu.Unlock()
	select {
	case <-time.After(n.latency(id, 0)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case h.dead:
		return nil, syscall.ENETUNREACH
	case l == nil || l.closed || len(l.accepted) == cap(l.accepted):
		return nil, syscall.ECONNREFUSED
	}
	here := &conn{host: h, id: id, local: addr(h.name + ":0"), remote: addr(address), changed: make(chan struct{})}
	there := &conn{host: l.host, id: ^id, local: addr(address), remote: here.local, changed: make(chan struct{})}
	here.peer, there.peer = there, here
	h.conns[here], l.host.conns[there] = struct{}{}, struct{}{}
	l.accepted <- there
	return here, nil
}

// latency is that of the nth message of a connection's direction.
func (n *Net) latency(id, nth uint64) time.Duration {
	d := n.base
	if n.jitter > 0 {
		d += time.Duration(mix(id+nth) % uint64(n.jitter))
	}
	return d
}

// mix is the finaliser of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

type listener struct {
	host     *Host
	addr     addr
	accepted chan *conn
	done     chan struct{}
	closed   bool // guarded by the network's lock
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.host.net.mu.Lock()
	defer l.host.net.mu.Unlock()
	l.close()
	return nil
}

// close is called with the network's lock held.
func (l *listener) close() {
	if !l.closed {
		l.closed = true
		close(l.done)
		delete(l.host.net.listeners, string(l.addr))
	}
}

func (l *listener) Addr() net.Addr { return l.addr }
