package processor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// gate is a way to the brokers that can be shut: what is under way waits.
type gate struct {
	mu   sync.Mutex // guards open
	open chan struct{}
}

func newGate() *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

func (g *gate) lift() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
}

func (g *gate) wait() {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	<-open
}

func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.wait()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &gatedConn{conn, g}, nil
}

type gatedConn struct {
	net.Conn
	gate *gate
}

func (c *gatedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.gate.wait()
	return n, err
}

func (c *gatedConn) Write(p []byte) (int, error) {
	c.gate.wait()
	return c.Conn.Write(p)
}

// A standby that was paused while the cleaner went over its changelog must not
// show what the cleaner has left of old transactions: it restores, and then says
// what its owner says. Only a real broker compacts so.
func TestKafkaCleanerOvertakesPausedStandby(t *testing.T) {
	onKafka(t)
	c := newTestCluster(t, pairSchema)
	c.create("hits", 1)
	c.createCompacted("test-page-totals-changelog", "test-page-minute-changelog")
	one := c.start("one", func(cfg *Config) { cfg.SessionTimeout, cfg.HeartbeatInterval = 6*time.Second, time.Second })
	until(t, "the owner is ready", func() bool { return one.Status().Ready })
	way := newGate()
	two := c.start("two", func(cfg *Config) {
		cfg.SessionTimeout, cfg.HeartbeatInterval = 60*time.Second, time.Second
		client, err := broker.New(broker.Config{Brokers: c.addrs, Dial: way.dial})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		cfg.Client = client
	})
	task := taskID{"hits", 0}
	hit := func(n int) {
		var ms []message
		for i := range 50 {
			key := fmt.Sprint("k", i)
			ms = append(ms, keyed(key, fmt.Sprintf(`{"page":%q,"at":"2024-01-01T00:00:00Z","ms":%d}`, key, n)))
		}
		c.produce("hits", ms...)
	}
	hit(0)
	until(t, "the standby follows", func() bool {
		s := two.task(task)
		return s != nil && s.serving.Load() != nil && two.part(t, "page-totals", 0, view.OfString("k1")).Part.Seq > 0
	})
	before := two.part(t, "page-totals", 0, view.OfString("k1")).Part.Seq
	way.shut()
	for n := 1; n < 60; n++ {
		hit(n)
		want := int64(50 * (n + 1))
		until(t, "the owner has it", func() bool { return total(one) == want })
	}
	holes := c.compacted("test-page-totals-changelog")
	if !holes {
		t.Fatal("the cleaner did not come by")
	}
	if p := two.part(t, "page-totals", 0, view.OfString("k1")).Part; p.Seq != before || p.Role != read.Standby {
		t.Errorf("paused, it says %+v; its seq was %d", p, before)
	}
	way.lift()
	seen := before
	until(t, "the standby has caught up", func() bool {
		a := two.part(t, "page-totals", 0, view.OfString("k1"))
		if a.Err != nil {
			return false // restoring
		}
		if a.Part.Seq < seen {
			t.Fatalf("it went back from %d to %d", seen, a.Part.Seq)
		}
		seen = a.Part.Seq
		// Every commit changed all fifty keys, or a part of them, in order: the sum
		// is never that of a mixture.
		if sum := total(two); sum < 0 || sum > 50*60 {
			t.Fatalf("it counts %d", sum)
		}
		return total(two) == 50*60
	})
	if count(t, two.metrics.overtaken) == 0 {
		t.Error("it did not notice that it was overtaken")
	}
}

const pairSchema = `
type Hit @source(topic: "hits", key: "page", time: "at") { page: String! at: DateTime! ms: Long! }
type PageTotals @view(from: "Hit", by: "page") { page: String! hits: Long! @count ms: Long! @sum(of: "ms") }
type PageMinute @view(from: "Hit", by: "page") @window(size: "1m", grace: "1d", retain: "30d") {
  page: String! start: DateTime! @windowStart hits: Long! @count }
type Query { page(page: String!): PageTotals @lookup pages: [PageTotals!] @range minutes(page: String!): [PageMinute!] @windows }`

// total is how many hits an instance's copy counts; −1: it does not answer.
func total(in *instance) int64 {
	q := read.Query{Store: "page-totals", Op: read.Range, First: 1000}
	as, err := in.Read(context.Background(), []*read.Request{{Query: q}})
	if err != nil || as[0].Err != nil {
		return -1
	}
	sum := int64(0)
	for _, row := range as[0].Rows {
		sum += column(in, "page-totals", row, "hits").Int()
	}
	return sum
}

// createCompacted makes changelogs that the cleaner comes by all the time.
func (c *testCluster) createCompacted(topics ...string) {
	c.t.Helper()
	client := c.client()
	defer client.Close()
	for _, name := range topics {
		spec := broker.TopicSpec{Name: name, Partitions: 1, Replication: 1, Configs: map[string]string{
			"cleanup.policy": "compact", "segment.bytes": "1048576", "segment.ms": "1000", "max.message.bytes": "1000000",
			"min.cleanable.dirty.ratio": "0.01", "max.compaction.lag.ms": "1000", "file.delete.delay.ms": "100",
		}}
		if err := client.CreateTopics(c.t.Context(), []broker.TopicSpec{spec}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// compacted waits until a changelog's partition has holes.
func (c *testCluster) compacted(topic string) bool {
	c.t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for time.Now().Before(deadline) {
		client := c.client()
		f := client.NewFetcher(broker.FetcherConfig{Isolation: broker.ReadCommitted})
		ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
		chunks := make(chan *broker.Chunk, 1)
		f.Add(broker.TopicPartition{Topic: topic}, 0, func(ch *broker.Chunk) { chunks <- ch })
		done := make(chan struct{})
		go func() { defer close(done); _ = f.Run(ctx) }()
		holes := false
		select {
		case ch := <-chunks:
			if _, err := ch.Each(func(*broker.Record) error { return nil }); err != nil {
				c.t.Fatal(err)
			}
			holes = ch.Holes
		case <-ctx.Done():
		}
		cancel()
		<-done
		client.Close()
		if holes {
			return true
		}
		time.Sleep(500 * time.Millisecond)
	}
	return false
}

// A transaction that nobody ends holds its topic up. The task says whose it is,
// its reads tell that they are stale, and all goes on when the broker ends it.
func TestKafkaHangingTransaction(t *testing.T) {
	onKafka(t)
	c := newTestCluster(t, hitSchema)
	c.create("hits", 1)
	in := c.start("one", func(cfg *Config) { cfg.HeldUpAfter = 2 * time.Second })
	c.produce("hits", keyed("a", `{"page":"a","at":"2024-01-01T00:00:00Z","ms":1}`))
	in.becomes(t, all("page-totals"), "hits", "hits=1")
	hanging, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...), kgo.TransactionalID("somebody-else"), kgo.TransactionTimeout(8*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer hanging.Close()
	if err := hanging.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	record := &kgo.Record{Topic: "hits", Key: []byte("a"), Value: []byte(`{"page":"a","at":"2024-01-01T00:00:00Z","ms":2}`)}
	if err := hanging.ProduceSync(t.Context(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
	c.produce("hits", keyed("a", `{"page":"a","at":"2024-01-01T00:00:00Z","ms":4}`))
	until(t, "the task says who holds it up", func() bool {
		s := in.Status().Tasks[0]
		return strings.Contains(s.Note, "hits-0 is held up at offset 1 by the transaction of producer ") && s.Lag > 0
	})
	stale := in.Status().Tasks[0].AsOf
	until(t, "the broker has ended it", func() bool { return in.Status().Tasks[0].Note == "" })
	in.becomes(t, all("page-totals"), "hits", "hits=2")
	until(t, "it is fresh again", func() bool { s := in.Status().Tasks[0]; return s.Lag == 0 && s.AsOf > stale })
}

// What Kafka itself tells of the application: the group under its name, with offsets and
// lag of every input, and the changelogs compacted.
func TestKafkaDescribesTheGroup(t *testing.T) {
	onKafka(t)
	c := newTestCluster(t, hitSchema)
	c.create("hits", 2)
	in := c.start("one")
	until(t, "ready", func() bool { return in.Status().Ready })
	c.produce("hits", keyed("a", `{"page":"a","at":"2024-01-01T00:00:00Z","ms":1}`))
	client := c.client()
	defer client.Close()
	g, err := client.DescribeGroup(t.Context(), "test")
	if err != nil || g.State != "Stable" || len(g.Members) != 1 {
		t.Fatalf("%+v, %v", g, err)
	}
	a, err := broker.ParseAssignment(g.Members[0].Assignment)
	if err != nil || len(a.Partitions["hits"]) != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	configs, err := client.TopicConfigs(t.Context(), schema.Changelog("test", "page-totals"))
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range configs {
		if cfg["cleanup.policy"] != "compact" {
			t.Errorf("the changelog has cleanup.policy=%s", cfg["cleanup.policy"])
		}
	}
}

// through makes a worker reach the brokers in a way of the test's.
func (c *testCluster) through(dial func(context.Context, string, string) (net.Conn, error)) func(*Config) {
	return func(cfg *Config) {
		client, err := broker.New(broker.Config{Brokers: c.addrs, Dial: dial, RequestTimeout: 3 * time.Second})
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { client.Close() })
		cfg.Client = client
	}
}

// Each request of a start and of a commit gets lost, before the broker has done it
// and after. Invariant 1: every record counts once.
func TestKafkaLostRequests(t *testing.T) {
	onKafka(t)
	for _, key := range []int16{0, 9, 10, 12, 22, 24, 25, 26, 28} {
		for _, how := range []fate{unsent, unanswered} {
			t.Run(fmt.Sprint(requestNames[key], " ", map[fate]string{unsent: "lost", unanswered: "done, its answer lost"}[how]), func(t *testing.T) {
				c := newTestCluster(t, pairSchema)
				c.create("hits", 1)
				w := &wire{way: (&net.Dialer{}).DialContext}
				n, lost := 0, 0
				w.set(func(k int16) fate { // the first, the fourth and every seventh
					if k != key {
						return delivered
					}
					if n++; n == 1 || n == 4 || n%7 == 0 {
						lost++
						return how
					}
					return delivered
				})
				in := c.start("one", c.through(w.dial), func(cfg *Config) { cfg.Standbys = -1 })
				want := int64(0)
				for i := range 25 {
					c.produce("hits", keyed("a", fmt.Sprintf(`{"page":"a","at":"2024-01-01T00:00:00Z","ms":%d}`, i)))
					want++
				}
				until(t, "every record counts once", func() bool {
					got := total(in)
					if got > want {
						t.Fatalf("%d counted of %d", got, want)
					}
					return got == want
				})
				w.set(nil)
				if lost == 0 {
					t.Errorf("no %s was lost", requestNames[key])
				}
			})
		}
	}
}

// A process that was stopped in the midst of its work wakes when another owns its
// tasks: nothing of what it was about to commit counts, nothing counts twice, and
// what it says does not pass for the owner's. Invariant 3.
func TestKafkaZombieWakes(t *testing.T) {
	onKafka(t)
	c := newTestCluster(t, pairSchema)
	c.create("hits", 2)
	way := newGate()
	zombie := c.start("zombie", c.through(way.dial), func(cfg *Config) { cfg.CommitInterval = 5 * time.Millisecond })
	until(t, "it is ready", func() bool { return zombie.Status().Ready })
	want := int64(0)
	produce := func(rounds int) {
		for i := range rounds {
			var ms []message
			for p := range int32(2) {
				ms = append(ms, message{partition: p, key: keyIn(p, i), value: fmt.Appendf(nil, `{"page":%q,"at":"2024-01-01T00:00:00Z","ms":1}`, keyIn(p, i))})
			}
			c.produce("hits", ms...)
			want += 2
		}
	}
	produce(3)
	until(t, "it counts", func() bool { return totalOf(zombie, 2) == want })
	way.shut()
	other := c.start("other")
	produce(5)
	until(t, "another owns it all", func() bool { return totalOf(other, 2) == want && len(other.owns()) == 2 })
	if p := zombie.part(t, "page-totals", 0, view.OfString(string(keyIn(0, 0)))).Part; p.Role == read.Active {
		t.Errorf("stopped for long, it answers as %s", p.Role)
	}
	produce(5)
	way.lift()
	produce(5)
	until(t, "all counts once", func() bool {
		for _, in := range []*instance{zombie, other} {
			if got := totalOf(in, 2); got > want {
				t.Fatalf("%d counted of %d", got, want)
			}
		}
		return totalOf(other, 2) == want && totalOf(zombie, 2) == want
	})
}

// totalOf is total over some partitions; −1: one does not answer.
func totalOf(in *instance, partitions int32) int64 {
	sum := int64(0)
	for p := range partitions {
		q := read.Query{Store: "page-totals", Op: read.Range, First: 1000}
		as, err := in.Read(context.Background(), []*read.Request{{Query: q, Partition: p}})
		if err != nil || as[0].Err != nil {
			return -1
		}
		for _, row := range as[0].Rows {
			sum += column(in, "page-totals", row, "hits").Int()
		}
	}
	return sum
}

// A static member that comes back within its session keeps its tasks: the group is
// not rebalanced. One that comes back at another address tells the group.
func TestKafkaStaticMemberComesBack(t *testing.T) {
	onKafka(t)
	c := newTestCluster(t, hitSchema)
	c.create("hits", 2)
	static := func(name, addr, dir string) func(*Config) {
		return func(cfg *Config) {
			cfg.StaticID, cfg.Addr, cfg.SessionTimeout, cfg.HeartbeatInterval, cfg.StateDir = name, addr, 10*time.Second, time.Second, dir
		}
	}
	dir := t.TempDir()
	one := c.start("one", static("one", "one:1", t.TempDir()))
	two := c.start("two", static("two", "two:1", dir))
	until(t, "both are ready, and at rest", func() bool {
		return one.Status().Ready && two.Status().Ready && len(one.owns()) == 1 && len(two.owns()) == 1
	})
	generation := one.Status().Generation
	owned := two.owns()
	if err := two.close(); err != nil {
		t.Fatal(err)
	}
	two = c.start("two", static("two", "two:1", dir))
	until(t, "it is back", func() bool { return two.Status().Ready })
	if g := two.Status().Generation; g != generation || !slices.Equal(two.owns(), owned) {
		t.Errorf("it came back into generation %d with %v; it left %d with %v", g, two.owns(), generation, owned)
	}
	if err := two.close(); err != nil {
		t.Fatal(err)
	}
	two = c.start("two", static("two", "two:2", dir))
	until(t, "the other knows its new address", func() bool {
		routes, _ := one.Routes()
		return routes.Instances["two"].Addr == "two:2"
	})
	until(t, "all is well", func() bool { return one.Status().Ready && two.Status().Ready })
}

// A broker that throttles this client delays it, and that is all.
func TestKafkaThrottles(t *testing.T) {
	onKafka(t)
	c := newTestCluster(t, pairSchema)
	c.create("hits", 1)
	quota := func(remove bool) {
		t.Helper()
		client, err := kgo.NewClient(kgo.SeedBrokers(c.addrs...))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		req := kmsg.NewPtrAlterClientQuotasRequest()
		entry := kmsg.NewAlterClientQuotasRequestEntry()
		entity := kmsg.NewAlterClientQuotasRequestEntryEntity()
		entity.Type, entity.Name = "client-id", kmsg.StringPtr("slow")
		entry.Entity = append(entry.Entity, entity)
		for _, key := range []string{"producer_byte_rate", "consumer_byte_rate"} {
			op := kmsg.NewAlterClientQuotasRequestEntryOp()
			op.Key, op.Value, op.Remove = key, 4_000, remove
			entry.Ops = append(entry.Ops, op)
		}
		req.Entries = append(req.Entries, entry)
		if _, err := req.RequestWith(context.Background(), client); err != nil {
			t.Fatal(err)
		}
	}
	quota(false)
	t.Cleanup(func() { quota(true) })
	in := c.start("one", func(cfg *Config) {
		client, err := broker.New(broker.Config{Brokers: c.addrs, ClientID: "slow"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		cfg.Client, cfg.Standbys = client, -1
	})
	var ms []message
	for i := range 3000 {
		key := fmt.Sprintf("%032d", i)
		ms = append(ms, keyed(key, fmt.Sprintf(`{"page":%q,"at":"2024-01-01T00:00:00Z","ms":1}`, key)))
	}
	began := time.Now()
	c.produce("hits", ms...)
	until(t, "all is counted", func() bool {
		as, err := in.Read(context.Background(), []*read.Request{{Query: read.Query{Store: "page-totals", Op: read.Size}}})
		return err == nil && as[0].Err == nil && as[0].Count == 3000
	})
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("it took %s: nothing was throttled", took)
	}
	if n := count(t, in.metrics.restarts); n > 0 {
		t.Errorf("tasks started over %v times", n)
	}
}
