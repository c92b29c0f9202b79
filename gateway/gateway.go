package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// Config of a Gateway. Views, Routes, Dial and Allow are required.
type Config struct {
	Views  []*view.View
	Routes read.RouteSource

	// Local answers for LocalID without a hop; nil for a gateway alone.
	Local   read.Instance
	LocalID string
	// Dial makes a client of a peer. It does not block.
	Dial func(read.Peer) (Peer, error)

	// Allow is the one scope check, made before anything of the store is read,
	// on nested reads and on each event of a watch too.
	Allow func(ctx context.Context, v *view.View) error

	Timeout    time.Duration // of a query, retries included; default 5 s
	CallTime   time.Duration // of one call to an instance; default 2 s
	MaxCalls   int           // to instances at once, of one query; default 16
	MaxFirst   int           // rows of a page or a ranking; default 1,000
	MaxKeys    int           // keys of one query; default 10,000
	MinEvery   time.Duration // least time between events of a watch; default 100 ms
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Peer is another instance, to be closed when it is no longer needed.
type Peer interface {
	read.Instance
	Close() error
}

// Gateway answers queries (read.Views). Safe for concurrent use.
type Gateway struct {
	cfg     Config
	log     *slog.Logger
	views   map[string]*view.View // by store
	peers   *peers
	mux     *mux
	metrics *metrics
}

var _ read.Views = (*Gateway)(nil)

// New makes a gateway. It starts nothing; watches need Run.
func New(cfg Config) (*Gateway, error) {
	if cfg.Routes == nil || cfg.Dial == nil || cfg.Allow == nil {
		return nil, errors.New("a gateway needs routes, a way to dial and a scope check")
	}
	setDefault(&cfg.Timeout, 5*time.Second)
	setDefault(&cfg.CallTime, 2*time.Second)
	setDefault(&cfg.MaxCalls, 16)
	setDefault(&cfg.MaxFirst, 1000)
	setDefault(&cfg.MaxKeys, 10_000)
	setDefault(&cfg.MinEvery, 100*time.Millisecond)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{cfg: cfg, log: cfg.Logger, views: make(map[string]*view.View), metrics: newMetrics(cfg.Registerer)}
	for _, v := range cfg.Views {
		g.views[v.Store] = v
	}
	g.peers = newPeers(g)
	g.mux = newMux(g)
	return g, nil
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Run keeps the watch streams until ctx ends, then closes every connection.
func (g *Gateway) Run(ctx context.Context) error {
	g.mux.run(ctx)
	return g.peers.close()
}

// Read answers all queries with one call to each instance concerned, and as few
// more as it takes where routes were out of date.
func (g *Gateway) Read(ctx context.Context, queries []*read.Query) ([]*read.Result, []error) {
	results, errs := make([]*read.Result, len(queries)), make([]error, len(queries))
	plans := make([]*plan, len(queries))
	var pieces []*piece
	for i, q := range queries {
		p, err := g.plan(ctx, q)
		if err != nil {
			errs[i] = err
			continue
		}
		if plans[i] = p; len(queries) == 1 {
			pieces = p.pieces
		} else {
			pieces = append(pieces, p.pieces...)
		}
	}
	if len(pieces) > 0 {
		pieces = g.gatherLocal(ctx, pieces)
	}
	if len(pieces) > 0 {
		ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
		defer cancel()
		g.gather(ctx, pieces)
	}
	for i, p := range plans {
		if p == nil {
			continue
		}
		results[i], errs[i] = p.merge()
		g.metrics.count(p.query.Op, errs[i], results[i])
	}
	return results, errs
}
