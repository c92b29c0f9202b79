package streamgauge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/gateway"
	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
	"github.com/urfave/cli/v3"
)

func gatewayCommand(app App) *cli.Command {
	return &cli.Command{
		Name:  "gateway",
		Usage: "run a gateway alone: no worker, no state",
		Description: "It answers from the instances that run elsewhere, which it finds through Kafka's group, or at\n" +
			"gateway.seeds, and then needs no Kafka. Settings are those of run.",
		Flags:  configFlags(),
		Action: withConfig(app, RunGateway),
	}
}

// alone is a gateway without a worker.
type alone struct {
	*edge
	client   *broker.Client // nil: there are seeds
	follower *gateway.Follower
	overview *overview
}

const noRoutesYet = "no routes have come yet"

// RunGateway runs a gateway alone until ctx ends or it must not go on.
func RunGateway(ctx context.Context, app App, cfg *Config) error {
	log := cfg.logger(os.Stderr)
	s, err := setupOf(app, cfg, log)
	if err != nil {
		return err
	}
	a, err := newAlone(s)
	if err != nil {
		return err
	}
	defer a.close()
	if a.client != nil {
		if err := a.findable(ctx); err != nil {
			return err
		}
	}
	log.Info("gateway starts", "version", version(), "instance", cfg.Instance, "http", "http://"+a.http.Addr().String(), "seeds", cfg.Gateway.Seeds)
	return a.run(ctx, beside{
		parts:   []func(context.Context) error{a.follower.Run},
		drained: func() {}, cut: a.closeClient,
	})
}

func newAlone(s setup) (_ *alone, err error) {
	a := &alone{}
	if a.edge, err = newEdge(s); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	f := gateway.FollowerConfig{
		Fixed: s.cfg.Gateway.Seeds, Logger: a.log,
		Dial: func(p read.Peer) (gateway.RouteStream, error) { return a.dial(p) },
	}
	if len(f.Fixed) == 0 {
		if a.client, err = s.cfg.Kafka.Client(s.cfg.App+"-"+s.cfg.Instance, a.log); err != nil {
			return nil, err
		}
		f.Find = a.find
	}
	if a.follower, err = gateway.NewFollower(f); err != nil {
		return nil, err
	}
	a.overview = newOverview("", a.follower, a.dial)
	a.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "streamgauge_ready", Help: "1 when the instance is ready.",
	}, func() float64 { return map[bool]float64{true: 1}[a.follower.Known()] }))
	return a, a.open(s, behind{routes: a.follower, ready: a.ready, instances: a.all})
}

// find looks for instances once, in bounded time.
func (a *alone) find(ctx context.Context) ([]read.Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return processor.Seeds(ctx, a.client, a.cfg.App)
}

// findable sees to it that Kafka is there and tells of the group.
func (a *alone) findable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, preflightTime)
	defer cancel()
	if err := a.client.Ping(ctx); err != nil {
		return err
	}
	err := a.client.CheckAccess(ctx, broker.Needs{Described: a.cfg.App})
	var missing *broker.AccessError
	if errors.As(err, &missing) {
		return missing
	}
	return nil // anything else passes, and the follower says so if it does not
}

func (a *alone) ready() (bool, any) {
	body := map[string]any{"instance": a.cfg.Instance, "ready": a.follower.Known()}
	if !a.follower.Known() {
		body["reason"] = noRoutesYet
	}
	return a.follower.Known(), body
}

func (a *alone) close() {
	a.edge.close()
	if a.overview != nil {
		a.closeOverview(a.overview)
	}
	a.closeClient()
}

func (a *alone) closeClient() {
	if a.client == nil {
		return
	}
	if err := a.client.Close(); err != nil {
		a.log.Debug("client not closed cleanly", "err", err)
	}
}

// setupOf makes what run and gateway begin with.
func setupOf(app App, cfg *Config, log *slog.Logger) (setup, error) {
	loaded, err := schema.Load("schema", []byte(app.Schema))
	if err != nil {
		return setup{}, err
	}
	verifier, err := auth.New(cfg.authConfig(log))
	if err != nil {
		return setup{}, fmt.Errorf("configuration: %w", err)
	}
	return setup{
		app: app, cfg: cfg, topology: loaded.Topology, verifier: verifier, log: log,
		page: pageInfo{App: app.Name, Title: titleOf(app), Auth: cfg.Auth.Mode},
	}, nil
}
