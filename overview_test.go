package streamgauge

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/internal/embedded"
	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/read/rpc"
	"github.com/streamgauge/streamgauge/view/schema"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// smallCluster is a broker, instances and gateways of the small application.
type smallCluster struct {
	t       *testing.T
	brokers []string
}

func newSmallCluster(t *testing.T) *smallCluster {
	t.Helper()
	b, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	client, err := broker.New(broker.Config{Brokers: b.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.CreateTopics(t.Context(), []broker.TopicSpec{{Name: "events", Partitions: 2, Replication: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	return &smallCluster{t: t, brokers: b.Addrs()}
}

func (c *smallCluster) setup(name string, seeds ...string) setup {
	c.t.Helper()
	cfg := DefaultConfig("small")
	cfg.Instance, cfg.Kafka.Brokers, cfg.State.Dir = name, c.brokers, c.t.TempDir()
	cfg.Kafka.SessionTimeout, cfg.Kafka.HeartbeatInterval = 3*time.Second, 300*time.Millisecond
	cfg.Listen.HTTP, cfg.Listen.GRPC = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Gateway.Seeds, cfg.StopTimeout = seeds, 5*time.Second
	loaded, err := schema.Load("schema", []byte(smallSchema))
	if err != nil {
		c.t.Fatal(err)
	}
	verifier, err := auth.New(auth.Config{Off: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.t.Fatal(err)
	}
	app := small()
	app.New = func(read.Views) graphql.ExecutableSchema {
		return schemaAlone{schema: gqlparser.MustLoadSchema(&ast.Source{Input: "type Query { x: Int }"})}
	}
	return setup{app: app, cfg: cfg, topology: loaded.Topology, verifier: verifier, log: slog.New(slog.DiscardHandler)}
}

// run runs something until the test ends or stop is called.
func (c *smallCluster) run(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-done; err != nil {
			c.t.Error(err)
		}
	}
	c.t.Cleanup(stop)
	return stop
}

func (c *smallCluster) instance(name string) (in *instance, stop func()) {
	c.t.Helper()
	in, err := newInstance(c.setup(name))
	if err != nil {
		c.t.Fatal(err)
	}
	return in, c.run(in.run)
}

func (c *smallCluster) gateway(seeds ...string) *alone {
	c.t.Helper()
	a, err := newAlone(c.setup("gw", seeds...))
	if err != nil {
		c.t.Fatal(err)
	}
	c.run(func(ctx context.Context) error {
		defer a.close()
		return a.run(ctx, beside{parts: []func(context.Context) error{a.follower.Run}, drained: func() {}, cut: a.closeClient})
	})
	return a
}

// instancesAt asks an address for the instances until they are as wanted.
func (c *smallCluster) instancesAt(l net.Listener, as func([]instanceInfo) bool) []instanceInfo {
	c.t.Helper()
	var told struct{ Instances []instanceInfo }
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		told.Instances = nil
		r, err := http.Get("http://" + l.Addr().String() + "/api/instances")
		if err != nil {
			c.t.Fatal(err)
		}
		err = json.NewDecoder(r.Body).Decode(&told)
		if r.Body.Close(); err != nil {
			c.t.Fatal(err)
		}
		if as(told.Instances) {
			return told.Instances
		}
	}
	c.t.Fatalf("still %+v", told.Instances)
	return nil
}

func named(list []instanceInfo) (names string) {
	for _, i := range list {
		names += i.ID + " "
	}
	return names
}

// whole says whether instances are ready and tell of their tasks.
func whole(list []instanceInfo) bool {
	return !slices.ContainsFunc(list, func(i instanceInfo) bool {
		return !i.Ready || i.Silent || !i.Gateway && len(i.Tasks) == 0 ||
			slices.ContainsFunc(i.Tasks, func(t processor.TaskStatus) bool { return t.State != "running" && t.State != "following" })
	})
}

// Whichever instance is asked, and a gateway alone too, tells of all of them in
// full; one that has gone is told of as silent, with what the routes say.
func TestEveryInstanceIsToldOf(t *testing.T) {
	c := newSmallCluster(t)
	a, _ := c.instance("a")
	b, _ := c.instance("b")
	gw := c.gateway(a.rpc.Addr().String(), b.rpc.Addr().String())
	for _, s := range []struct {
		l     net.Listener
		names string
	}{{a.http, "a b "}, {b.http, "a b "}, {gw.http, "gw a b "}} {
		list := c.instancesAt(s.l, func(list []instanceInfo) bool { return named(list) == s.names && whole(list) })
		for _, i := range list {
			if want := i.HTTP == s.l.Addr().String(); i.Self != want {
				t.Errorf("at %s: %s is itself: %t", s.l.Addr(), i.ID, i.Self)
			}
			if i.Generation < 1 || !i.Live {
				t.Errorf("at %s: %s has generation %d, live %t", s.l.Addr(), i.ID, i.Generation, i.Live)
			}
		}
	}

	b.grpc.Stop() // as if its port had died
	list := c.instancesAt(a.http, func(list []instanceInfo) bool { return len(list) == 2 && list[1].Silent })
	if i := list[1]; i.Ready || i.Reason != "it is not reached at "+b.rpc.Addr().String() || len(i.Tasks) == 0 || i.Tasks[0].State != "unknown" || i.Tasks[0].Role == "" {
		t.Errorf("silent: %+v", i)
	}
}

// However many ask, an instance is asked once in a while, and bounded.
func TestOverviewIsShared(t *testing.T) {
	in, _ := listening(t, "b")
	dials := 0
	o := newOverview("a", routesOf{"a": "127.0.0.1:1", "b": in.rpc.Addr().String()}, func(p read.Peer) (*rpc.Client, error) {
		dials++
		return in.dial(p)
	})
	defer in.closeOverview(o)
	first := o.others(t.Context())
	if len(first) != 1 || first[0].ID != "b" || !first[0].Silent || first[0].Reason != "it is of a release that does not tell of itself" {
		t.Errorf("got %+v", first)
	}
	if again := o.others(t.Context()); len(again) != 1 || dials != 1 {
		t.Errorf("got %+v after %d connections", again, dials)
	}
	o.at, o.routes = time.Time{}, routesOf{"a": "127.0.0.1:1"}
	if none := o.others(t.Context()); len(none) != 0 || len(o.clients) != 0 {
		t.Errorf("got %+v, connections %v", none, o.clients)
	}
}

// routesOf are the addresses of instances.
type routesOf map[string]string

func (r routesOf) Routes() (*read.Routes, <-chan struct{}) {
	table := &read.Routes{Generation: 1, Instances: make(map[string]read.Peer)}
	for id, addr := range r {
		table.Instances[id] = read.Peer{ID: id, Addr: addr}
	}
	return table, nil
}
