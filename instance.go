package streamgauge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/read/rpc"
	"github.com/streamgauge/streamgauge/view/schema"
	"google.golang.org/grpc"
)

// instance is one instance: an edge, a worker behind it, and the worker's gRPC.
type instance struct {
	*edge
	client   *broker.Client
	worker   *processor.Worker
	grpc     *grpc.Server
	rpc      net.Listener
	greeting rpc.Greeting
	overview *overview
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
	in := &instance{greeting: rpc.Greeting{Instance: s.cfg.Instance, Process: rand.Uint64()}}
	if in.edge, err = newEdge(s); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	if in.rpc, err = listen(s.cfg.Listen.GRPC); err != nil {
		return nil, err
	}
	in.warnOfAddresses()
	if in.client, err = s.cfg.Kafka.Client(s.cfg.App+"-"+s.cfg.Instance, in.log); err != nil {
		return nil, err
	}
	if in.worker, err = processor.New(in.workerConfig(s, in.registry)); err != nil {
		return nil, err
	}
	in.overview = newOverview(s.cfg.Instance, in.worker, in.dial)
	err = in.open(s, behind{
		routes: in.worker, local: in.worker,
		ready: func() (bool, any) {
			st := in.worker.Status()
			// Without a token it says no more than a probe needs.
			return st.Ready, map[string]any{"instance": st.Instance, "ready": st.Ready, "reason": st.Reason}
		},
		instances: func(ctx context.Context) []instanceInfo { return in.all(ctx, s) },
	})
	if err != nil {
		return nil, err
	}
	options := rpc.ServerOptions()
	if in.identity != nil {
		options = append(options, grpc.Creds(in.identity.Server()))
	}
	in.grpc = grpc.NewServer(options...)
	rpc.Register(in.grpc, rpc.Service{Instance: in.worker, Routes: liveRoutes{in.worker}, Greeting: in.greeting, Status: in.told})
	return in, nil
}

// liveRoutes are a worker's, for those who follow them: while the group has not
// been heard of they are not to be believed.
type liveRoutes struct{ *processor.Worker }

// Live says whether the group was heard of within a session timeout.
func (l liveRoutes) Live() bool { return l.Status().Live }

// advertised is where others reach this instance's gRPC.
func (in *instance) advertised() string {
	if in.cfg.Listen.Advertise != "" {
		return in.cfg.Listen.Advertise
	}
	return in.rpc.Addr().String()
}

func (in *instance) workerConfig(s setup, registry prometheus.Registerer) processor.Config {
	page := in.cfg.Listen.AdvertiseHTTP
	if page == "" {
		page = in.http.Addr().String()
	}
	c := processor.Config{
		App: s.cfg.App, Instance: s.cfg.Instance, Addr: in.advertised(), HTTP: page, Secure: s.cfg.Listen.TLS.Cert != "",
		Topology: s.topology, Client: in.client, StateDir: s.cfg.State.Dir,
		Replication:    int16(s.cfg.Kafka.Replication),
		SessionTimeout: s.cfg.Kafka.SessionTimeout, HeartbeatInterval: s.cfg.Kafka.HeartbeatInterval,
		CommitInterval: s.cfg.State.CommitInterval, CheckpointInterval: s.cfg.State.CheckpointInterval,
		OverlayBytes: s.cfg.State.OverlayBytes, MaxAhead: s.cfg.Processing.MaxAhead, MaxRows: s.cfg.Reads.MaxRows, MaxPoints: s.cfg.Reads.MaxPoints,
		SkipLost: s.cfg.Processing.OnLoss == "skip", FailOnBadRecord: s.cfg.Processing.OnError == "fail",
		Standbys: s.cfg.State.Standbys, AcceptableLag: s.cfg.State.AcceptableLag, WarmUps: s.cfg.State.WarmUps, Rack: s.cfg.Rack,
		StartOver: s.startOver,
		Logger:    s.log, Registerer: registry,
	}
	if c.Standbys == 0 {
		c.Standbys = -1 // for the worker 0 is the default
	}
	if s.cfg.Kafka.StaticMember {
		c.StaticID = s.cfg.Instance
	}
	return c
}

// run runs the instance until ctx ends or it must not go on. The edge stops
// first, then the gateway, then the worker.
func (in *instance) run(ctx context.Context) error {
	defer in.close()
	return in.edge.run(ctx, beside{
		parts: []func(context.Context) error{in.worker.Run, in.watchAddress, func(context.Context) error {
			if err := in.grpc.Serve(in.rpc); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
				return fmt.Errorf("grpc: %w", err)
			}
			return nil
		}},
		drained: in.stopGRPC,
		cut: func() {
			in.grpc.Stop()
			in.closeClient()
		},
	})
}

// stopGRPC lets calls end, but not for long.
func (in *instance) stopGRPC() {
	t := time.AfterFunc(time.Second, in.grpc.Stop)
	defer t.Stop()
	in.grpc.GracefulStop()
}

// close releases what newInstance took; what run has closed already stays so.
func (in *instance) close() {
	in.edge.close()
	if in.rpc != nil {
		in.closeListener(in.rpc)
	}
	if in.overview != nil {
		in.closeOverview(in.overview)
	}
	if in.client != nil {
		in.closeClient()
	}
}

func (in *instance) closeClient() {
	if err := in.client.Close(); err != nil {
		in.log.Debug("client not closed cleanly", "err", err)
	}
}
