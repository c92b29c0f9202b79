package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Kind is what happens to a connection.
type Kind uint8

// The kinds of faults.
const (
	// Pass carries bytes as they come.
	Pass Kind = iota
	// Cut is a black hole in both directions: nothing passes, nothing is refused
	// and nobody is told. What was on its way arrives when the way is whole again,
	// as TCP sends again what was not acknowledged.
	Cut
	// Reset ends each connection with a TCP reset, new ones at once.
	Reset
	// Delay carries bytes so much later, in their order.
	Delay
)

func (k Kind) String() string {
	return [...]string{"pass", "cut", "reset", "delay"}[k]
}

// Fault is a rule.
type Fault struct {
	Kind  Kind
	Delay time.Duration // of Delay
}

// Config is what a proxy is made of.
type Config struct {
	Listen string // host:port
	Target string // host:port; dialled for each connection
	// Origin names who connects from an address; nil: nobody is known. It is
	// called once a connection, from its goroutine.
	Origin func(from net.Addr) string
}

// Proxy carries connections from one address to another. Safe for concurrent
// use.
type Proxy struct {
	cfg      Config
	listener net.Listener
	done     chan struct{}
	running  sync.WaitGroup

	mu      sync.Mutex // guards the following
	all     Fault
	origins map[string]Fault
	changed chan struct{} // closed and replaced when a rule changes
	links   map[*link]struct{}
	closed  bool
}

// New binds the address; nothing is accepted before Run.
func New(cfg Config) (*Proxy, error) {
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("proxy to %s: %w", cfg.Target, err)
	}
	return &Proxy{
		cfg: cfg, listener: l, done: make(chan struct{}), origins: make(map[string]Fault),
		changed: make(chan struct{}), links: make(map[*link]struct{}),
	}, nil
}

// Addr is where it listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Run accepts connections until Close.
func (p *Proxy) Run() error {
	for {
		c, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("proxy to %s: %w", p.cfg.Target, err)
		}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			c.Close()
			return nil
		}
		p.running.Add(1)
		p.mu.Unlock()
		go func() {
			defer p.running.Done()
			p.serve(c)
		}()
	}
}

// Close ends all connections and returns when their goroutines have.
func (p *Proxy) Close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.done)
		p.listener.Close()
		for l := range p.links {
			l.close()
		}
	}
	p.mu.Unlock()
	p.running.Wait()
}

// Set is the rule for every connection without one of its own.
func (p *Proxy) Set(f Fault) {
	p.change(func() { p.all = f })
}

// SetFrom is the rule for the connections of one origin.
func (p *Proxy) SetFrom(origin string, f Fault) {
	p.change(func() { p.origins[origin] = f })
}

// Heal removes every rule.
func (p *Proxy) Heal() {
	p.change(func() {
		p.all = Fault{}
		clear(p.origins)
	})
}

func (p *Proxy) change(rule func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rule()
	close(p.changed)
	p.changed = make(chan struct{})
	for l := range p.links {
		if p.rule(l.origin).Kind == Reset {
			l.reset()
		}
	}
}

// rule is the fault for an origin; the caller holds mu.
func (p *Proxy) rule(origin string) Fault {
	if f, ok := p.origins[origin]; ok && origin != "" {
		return f
	}
	return p.all
}

// open waits until the way is not cut and says by how much bytes are delayed;
// false: the connection is over.
func (p *Proxy) open(l *link) (time.Duration, bool) {
	for {
		p.mu.Lock()
		f, changed := p.rule(l.origin), p.changed
		p.mu.Unlock()
		switch f.Kind {
		case Pass:
			return 0, true
		case Delay:
			return f.Delay, true
		case Reset:
			l.reset()
			return 0, false
		}
		select {
		case <-changed:
		case <-l.over:
			return 0, false
		case <-p.done:
			return 0, false
		}
	}
}

// serve carries one connection until one side ends it.
func (p *Proxy) serve(c net.Conn) {
	l := &link{client: c, over: make(chan struct{})}
	defer l.close()
	if p.cfg.Origin != nil {
		l.origin = p.cfg.Origin(c.RemoteAddr())
	}
	if !p.register(l) {
		return
	}
	defer func() {
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	}()
	if _, ok := p.open(l); !ok {
		return
	}
	t, err := net.DialTimeout("tcp", p.cfg.Target, 5*time.Second)
	if err != nil {
		l.reset() // as a closed port does
		return
	}
	if !l.join(t) {
		return
	}
	var ways sync.WaitGroup
	ways.Go(func() { p.carry(l, t, c) })
	ways.Go(func() { p.carry(l, c, t) })
	ways.Wait()
}

func (p *Proxy) register(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.links[l] = struct{}{}
	return true
}

// chunk is what was read, and when it is due at the other side.
type chunk struct {
	bytes []byte
	due   time.Time
	end   error // of the reading side, after the bytes
}

// carry takes one direction. A reader and a writer, so that a delay shifts the
// stream and does not thin it.
func (p *Proxy) carry(l *link, to, from net.Conn) {
	queue := make(chan chunk, 64) // 64 × 32 KiB under way at most, then the sender is held up
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(queue)
		for {
			b := make([]byte, 32<<10)
			n, err := from.Read(b)
			delay, ok := p.open(l)
			if !ok {
				return
			}
			select {
			case queue <- chunk{b[:n], time.Now().Add(delay), err}:
			case <-l.over:
				return
			}
			if err != nil {
				return
			}
		}
	})
	for c := range queue {
		if !p.deliver(l, to, c) {
			break
		}
	}
	// Whoever reads must not be left behind.
	select {
	case <-l.over:
	default:
		for c := range queue {
			_ = c
		}
	}
	reading.Wait()
}

// deliver writes a chunk when it is due; false: this direction is over.
func (p *Proxy) deliver(l *link, to net.Conn, c chunk) bool {
	if wait := time.Until(c.due); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-l.over:
			return false
		}
	}
	if _, ok := p.open(l); !ok {
		return false
	}
	if len(c.bytes) > 0 {
		if _, err := to.Write(c.bytes); err != nil {
			l.close()
			return false
		}
	}
	switch {
	case c.end == nil:
		return true
	case errors.Is(c.end, io.EOF):
		if t, ok := to.(*net.TCPConn); ok {
			_ = t.CloseWrite() // gone already where it fails
		}
	default:
		l.reset()
	}
	return false
}

// link is one connection through the proxy.
type link struct {
	origin string
	client net.Conn
	over   chan struct{} // closed with the link

	mu     sync.Mutex // guards the following
	target net.Conn   // nil until dialled
	ended  bool
}

// join adds the other side; false: the link is over.
func (l *link) join(t net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		t.Close()
		return false
	}
	l.target = t
	return true
}

func (l *link) close() { l.end(false) }

// reset ends both sides at once, with RST.
func (l *link) reset() { l.end(true) }

func (l *link) end(hard bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	close(l.over)
	for _, c := range []net.Conn{l.client, l.target} {
		if c == nil {
			continue
		}
		if t, ok := c.(*net.TCPConn); ok && hard {
			_ = t.SetLinger(0) // closing resets then; gone already where it fails
		}
		c.Close()
	}
}
