package processor

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
	"github.com/twmb/franz-go/pkg/kfake"
)

// testCluster is an embedded broker and the instances that use it.
type testCluster struct {
	t      *testing.T
	broker *kfake.Cluster
	addrs  []string
	topo   *schema.Topology
	app    string
}

func newTestCluster(t *testing.T, sdl string) *testCluster {
	t.Helper()
	loaded, err := schema.Load("schema.graphqls", []byte(sdl))
	if err != nil {
		t.Fatal(err)
	}
	c := &testCluster{t: t, topo: loaded.Topology, app: "test"}
	if addr := os.Getenv("STREAMGAUGE_TEST_KAFKA"); addr != "" {
		c.addrs = []string{addr}
		c.wipe()
		t.Cleanup(c.wipe)
		return c
	}
	k, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	c.broker, c.addrs = k, k.ListenAddrs()
	return c
}

// fake is the embedded broker; a test of what only that can do is skipped on a
// real one.
func (c *testCluster) fake() *kfake.Cluster {
	c.t.Helper()
	if c.broker == nil {
		c.t.Skip("needs the embedded broker")
	}
	return c.broker
}

// onKafka skips a test of what only a real broker does. STREAMGAUGE_TEST_KAFKA has
// the address of one that nothing else uses.
func onKafka(t *testing.T) {
	t.Helper()
	if os.Getenv("STREAMGAUGE_TEST_KAFKA") == "" {
		t.Skip("needs a real Kafka: make test-kafka")
	}
}

// wipe empties a real broker: tests use the same names.
func (c *testCluster) wipe() {
	c.t.Helper()
	client := c.client()
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		cluster, err := client.Metadata(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		var left []string
		for name, topic := range cluster.Topics {
			if !topic.Internal {
				left = append(left, name)
			}
		}
		if len(left) == 0 {
			break
		}
		if err := client.DeleteTopics(ctx, left...); err != nil && !errors.Is(err, broker.ErrUnknownTopic) {
			c.t.Fatal(err)
		}
	}
	for {
		err := client.DeleteGroup(ctx, c.app)
		if err == nil || errors.Is(err, broker.ErrGroupNotFound) {
			return
		}
		if !errors.Is(err, broker.ErrNonEmptyGroup) {
			c.t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // a session that runs out
	}
}

func (c *testCluster) client() *broker.Client {
	c.t.Helper()
	client, err := broker.New(broker.Config{Brokers: c.addrs})
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

// create makes a topic of n partitions.
func (c *testCluster) create(topic string, n int32) {
	c.t.Helper()
	client := c.client()
	defer client.Close()
	if err := client.CreateTopics(c.t.Context(), []broker.TopicSpec{{Name: topic, Partitions: n, Replication: 1}}); err != nil {
		c.t.Fatal(err)
	}
}

// message is a record to be produced.
type message struct {
	partition int32
	key       []byte
	value     []byte
	headers   []broker.Header
	timestamp int64
}

// produce writes messages, in order, and waits until they are acknowledged.
func (c *testCluster) produce(topic string, messages ...message) {
	c.t.Helper()
	client := c.client()
	defer client.Close()
	ctx, cancel := context.WithCancel(c.t.Context())
	p := client.NewProducer(broker.ProducerConfig{})
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	batches := make(map[int32]*broker.BatchBuilder)
	for _, m := range messages {
		b := batches[m.partition]
		if b == nil {
			b = broker.NewBatchBuilder(broker.LZ4)
			batches[m.partition] = b
		}
		if m.timestamp == 0 {
			m.timestamp = time.Now().UnixMilli()
		}
		b.Append(m.timestamp, m.key, m.value, m.headers)
	}
	acks := make(chan error, len(batches))
	for part, b := range batches {
		if err := p.Produce(ctx, broker.TopicPartition{Topic: topic, Partition: part}, b, func(_ int64, err error) { acks <- err }); err != nil {
			c.t.Fatal(err)
		}
	}
	for range batches {
		if err := <-acks; err != nil {
			c.t.Fatal(err)
		}
	}
	cancel()
	<-ran
}

// lines makes messages of JSON lines, dealt to n partitions in turn.
func lines(n int32, text ...string) []message {
	ms := make([]message, len(text))
	for i, s := range text {
		ms[i] = message{partition: int32(i) % n, value: []byte(s)}
	}
	return ms
}

// instance is a running worker.
type instance struct {
	*Worker
	client *broker.Client
	stop   context.CancelFunc
	done   chan error
}

// start runs a worker; it is stopped when the test ends.
func (c *testCluster) start(name string, change ...func(*Config)) *instance {
	c.t.Helper()
	client := c.client()
	cfg := Config{
		App: c.app, Instance: name, Topology: c.topo, Client: client, Replication: 1,
		StateDir: c.t.TempDir(), CommitInterval: 20 * time.Millisecond, MmapSize: 1 << 28,
		SessionTimeout: 1500 * time.Millisecond, HeartbeatInterval: 200 * time.Millisecond,
		Logger: testLogger(c.t),
	}
	for _, f := range change {
		f(&cfg)
	}
	w, err := New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	in := &instance{Worker: w, client: client, stop: cancel, done: make(chan error, 1)}
	go func() { in.done <- w.Run(ctx) }()
	c.t.Cleanup(func() {
		if err := in.close(); err != nil {
			c.t.Error(err)
		}
	})
	return in
}

func (in *instance) close() error {
	in.stop()
	err := <-in.done
	in.done <- nil
	return errors.Join(err, in.client.Close())
}

// until waits for a condition, at most half a minute.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func testLogger(t *testing.T) *slog.Logger {
	if os.Getenv("STREAMGAUGE_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// ask sends one query to each instance's own partitions and merges the answers
// as a gateway would, for keys that live in one place. nil: not answered by any.
func ask(t *testing.T, ins []*instance, store string, key ...view.Value) *read.Row {
	t.Helper()
	for _, in := range ins {
		v := in.views[store]
		routes, _ := in.Routes()
		n := routes.Partitions[v.Subtopology]
		for p := range n {
			q := read.Query{Store: store, Op: read.Get, Keys: [][]view.Value{key}}
			as, err := in.Read(t.Context(), []*read.Request{{Query: q, Partition: p}})
			if err == nil && as[0].Err == nil && as[0].Rows[0] != nil {
				return as[0].Rows[0]
			}
		}
	}
	return nil
}

func flightLines(t testing.TB) []string {
	f, err := os.Open("../cmd/flights/data/flights-20k.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for s := bufio.NewScanner(z); s.Scan(); {
		out = append(out, s.Text())
	}
	return out
}

func column(in *instance, store string, row *read.Row, name string) view.Value {
	return row.Values[in.views[store].Column(name)]
}

func readFile(t testing.TB, path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
