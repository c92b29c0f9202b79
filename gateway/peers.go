package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"github.com/streamgauge/streamgauge/view/read"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// peers keeps one connection, with its breaker, to each other instance. Safe
// for concurrent use.
type peers struct {
	g *Gateway

	mu     sync.Mutex // guards the following
	known  map[string]*peer
	closed bool
}

// peer is another instance, at one address.
type peer struct {
	addr     string
	instance Peer
	failure  atomic.Pointer[error] // the newest
	breaker  *gobreaker.CircuitBreaker[[]*read.Answer]
	usual    [callKinds]average // how long its answers take
}

func newPeers(g *Gateway) *peers { return &peers{g: g, known: make(map[string]*peer)} }

var errGatewayClosed = errors.New("the gateway is closed")

// get finds the peer that a caller's routes name, and connects to one that is not
// known at that address. What holds then are the routes in force, which the
// source hands out at this moment: a caller's may be older, and a generation does
// not tell, for the group's begin at 1 again when it was deleted. Connections to
// instances that the routes in force do not name are closed.
func (p *peers) get(routes *read.Routes, id string) (*peer, error) {
	at, ok := routes.Instances[id]
	if !ok {
		return nil, fmt.Errorf("no address of instance %s", id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errGatewayClosed
	}
	if known := p.known[id]; known != nil && known.addr == at.Addr {
		return known, nil
	}
	// With the lock held, so that nobody undoes what a newer table brought.
	inForce, _ := p.g.cfg.Routes.Routes()
	for old, known := range p.known {
		if now, ok := inForce.Instances[old]; !ok || now.Addr != known.addr {
			p.drop(old)
		}
	}
	if known := p.known[id]; known != nil {
		return known, nil
	}
	if at, ok = inForce.Instances[id]; !ok {
		return nil, fmt.Errorf("instance %s has left", id)
	}
	instance, err := p.g.cfg.Dial(at)
	if err != nil {
		return nil, fmt.Errorf("dial instance %s at %s: %w", id, at.Addr, err)
	}
	fresh := &peer{addr: at.Addr, instance: instance}
	fresh.breaker = p.newBreaker(id, &fresh.failure)
	p.known[id] = fresh
	return fresh, nil
}

// last is the newest failure of a peer, for the log.
func last(failure *atomic.Pointer[error]) error {
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}

// newBreaker opens after five failures in a row and tries again after a second.
func (p *peers) newBreaker(id string, failure *atomic.Pointer[error]) *gobreaker.CircuitBreaker[[]*read.Answer] {
	return gobreaker.NewCircuitBreaker[[]*read.Answer](gobreaker.Settings{
		Name:        id,
		MaxRequests: 1,
		Timeout:     time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 5 },
		// A caller that has gone says nothing of the peer.
		IsExcluded: func(err error) bool {
			return errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled
		},
		OnStateChange: func(name string, from, to gobreaker.State) {
			switch { // half-open, it tries each second: that is not told again and again
			case from == gobreaker.StateClosed:
				p.g.log.Warn("circuit breaker opens: calls fail, and other copies are asked", "host", name, "err", last(failure))
			case to == gobreaker.StateClosed:
				p.g.log.Info("circuit breaker closes: the instance answers again", "host", name)
			default:
				p.g.log.Debug("circuit breaker", "host", name, "from", from.String(), "to", to.String())
			}
			p.g.metrics.breaker.WithLabelValues(name).Set(float64(to))
		},
	})
}

// patience is how long an instance may take for requests before others are
// asked.
func (p *peers) patience(id string, requests []*read.Request) time.Duration {
	p.mu.Lock()
	known := p.known[id]
	p.mu.Unlock()
	if known == nil {
		return hedgeUnknown
	}
	return known.usual[kindOf(requests)].patience()
}

// open says whether an instance's circuit is.
func (p *peers) open(id string) bool {
	p.mu.Lock()
	known := p.known[id]
	p.mu.Unlock()
	return known != nil && known.breaker.State() == gobreaker.StateOpen
}

func (p *peers) drop(id string) {
	if err := p.known[id].instance.Close(); err != nil {
		p.g.log.Debug("connection not closed cleanly", "host", id, "err", err)
	}
	p.g.metrics.breaker.DeleteLabelValues(id)
	delete(p.known, id)
}

func (p *peers) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for id := range p.known {
		p.drop(id)
	}
	return nil
}

// Breakers tells the state of each peer's circuit breaker, by instance.
func (g *Gateway) Breakers() map[string]string {
	g.peers.mu.Lock()
	defer g.peers.mu.Unlock()
	states := make(map[string]string, len(g.peers.known))
	for id, p := range g.peers.known {
		states[id] = p.breaker.State().String()
	}
	return states
}
