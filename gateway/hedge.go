package gateway

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// When a call that has not answered is hedged: after some times the peer's usual
// time, within bounds.
const (
	hedgeFactor  = 4
	hedgeLeast   = 30 * time.Millisecond
	hedgeMost    = 500 * time.Millisecond
	hedgeUnknown = 100 * time.Millisecond // of a peer that has not answered yet
	// hedgeAgain is when a call that there was no budget for is looked at again.
	hedgeAgain = 25 * time.Millisecond
)

// hedge asks the other copies of the pieces whose active copy does not answer in
// its usual time, as far as the budget goes; of a peer whose circuit has opened
// meanwhile, without asking the budget.
func (r *round) hedge() {
	now := time.Now()
	for _, c := range slices.Clone(r.under) {
		if c.hedgeAt.IsZero() || now.Before(c.hedgeAt) {
			continue
		}
		if !r.g.peers.open(c.id) && !r.g.hedges.take() {
			c.hedgeAt = now.Add(hedgeAgain)
			continue
		}
		c.hedgeAt = time.Time{}
		r.fall(c.pieces, asHedge)
	}
}

// budget bounds hedges to a share of the calls, plus a burst, so that instances
// that are all slow do not get twice the load. Safe for concurrent use.
type budget struct {
	mu    sync.Mutex // guards tokens
	burst float64
	share float64 // earned with each call
	// tokens that are left; a hedge takes one.
	tokens float64
}

func newBudget(share float64, burst int) *budget {
	return &budget{share: share, burst: float64(burst), tokens: float64(burst)}
}

func (b *budget) earn() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = min(b.tokens+b.share, b.burst)
}

func (b *budget) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// average is an exponentially weighted one of durations. Safe for concurrent
// use: an observation may be lost to another, which does no harm.
type average struct{ ns atomic.Int64 }

func (a *average) observe(d time.Duration) {
	old := a.ns.Load()
	if old == 0 {
		a.ns.Store(max(int64(d), 1))
		return
	}
	a.ns.Store(max(old+(int64(d)-old)/8, 1))
}

// patience is how long the peer may take before others are asked.
func (a *average) patience() time.Duration {
	ns := a.ns.Load()
	if ns == 0 {
		return hedgeUnknown
	}
	return min(max(hedgeFactor*time.Duration(ns), hedgeLeast), hedgeMost)
}

// Kinds of calls by what they usually take.
const (
	ofKeys  = iota // lookups alone
	ofScans        // anything else
	callKinds
)

func kindOf(requests []*read.Request) int {
	for _, r := range requests {
		if r.Op != read.Get {
			return ofScans
		}
	}
	return ofKeys
}
