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
	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/read/rpc"
	"github.com/streamgauge/streamgauge/view/schema"
	"github.com/streamgauge/streamgauge/web"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
)

// instance is one instance: a worker, its gRPC, a gateway and the HTTP edge.
type instance struct {
	cfg     *Config
	log     *slog.Logger
	client  *broker.Client
	worker  *processor.Worker
	gateway *gateway.Gateway
	server  *server.Server
	grpc    *grpc.Server
	http    net.Listener
	rpc     net.Listener
}

// setup is what an instance is made of.
type setup struct {
	app      App
	cfg      *Config
	topology *schema.Topology
	verifier *auth.Verifier
	log      *slog.Logger
	// page describes this application to the dashboard; cluster tells of all
	// instances, nil: of this one alone.
	page    pageInfo
	cluster cluster
	// startOver says how the application is started over.
	startOver string
}

// newInstance binds the ports and makes the parts; nothing runs yet.
func newInstance(s setup) (_ *instance, err error) {
	in := &instance{cfg: s.cfg, log: s.log.With("instance", s.cfg.Instance)}
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	if in.http, err = listen(s.cfg.Listen.HTTP); err != nil {
		return nil, err
	}
	if in.rpc, err = listen(s.cfg.Listen.GRPC); err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if in.client, err = broker.New(broker.Config{Brokers: s.cfg.Kafka.Brokers, ClientID: s.cfg.App + "-" + s.cfg.Instance, Logger: in.log}); err != nil {
		return nil, err
	}
	if in.worker, err = processor.New(in.workerConfig(s, registry)); err != nil {
		return nil, err
	}
	in.gateway, err = gateway.New(gateway.Config{
		Views: s.topology.Views, Routes: in.worker, Local: in.worker, LocalID: s.cfg.Instance,
		Dial:    func(p read.Peer) (gateway.Peer, error) { return rpc.NewClient(p.Addr, rpc.Options{}) },
		Allow:   func(ctx context.Context, v *view.View) error { return auth.Allow(ctx, v.Scope) },
		Timeout: s.cfg.Reads.Timeout, MaxFirst: s.cfg.Limits.PageSize,
		Logger: in.log, Registerer: registry,
	})
	if err != nil {
		return nil, err
	}
	if in.server, err = in.newServer(s, registry); err != nil {
		return nil, err
	}
	in.grpc = grpc.NewServer(rpc.ServerOptions()...)
	rpc.Register(in.grpc, in.worker)
	return in, nil
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

func (in *instance) workerConfig(s setup, registry prometheus.Registerer) processor.Config {
	addr, page := in.cfg.Listen.Advertise, in.cfg.Listen.AdvertiseHTTP
	if addr == "" {
		addr = in.rpc.Addr().String()
	}
	if page == "" {
		page = in.http.Addr().String()
	}
	c := processor.Config{
		App: s.cfg.App, Instance: s.cfg.Instance, Addr: addr, HTTP: page,
		Topology: s.topology, Client: in.client, StateDir: s.cfg.State.Dir,
		Replication:    int16(s.cfg.Kafka.Replication),
		SessionTimeout: s.cfg.Kafka.SessionTimeout, HeartbeatInterval: s.cfg.Kafka.HeartbeatInterval,
		CommitInterval: s.cfg.State.CommitInterval, CheckpointInterval: s.cfg.State.CheckpointInterval,
		OverlayBytes: s.cfg.State.OverlayBytes, MaxAhead: s.cfg.Processing.MaxAhead, MaxRows: s.cfg.Reads.MaxRows, MaxPoints: s.cfg.Reads.MaxPoints,
		SkipLost: s.cfg.Processing.OnLoss == "skip", FailOnBadRecord: s.cfg.Processing.OnError == "fail",
		StartOver: s.startOver,
		Logger:    s.log, Registerer: registry,
	}
	if s.cfg.Kafka.StaticMember {
		c.StaticID = s.cfg.Instance
	}
	return c
}

func (in *instance) newServer(s setup, registry *prometheus.Registry) (*server.Server, error) {
	proxies, err := s.cfg.proxies()
	if err != nil {
		return nil, err
	}
	c := server.Config{
		Schema: s.app.New(in.gateway), Verifier: s.verifier, Limits: s.cfg.limits(),
		Origins: s.cfg.Web.Origins, TrustedProxies: proxies, NoIntrospection: !s.cfg.Web.Introspection,
		Ready: func() (bool, any) {
			st := in.worker.Status()
			// Without a token it says no more than a probe needs.
			return st.Ready, map[string]any{"instance": st.Instance, "ready": st.Ready, "reason": st.Reason}
		},
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		Routes:  in.api(s),
		Extensions: func(ctx context.Context) (context.Context, func() map[string]any) {
			ctx = resolve.BeginOperation(ctx)
			return ctx, func() map[string]any { return resolve.Collected(ctx) }
		},
		Ending: resolve.BeginSubscription,
		Logger: in.log, Registerer: registry,
	}
	if s.cfg.Web.Dashboard {
		c.Dashboard = web.Dashboard()
	}
	if s.cfg.Web.Playground {
		c.Playground = web.Playground()
	}
	return server.New(c)
}

// run runs the instance until ctx ends or it must not go on. The edge stops
// first, then the gateway, then the worker.
func (in *instance) run(ctx context.Context) error {
	defer in.close()
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, inner := errgroup.WithContext(inner)
	edge, closeEdge := context.WithCancel(inner)
	defer closeEdge()
	g.Go(func() error { return in.worker.Run(inner) })
	g.Go(func() error { return in.gateway.Run(inner) })
	g.Go(func() error {
		if err := in.grpc.Serve(in.rpc); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("grpc: %w", err)
		}
		return nil
	})
	served := make(chan error, 1)
	go func() { served <- in.server.Serve(edge, in.http) }()
	g.Go(func() error {
		var err error
		select {
		case <-ctx.Done():
			closeEdge()
			err = <-served
		case <-inner.Done():
			closeEdge()
			err = <-served
		case err = <-served:
		}
		in.stopGRPC()
		stop()
		return err
	})
	return g.Wait()
}

// stopGRPC lets calls end, but not for long.
func (in *instance) stopGRPC() {
	t := time.AfterFunc(time.Second, in.grpc.Stop)
	defer t.Stop()
	in.grpc.GracefulStop()
}

// close releases what newInstance took; what run has closed already stays so.
func (in *instance) close() {
	for _, l := range []net.Listener{in.http, in.rpc} {
		if l != nil {
			if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				in.log.Debug("listener not closed cleanly", "err", err)
			}
		}
	}
	if in.client != nil {
		if err := in.client.Close(); err != nil {
			in.log.Debug("client not closed cleanly", "err", err)
		}
	}
}
