package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/streamgauge/streamgauge/graph"
	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/schema"
)

//go:embed slots.graphqls
var slotsText string

// flightsSchema is the example's, slotsSchema the one of many keys, over topics of
// this run.
func (b *bench) flightsSchema(topic string) (*schema.Topology, error) {
	text := b.over(graph.SchemaText, "flights", topic)
	return topology("schema.graphqls", b.over(text, "airports", airportsTopic))
}

func (b *bench) slotsSchema(topic string) (*schema.Topology, error) {
	return topology("slots.graphqls", b.over(slotsText, "departures", topic))
}

// over is a schema with another topic.
func (b *bench) over(text, was, topic string) string {
	return strings.Replace(text, `topic: "`+was+`"`, `topic: "`+b.cluster.name(topic)+`"`, 1)
}

func topology(name, text string) (*schema.Topology, error) {
	s, err := schema.Load(name, []byte(text))
	if err != nil {
		return nil, err
	}
	return s.Topology, nil
}

// app is an application of this run: a name nobody had before, and the state of
// its instances.
type app struct {
	b        *bench
	name     string
	topology *schema.Topology
	dir      string
}

func (b *bench) newApp(t *schema.Topology) *app {
	b.apps++
	name := fmt.Sprintf("bench-%d-%d", os.Getpid(), b.apps)
	b.cluster.topics = append(b.cluster.topics, processor.InternalTopics(name, t)...)
	return &app{b: b, name: name, topology: t, dir: filepath.Join(b.folder(), "state", name)}
}

// worker is an instance that runs.
type worker struct {
	*processor.Worker
	metrics *prometheus.Registry
	client  *broker.Client
	cancel  context.CancelFunc
	ended   chan error
}

// start runs an instance. set may change its configuration.
func (a *app) start(instance string, set func(*processor.Config)) (*worker, error) {
	client, err := broker.New(broker.Config{Brokers: a.b.cluster.addrs})
	if err != nil {
		return nil, err
	}
	w := &worker{metrics: prometheus.NewRegistry(), client: client, ended: make(chan error, 1)}
	cfg := processor.Config{
		App: a.name, Instance: instance, Topology: a.topology, Client: client, StateDir: filepath.Join(a.dir, instance),
		Replication: 1, MmapSize: 4 << 30, MaxRows: 1 << 24, Registerer: w.metrics,
	}
	if a.b.verbose {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if set != nil {
		set(&cfg)
	}
	if w.Worker, err = processor.New(cfg); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	go func() { w.ended <- w.Run(ctx) }()
	return w, nil
}

// stop ends the instance and waits for it.
func (w *worker) stop() error {
	w.cancel()
	return errors.Join(<-w.ended, w.client.Close())
}

// poll is how often a worker is looked at.
const poll = 5 * time.Millisecond

// until waits for what is asked of the instance's status.
func (w *worker) until(ctx context.Context, what string, is func(processor.Status) bool) error {
	bounded, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		s := w.Status()
		if is(s) {
			return nil
		}
		for _, t := range s.Tasks {
			if t.State == processor.Failed.String() {
				return fmt.Errorf("task %s: %s", t.Task, t.Error)
			}
		}
		select {
		case err := <-w.ended:
			w.ended <- err
			return fmt.Errorf("the worker ended while waiting until %s: %w", what, err)
		case <-bounded.Done():
			return fmt.Errorf("waiting until %s: %w; %s", what, bounded.Err(), s.Reason)
		case <-tick.C:
		}
	}
}

// running says whether so many tasks run.
func running(tasks int) func(processor.Status) bool {
	return func(s processor.Status) bool {
		n := 0
		for _, t := range s.Tasks {
			if t.State == processor.Running.String() {
				n++
			}
		}
		return n == tasks
	}
}

// caughtUp says whether so many tasks run, each with all that is in its source.
func caughtUp(tasks int) func(processor.Status) bool {
	run := running(tasks)
	return func(s processor.Status) bool {
		for _, t := range s.Tasks {
			if t.Lag > 0 {
				return false
			}
		}
		return s.Ready && run(s)
	}
}
