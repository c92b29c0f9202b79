package streamgauge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/gateway"
	"github.com/streamgauge/streamgauge/gateway/server"
	"github.com/streamgauge/streamgauge/graph/resolve"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/read/rpc"
	"github.com/streamgauge/streamgauge/web"
	"golang.org/x/sync/errgroup"
)

// edge is what an instance and a gateway alone have in common: the gateway with
// its connections to instances, and HTTP in front of it.
type edge struct {
	cfg      *Config
	log      *slog.Logger
	registry *prometheus.Registry
	identity *rpc.Identity // nil: instances speak plain text
	gateway  *gateway.Gateway
	server   *server.Server
	http     net.Listener
}

// behind is what an edge stands in front of.
type behind struct {
	routes    read.RouteSource
	local     read.Instance // nil: a gateway alone
	ready     func() (bool, any)
	instances func(context.Context) []instanceInfo
}

// newEdge reads the certificates and binds the port.
func newEdge(s setup) (*edge, error) {
	e := &edge{cfg: s.cfg, log: s.log.With("instance", s.cfg.Instance), registry: prometheus.NewRegistry()}
	e.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var err error
	if e.identity, err = identityOf(s.cfg, e.log); err != nil {
		return nil, err
	}
	e.http, err = listen(s.cfg.Listen.HTTP)
	return e, err
}

// identityOf is the instance's among the others; nil where listen.tls is not set.
func identityOf(cfg *Config, log *slog.Logger) (*rpc.Identity, error) {
	t := cfg.Listen.TLS
	if t.Cert == "" {
		return nil, nil
	}
	if len(t.Names) == 0 {
		t.Names = []string{cfg.App}
	}
	i, err := rpc.NewIdentity(rpc.IdentityConfig{Cert: t.Cert, Key: t.Key, CA: t.CA, Names: t.Names, Logger: log})
	if err != nil {
		return nil, fmt.Errorf("listen.tls: %w", err)
	}
	return i, nil
}

// dial makes a client of an instance. It does not block.
func (e *edge) dial(p read.Peer) (*rpc.Client, error) {
	o := rpc.Options{}
	if e.identity != nil {
		o.TLS = e.identity.Client()
	}
	return rpc.NewClient(p.Addr, o)
}

// open makes the gateway and the server.
func (e *edge) open(s setup, b behind) (err error) {
	c := gateway.Config{
		Views: s.topology.Views, Routes: b.routes,
		Dial:    func(p read.Peer) (gateway.Peer, error) { return e.dial(p) },
		Allow:   func(ctx context.Context, v *view.View) error { return auth.Allow(ctx, v.Scope) },
		Timeout: s.cfg.Reads.Timeout, MaxAge: s.cfg.Reads.MaxAge, MaxFirst: s.cfg.Limits.PageSize,
		Logger: e.log, Registerer: e.registry,
	}
	if b.local != nil {
		c.Local, c.LocalID = b.local, s.cfg.Instance
	}
	if e.gateway, err = gateway.New(c); err != nil {
		return err
	}
	e.server, err = e.newServer(s, b)
	return err
}

func (e *edge) newServer(s setup, b behind) (*server.Server, error) {
	proxies, err := s.cfg.proxies()
	if err != nil {
		return nil, err
	}
	limits := s.cfg.limits()
	limits.Drain = min(5*time.Second, s.cfg.StopTimeout/2)
	c := server.Config{
		Schema: s.app.New(e.gateway), Verifier: s.verifier, Limits: limits,
		Origins: s.cfg.Web.Origins, TrustedProxies: proxies, NoIntrospection: !s.cfg.Web.Introspection,
		Ready:   b.ready,
		Metrics: promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{}),
		Routes:  e.api(s, b.instances),
		Extensions: func(ctx context.Context) (context.Context, func() map[string]any) {
			ctx = resolve.BeginOperation(ctx)
			return ctx, func() map[string]any { return resolve.Collected(ctx) }
		},
		Ending: resolve.BeginSubscription,
		Logger: e.log, Registerer: e.registry,
	}
	if s.cfg.Web.Dashboard {
		c.Dashboard = web.Dashboard()
	}
	if s.cfg.Web.Playground {
		c.Playground = web.Playground()
	}
	return server.New(c)
}

// beside is what runs beside an edge.
type beside struct {
	// parts run until their context ends; the first that fails ends them all.
	parts []func(context.Context) error
	// drained is called when HTTP has ended, before the parts are; cut when they
	// have not ended in time.
	drained, cut func()
}

// cutTime is how long parts may take to notice that they were cut.
const cutTime = 2 * time.Second

// run runs all until ctx ends or a part must not go on. HTTP stops first, then
// the gateway and the parts, within the stop timeout; what is left is cut.
func (e *edge) run(ctx context.Context, r beside) error {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, inner := errgroup.WithContext(inner)
	for _, part := range append(r.parts, e.gateway.Run) {
		g.Go(func() error { return part(inner) })
	}
	g.Go(func() error {
		defer stop()
		err := e.serve(ctx, inner)
		r.drained()
		return err
	})
	ended := make(chan error, 1)
	go func() { ended <- g.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	bound := time.NewTimer(e.cfg.StopTimeout)
	defer bound.Stop()
	select {
	case err := <-ended:
		return err
	case <-bound.C:
	}
	e.log.Warn("not everything has ended in time; the rest is cut", "timeout", e.cfg.StopTimeout)
	r.cut()
	late := time.NewTimer(cutTime)
	defer late.Stop()
	select {
	case err := <-ended: // mostly of being cut
		e.log.Debug("ended when cut", "err", err)
	case <-late.C:
	}
	return fmt.Errorf("not everything had ended %s after the stop (stopTimeout), and was cut", e.cfg.StopTimeout)
}

// serve answers HTTP until one of the contexts ends, and drains.
func (e *edge) serve(ctx, inner context.Context) error {
	open, closeEdge := context.WithCancel(inner)
	defer closeEdge()
	served := make(chan error, 1)
	go func() { served <- e.server.Serve(open, e.http) }()
	select {
	case <-ctx.Done():
	case <-inner.Done():
	case err := <-served:
		return err
	}
	closeEdge()
	return <-served
}

// close releases the port; one that is closed already stays so.
func (e *edge) close() { e.closeListener(e.http) }

func (e *edge) closeListener(l net.Listener) {
	if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		e.log.Debug("listener not closed cleanly", "err", err)
	}
}

// listen binds an address; why it cannot comes with what to do.
func listen(addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; %s", addr, reason(err), remedy(err))
	}
	return l, nil
}

func reason(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

func remedy(err error) string {
	var unknown *net.DNSError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "stop what uses the port, or choose another"
	case errors.Is(err, syscall.EACCES):
		return "choose a port from 1024 on, or run with the right to bind it"
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &unknown):
		return "use an address or a name of this machine, such as 127.0.0.1"
	}
	return "want host:port, such as 127.0.0.1:8080"
}
