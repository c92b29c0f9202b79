package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// Pauses between rounds in which no instance sent routes, before jitter.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 2 * time.Second
	// complainEvery bounds how often a gateway says that nobody sends routes.
	complainEvery = 30 * time.Second
)

// FollowerConfig is what a Follower needs: Dial, and Fixed or Find.
type FollowerConfig struct {
	// Fixed are instances at addresses that somebody wrote down.
	Fixed []string
	// Find finds instances when none that is known has answered; nil: Fixed alone.
	Find func(context.Context) ([]read.Peer, error)
	// Dial makes a client of a peer. It does not block.
	Dial func(read.Peer) (RouteStream, error)

	// Silence is how long an instance may send nothing before another is asked,
	// default 3 s; one sends something each second.
	Silence time.Duration
	// Patience is how long a table is kept against lower generations alone, default
	// 10 s.
	Patience time.Duration
	Logger   *slog.Logger
}

// RouteStream sends an instance's routes; nil is a sign of life.
type RouteStream interface {
	Routes(ctx context.Context, each func(*read.Routes)) error
	Close() error
}

// Follower has the routes for a gateway without a worker: it follows the stream
// of one instance and goes to another when that is silent or ends. The last
// table stays until a newer one comes. Safe for concurrent use.
//
// Newer is a higher generation of the group, whoever sends it: an instance that
// lags must not bring an old table back. A group that was deleted, though, begins
// at 1 again. So a lower generation is taken from the stream that brought the
// table, whose instance has itself moved on; when no other instance of the table
// answers any more; or when only lower ones have come for Patience. What the
// Follower hands out counts on regardless: its generations never go down.
type Follower struct {
	cfg FollowerConfig
	log *slog.Logger

	// The following belong to Run.
	generation int64 // of the group, of the table in force
	ahead      int64 // what the generations handed out are ahead of the group's
	raw        *read.Routes
	lowerSince time.Time       // when the first lower generation came since a table was taken
	mute       map[string]bool // addresses that have not answered since then
	complained time.Time

	mu    sync.Mutex // guards the following
	table *read.Routes
	newer chan struct{}
}

var _ read.RouteSource = (*Follower)(nil)

// NewFollower makes a follower. It starts nothing.
func NewFollower(cfg FollowerConfig) (*Follower, error) {
	if cfg.Dial == nil || cfg.Find == nil && len(cfg.Fixed) == 0 {
		return nil, errors.New("a follower of routes needs a way to dial and instances to begin with")
	}
	setDefault(&cfg.Silence, 3*time.Second)
	setDefault(&cfg.Patience, 10*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Follower{
		cfg: cfg, log: cfg.Logger, mute: make(map[string]bool),
		table: &read.Routes{}, newer: make(chan struct{}),
	}, nil
}

// Routes are the last known; an empty table before the first.
func (f *Follower) Routes() (*read.Routes, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.table, f.newer
}

// Known says whether a table has come yet.
func (f *Follower) Known() bool {
	table, _ := f.Routes()
	return len(table.Instances) > 0
}

// Run follows routes until ctx ends. Call it once.
func (f *Follower) Run(ctx context.Context) error {
	last := "" // who was followed, and is asked last in the next round
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, longPause) {
		heard, err := f.round(ctx, last)
		if ctx.Err() != nil {
			break
		}
		if last = heard; heard != "" {
			pause = firstPause
		} else {
			f.complain(err)
		}
		pauseFor(ctx, pause)
	}
	return nil
}

// round asks one instance after the other until one has been followed, and
// returns its address; "" when none could be.
func (f *Follower) round(ctx context.Context, last string) (heard string, err error) {
	asked := make(map[string]bool)
	ask := func(peers []read.Peer) bool {
		for _, p := range peers {
			if ctx.Err() != nil {
				return false
			}
			if asked[p.Addr] {
				continue
			}
			asked[p.Addr] = true
			ok, failed := f.follow(ctx, p)
			if ok {
				heard = p.Addr
				return true
			}
			err = failed
		}
		return false
	}
	if ask(f.known(last)) || f.cfg.Find == nil || ctx.Err() != nil {
		return heard, err
	}
	found, failed := f.cfg.Find(ctx)
	if failed != nil {
		return "", errors.Join(err, failed)
	}
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	ask(found)
	return heard, err
}

// known are the instances of the table, in any order, then the fixed ones; the
// one that was followed last comes at the end.
func (f *Follower) known(last string) []read.Peer {
	var peers []read.Peer
	if f.raw != nil {
		for _, p := range f.raw.Instances {
			peers = append(peers, p)
		}
	}
	rand.Shuffle(len(peers), func(i, j int) { peers[i], peers[j] = peers[j], peers[i] })
	fixed := len(peers)
	for _, addr := range f.cfg.Fixed {
		peers = append(peers, read.Peer{ID: addr, Addr: addr})
	}
	rand.Shuffle(len(peers)-fixed, func(i, j int) { peers[fixed+i], peers[fixed+j] = peers[fixed+j], peers[fixed+i] })
	slices.SortStableFunc(peers, func(a, b read.Peer) int { return boolOrder(a.Addr == last) - boolOrder(b.Addr == last) })
	return peers
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}

// following is one stream under way.
type following struct {
	addr    string
	inStep  bool         // it has brought the table in force
	offered *read.Routes // a lower table that was not taken, yet
}

var errSilent = errors.New("it sent no routes in time")

// follow follows one instance until it is silent or ends. It says whether the
// instance was of use.
func (f *Follower) follow(ctx context.Context, p read.Peer) (heard bool, err error) {
	stream, err := f.cfg.Dial(p)
	if err != nil {
		f.mute[p.Addr] = true
		return false, fmt.Errorf("instance at %s: %w", p.Addr, err)
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	dog := time.AfterFunc(f.cfg.Silence, func() { cancel(errSilent) })
	defer dog.Stop()
	s := &following{addr: p.Addr}
	err = stream.Routes(inner, func(r *read.Routes) {
		if inner.Err() == nil && f.hear(s, r) {
			dog.Reset(f.cfg.Silence)
			heard = true
		}
	})
	if context.Cause(inner) == errSilent { //nolint:errorlint // the very value that was put there
		err = errSilent
	}
	if closing := stream.Close(); closing != nil {
		f.log.Debug("connection not closed cleanly", "host", p.Addr, "err", closing)
	}
	f.mute[p.Addr] = true
	if heard && ctx.Err() == nil {
		f.log.Info("routes are followed elsewhere", "from", p.Addr, "reason", err)
	}
	return heard, fmt.Errorf("instance at %s: %w", p.Addr, err)
}

// hear takes what a stream brought, nil for a sign of life. It is true while
// the stream is in step with the table in force.
func (f *Follower) hear(s *following, r *read.Routes) bool {
	if r == nil {
		if r = s.offered; r == nil {
			return s.inStep
		}
	}
	if !f.acceptable(s, r) {
		if f.lowerSince.IsZero() {
			f.lowerSince = time.Now()
		}
		s.offered, s.inStep = r, false
		return false
	}
	if !s.inStep {
		f.log.Info("routes are followed", "from", s.addr, "generation", r.Generation, "instances", len(r.Instances))
	}
	s.offered, s.inStep = nil, true
	f.lowerSince = time.Time{}
	clear(f.mute)
	f.take(r)
	return true
}

// acceptable says whether a table may replace the one in force.
func (f *Follower) acceptable(s *following, r *read.Routes) bool {
	switch {
	case len(r.Instances) == 0:
		return false
	case f.raw == nil, r.Generation >= f.generation, s.inStep:
		return true
	case !f.lowerSince.IsZero() && time.Since(f.lowerSince) >= f.cfg.Patience:
		return true
	}
	for _, p := range f.raw.Instances {
		if p.Addr != s.addr && !f.mute[p.Addr] {
			return false
		}
	}
	return true
}

// take puts a table in force.
func (f *Follower) take(r *read.Routes) {
	if f.raw != nil && reflect.DeepEqual(f.raw, r) {
		return
	}
	if r.Generation < f.generation {
		f.log.Warn("the group began anew", "generation", r.Generation, "before", f.generation)
		f.ahead += f.generation - r.Generation + 1
	}
	f.raw, f.generation = r, r.Generation
	shown := *r
	shown.Generation += f.ahead
	f.mu.Lock()
	defer f.mu.Unlock()
	f.table = &shown
	close(f.newer)
	f.newer = make(chan struct{})
}

// complain says that nobody sends routes, now and then.
func (f *Follower) complain(err error) {
	if time.Since(f.complained) < complainEvery {
		return
	}
	f.complained = time.Now()
	if f.raw == nil {
		f.log.Warn("no instance sends routes yet", "err", err)
	} else {
		f.log.Warn("no instance sends routes; the last known stay in force", "generation", f.generation, "err", err)
	}
}
