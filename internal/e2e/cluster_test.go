package e2e

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/streamgauge/streamgauge/gateway"
	"github.com/streamgauge/streamgauge/graph"
	"github.com/streamgauge/streamgauge/graph/resolve"
	"github.com/streamgauge/streamgauge/internal/embedded"
	"github.com/streamgauge/streamgauge/internal/load"
	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/read/rpc"
	"github.com/streamgauge/streamgauge/view/schema"
	"google.golang.org/grpc"
)

// cluster is a broker with the flights and the instances over it.
type cluster struct {
	t        testing.TB
	broker   *embedded.Broker
	topology *schema.Topology
	dir      string
}

func newCluster(t testing.TB) *cluster {
	t.Helper()
	s, err := schema.Load("schema", []byte(graph.SchemaText))
	if err != nil {
		t.Fatal(err)
	}
	b, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return &cluster{t: t, broker: b, topology: s.Topology, dir: t.TempDir()}
}

// write puts JSON lines into a topic of six partitions: by key, or dealt in
// turn.
func (c *cluster) write(topic, key string, lines []string) {
	c.t.Helper()
	client, err := broker.New(broker.Config{Brokers: c.broker.Addrs()})
	if err != nil {
		c.t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := client.CreateTopics(ctx, []broker.TopicSpec{{Name: topic, Partitions: 6, Replication: 1}}); err != nil {
		c.t.Fatal(err)
	}
	p := client.NewProducer(broker.ProducerConfig{})
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	w := load.NewWriter(p, topic, 6)
	for _, line := range lines {
		r := load.Record{Partition: -1, Value: []byte(line)}
		if key != "" {
			if r.Key, err = load.KeyOf([]byte(line), key); err != nil {
				c.t.Fatal(err)
			}
		}
		if err := w.Write(ctx, r); err != nil {
			c.t.Fatal(err)
		}
	}
	if err := w.Flush(ctx); err != nil {
		c.t.Fatal(err)
	}
	cancel()
	<-ran
}

// node is one instance.
type node struct {
	t       testing.TB
	worker  *processor.Worker
	gateway *gateway.Gateway
	exec    *executor.Executor
	stop    func()
}

func (c *cluster) start(name string) *node {
	c.t.Helper()
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("STREAMGAUGE_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	client, err := broker.New(broker.Config{Brokers: c.broker.Addrs()})
	if err != nil {
		c.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	w, err := processor.New(processor.Config{
		App: "flights", Instance: name, Addr: l.Addr().String(), Topology: c.topology, Client: client, StateDir: c.dir + "/" + name,
		Replication: 1, SessionTimeout: 3 * time.Second, HeartbeatInterval: 300 * time.Millisecond, MmapSize: 1 << 28, Logger: log,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{
		Views: c.topology.Views, Routes: w, Local: w, LocalID: name, Logger: log,
		Dial:  func(p read.Peer) (gateway.Peer, error) { return rpc.NewClient(p.Addr, rpc.Options{}) },
		Allow: func(context.Context, *view.View) error { return nil },
	})
	if err != nil {
		c.t.Fatal(err)
	}
	srv := grpc.NewServer(rpc.ServerOptions()...)
	rpc.Register(srv, rpc.Service{Instance: w, Routes: w})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 3)
	go func() { ended <- w.Run(ctx) }()
	go func() { ended <- g.Run(ctx) }()
	go func() { ended <- srv.Serve(l) }()
	n := &node{t: c.t, worker: w, gateway: g, exec: executor.New(graph.New(g))}
	stopped := false
	n.stop = func() {
		if stopped {
			return
		}
		stopped = true
		srv.Stop()
		cancel()
		for range 3 {
			if err := <-ended; err != nil {
				c.t.Errorf("instance %s: %v", name, err)
			}
		}
		if err := client.Close(); err != nil {
			c.t.Errorf("close client of %s: %v", name, err)
		}
	}
	c.t.Cleanup(n.stop)
	return n
}

// query runs a GraphQL document and returns its data, or its errors as text.
func (n *node) query(text string) string {
	n.t.Helper()
	ctx := resolve.BeginOperation(graphql.StartOperationTrace(context.Background()))
	op, errs := n.exec.CreateOperationContext(ctx, &graphql.RawParams{Query: text})
	if errs != nil {
		return errs.Error()
	}
	handle, ctx := n.exec.DispatchOperation(ctx, op)
	r := handle(ctx)
	if len(r.Errors) > 0 {
		return r.Errors.Error()
	}
	return string(r.Data)
}

// subscribe runs a subscription; each event's data goes to the channel.
func (n *node) subscribe(ctx context.Context, text string) <-chan string {
	ctx = resolve.BeginOperation(graphql.StartOperationTrace(ctx))
	op, errs := n.exec.CreateOperationContext(ctx, &graphql.RawParams{Query: text})
	if errs != nil {
		n.t.Fatal(errs)
	}
	handle, ctx := n.exec.DispatchOperation(ctx, op)
	out := make(chan string)
	go func() {
		defer close(out)
		for r := handle(ctx); r != nil; r = handle(ctx) {
			event := string(r.Data)
			if len(r.Errors) > 0 {
				event = r.Errors.Error()
			}
			select {
			case out <- event:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func flightLines(t testing.TB) []string {
	t.Helper()
	f, err := os.Open("../../cmd/flights/data/flights-20k.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return readLines(t, z)
}

func airportLines(t testing.TB) []string {
	t.Helper()
	f, err := os.Open("../../cmd/flights/data/airports.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return readLines(t, f)
}

func readLines(t testing.TB, r io.Reader) []string {
	var out []string
	s := bufio.NewScanner(r)
	for s.Scan() {
		out = append(out, s.Text())
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return out
}

// same compares JSON texts, but for white space.
func same(a, b string) bool {
	var x, y any
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return strings.TrimSpace(a) == strings.TrimSpace(b)
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}
