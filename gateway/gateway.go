package gateway

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
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

	Timeout  time.Duration // of a query, retries included; default 5 s
	CallTime time.Duration // of one call to an instance; default 2 s
	// MaxAge bounds how old the answer of a copy that is not active may be, of
	// an operation that demands nothing else; default 1 minute.
	MaxAge     time.Duration
	MaxCalls   int           // to instances at once, of one query; default 16
	MaxFirst   int           // rows of a page or a ranking; default 1,000
	MaxKeys    int           // keys of one query; default 10,000
	MinEvery   time.Duration // least time between events of a watch; default 100 ms
	Hedges     float64       // hedges as a share of the calls; default 0.05, negative: none
	HedgeBurst int           // hedges beyond the share, when there were none for a while; default 20
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
	stores  map[string]*store
	peers   *peers
	mux     *mux
	hedges  *budget
	calls   running
	turn    int // where to begin among instances that are alike
	metrics *metrics
}

// store is a view, with what is made of its store's name once.
type store struct {
	view *view.View
	mark read.Mark
}

var _ read.Views = (*Gateway)(nil)

// New makes a gateway. It starts nothing; watches need Run.
func New(cfg Config) (*Gateway, error) {
	if cfg.Routes == nil || cfg.Dial == nil || cfg.Allow == nil {
		return nil, errors.New("a gateway needs routes, a way to dial and a scope check")
	}
	setDefault(&cfg.Timeout, 5*time.Second)
	setDefault(&cfg.CallTime, 2*time.Second)
	setDefault(&cfg.MaxAge, time.Minute)
	setDefault(&cfg.MaxCalls, 16)
	setDefault(&cfg.MaxFirst, 1000)
	setDefault(&cfg.MaxKeys, 10_000)
	setDefault(&cfg.MinEvery, 100*time.Millisecond)
	setDefault(&cfg.Hedges, 0.05)
	setDefault(&cfg.HedgeBurst, 20)
	if cfg.Hedges < 0 {
		cfg.Hedges, cfg.HedgeBurst = 0, 0
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{
		cfg: cfg, log: cfg.Logger, stores: make(map[string]*store),
		hedges: newBudget(cfg.Hedges, cfg.HedgeBurst), turn: rand.IntN(1 << 16),
	}
	for _, v := range cfg.Views {
		g.stores[v.Store] = &store{view: v, mark: read.MarkOf(v.Store)}
	}
	g.peers = newPeers(g)
	g.mux = newMux(g)
	g.metrics = newMetrics(cfg.Registerer, g)
	return g, nil
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Run keeps the watch streams until ctx ends, then closes every connection and
// waits for what is left of calls.
func (g *Gateway) Run(ctx context.Context) error {
	g.mux.run(ctx)
	err := g.peers.close()
	g.calls.close()
	return err
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
	g.answer(ctx, pieces)
	for i, p := range plans {
		if p == nil {
			continue
		}
		results[i], errs[i] = p.merge()
		g.metrics.count(p.query.Op, errs[i], results[i])
	}
	return results, errs
}

// answer has every piece answered, within the time of a query.
func (g *Gateway) answer(ctx context.Context, pieces []*piece) {
	if len(pieces) > 0 {
		pieces = g.gatherLocal(ctx, pieces)
	}
	if len(pieces) > 0 {
		ctx, cancel := context.WithTimeout(ctx, g.cfg.Timeout)
		defer cancel()
		g.gather(ctx, pieces)
	}
}
