package processor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
)

// hitSchema keeps two stores in one source task.
const hitSchema = `
type Hit @source(topic: "hits", key: "page", time: "at") { page: String! at: DateTime! ms: Long! }
type PageTotals @view(from: "Hit", by: "page") { page: String! hits: Long! @count slow: Long! @count(where: "ms > 100") }
type PageTimes @view(from: "Hit", by: "page") { page: String! worst: Long @max(of: "ms") }
type Query { pageTotals(page: String!): PageTotals @lookup  pageTimes(page: String!): PageTimes @lookup }`

// filled is a cluster whose application has run once over one record.
func filled(t *testing.T) *testCluster {
	t.Helper()
	c := newTestCluster(t, hitSchema)
	c.create("hits", 1)
	c.produce("hits", message{key: []byte("a"), value: []byte(`{"page":"a","at":"2024-01-01T00:00:00Z","ms":7}`)})
	in := c.start("first")
	until(t, "the record is counted", func() bool { return ask(t, []*instance{in}, "page-totals", view.OfString("a")) != nil })
	if err := in.close(); err != nil {
		t.Fatal(err)
	}
	return c
}

// reload takes another schema for the instances that start from now on.
func (c *testCluster) reload(sdl string) {
	c.t.Helper()
	loaded, err := schema.Load("schema.graphqls", []byte(sdl))
	if err != nil {
		c.t.Fatal(err)
	}
	c.topo = loaded.Topology
}

// refused runs an instance that must not run, and returns why.
func (c *testCluster) refused(change ...func(*Config)) string {
	c.t.Helper()
	in := c.start("refused", change...)
	select {
	case err := <-in.done:
		in.done <- nil
		var refused *RefusedError
		if !errors.As(err, &refused) && err != nil {
			return err.Error()
		}
		if refused == nil {
			c.t.Fatal("the instance ended without a reason")
		}
		return refused.Error()
	case <-time.After(20 * time.Second):
		c.t.Fatalf("the instance runs: %+v", in.Status())
	}
	return ""
}

// stopped runs an instance until a task has stopped for good, and returns why.
// Reads of the task say that it has, with why as their cause, for the log: what it
// tells of brokers and folders is not for clients, nor for who may probe.
func (c *testCluster) stopped(store string) string {
	c.t.Helper()
	in := c.start("stopped")
	until(c.t, "a task that has failed", func() bool { return in.failure() != "" })
	reason := in.failure()
	as, err := in.Read(c.t.Context(), []*read.Request{{Query: read.Query{Store: store, Op: read.Get, Keys: [][]view.Value{{view.OfString("a")}}}}})
	if err != nil {
		c.t.Fatal(err)
	}
	if e := as[0].Err; e == nil || e.Code != read.Unavailable || e.Message != "processing has stopped" || e.Cause == nil || e.Cause.Error() != reason {
		c.t.Errorf("a read answers %v, want unavailable with the reason as its cause", e)
	}
	if s := in.Status(); s.Ready || s.Reason != "task hits_0 is failed" {
		c.t.Errorf("ready %t, reason %q", s.Ready, s.Reason)
	}
	return reason
}

// failure is why a task has stopped for good; "" when none has.
func (in *instance) failure() string {
	for _, task := range in.Status().Tasks {
		if task.State == Failed.String() {
			return task.Error
		}
	}
	return ""
}

func (c *testCluster) remove(topics ...string) {
	c.t.Helper()
	client := c.client()
	defer client.Close()
	if err := client.DeleteTopics(c.t.Context(), topics...); err != nil {
		c.t.Fatal(err)
	}
}

func wantText(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("got  %q\nwant %q in it", got, p)
		}
	}
}

func TestRefusesMissingSource(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	wantText(t, c.refused(), `topic "hits", which Hit reads, does not exist`, "create it, or correct the schema")
}

func TestRefusesOtherPartitionCount(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 3)
	c.create("test-page-totals-changelog", 2)
	wantText(t, c.refused(), `topic "test-page-totals-changelog" has 2 partitions where its source has 3`, "reset --app test")
}

func TestRefusesDeletingChangelog(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 1)
	client := c.client()
	defer client.Close()
	spec := broker.TopicSpec{Name: "test-page-totals-changelog", Partitions: 1, Replication: 1, Configs: map[string]string{"cleanup.policy": "delete"}}
	if err := client.CreateTopics(t.Context(), []broker.TopicSpec{spec}); err != nil {
		t.Fatal(err)
	}
	wantText(t, c.refused(), "cleanup.policy=delete and would lose state", "set cleanup.policy=compact")
}

func TestRefusesDirectoryInUse(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 1)
	dir := t.TempDir()
	in := c.start("one", func(cfg *Config) { cfg.StateDir = dir })
	until(t, "ready", func() bool { return in.Status().Ready })
	wantText(t, c.refused(func(cfg *Config) { cfg.StateDir = dir }), "in use by another process", "a directory of its own")
}

func TestRefusesUnreachableBroker(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 1)
	c.fake().Close()
	got := c.refused()
	wantText(t, got, "cannot reach Kafka at "+c.addrs[0])
}

func TestRefusesChangedSchema(t *testing.T) {
	tests := map[string]struct{ old, new, want string }{
		"column added":   {"slow: Long!", "fast: Long! @count(where: \"ms < 10\") slow: Long!", "new in the schema: page-totals.fast"},
		"column changed": {"ms > 100", "ms > 200", "changed in the schema: page-totals.slow"},
		"view added": {"type Query", `type PageSums @view(from: "Hit", by: "page") { page: String! sum: Long! @sum(of: "ms") }
			type Query`, "new in the schema: page-sums.page, page-sums.sum"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := filled(t)
			c.reload(strings.Replace(hitSchema, test.old, test.new, 1))
			wantText(t, c.refused(), test.want, "written by another schema", "reset --app test")
		})
	}
}

// Dropping a column is free, and the others keep what they have.
func TestTakesDroppedColumn(t *testing.T) {
	c := filled(t)
	c.reload(strings.Replace(hitSchema, `slow: Long! @count(where: "ms > 100")`, "", 1))
	in := c.start("second")
	var row *read.Row
	until(t, "the row", func() bool { row = ask(t, []*instance{in}, "page-totals", view.OfString("a")); return row != nil })
	if n := column(in, "page-totals", row, "hits").Int(); n != 1 {
		t.Errorf("%d hits, want 1", n)
	}
}

func TestRefusesRecreatedInput(t *testing.T) {
	c := filled(t)
	c.remove("hits")
	c.create("hits", 1)
	c.produce("hits", message{key: []byte("a"), value: []byte(`{"page":"a","at":"2024-01-01T00:00:00Z","ms":8}`)})
	wantText(t, c.stopped("page-totals"), "input hits was created anew", "reset --app test")
}

// Without a store at the source, it is the tasks downstream that know whose
// offsets they have taken.
func TestRefusesRecreatedInputWithoutStore(t *testing.T) {
	c := newTestCluster(t, strings.ReplaceAll(hitSchema, `, key: "page"`, ""))
	c.create("hits", 1)
	records := lines(1, `{"page":"a","at":"2024-01-01T00:00:00Z","ms":7}`, `{"page":"b","at":"2024-01-01T00:00:00Z","ms":7}`)
	c.produce("hits", records...)
	in := c.start("first")
	until(t, "both are counted", func() bool {
		ins := []*instance{in}
		return ask(t, ins, "page-totals", view.OfString("a")) != nil && ask(t, ins, "page-totals", view.OfString("b")) != nil
	})
	until(t, "the offset is committed", func() bool {
		offsets, err := in.client.CommittedOffsets(t.Context(), "test", []broker.TopicPartition{{Topic: "hits"}})
		return err == nil && offsets[broker.TopicPartition{Topic: "hits"}].Offset == 2
	})
	if err := in.close(); err != nil {
		t.Fatal(err)
	}
	c.remove("hits")
	c.create("hits", 1)
	c.produce("hits", append(records, records...)...)
	in = c.start("second")
	until(t, "a task that has failed", func() bool { return in.failure() != "" })
	wantText(t, in.failure(), "source topic hits was created anew", "reset --app test")
}

func TestRefusesLostChangelog(t *testing.T) {
	c := filled(t)
	c.remove("test-page-totals-changelog", "test-page-times-changelog")
	wantText(t, c.stopped("page-totals"), "the group's offset of hits-0 is 1, and the changelogs of the task are empty", "reset --app test")
}

func TestRefusesOneLostChangelog(t *testing.T) {
	c := filled(t)
	c.remove("test-page-times-changelog")
	wantText(t, c.stopped("page-totals"), "the changelogs of task hits_0 disagree: test-page-times-changelog ends at seq 0", "reset --app test")
}

func TestRefusesRowsWithoutRecord(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 1)
	client := c.client()
	defer client.Close()
	w, err := New(Config{App: "test", Instance: "x", StateDir: t.TempDir(), Topology: c.topo, Client: client, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.prepare(t.Context()); err != nil { // creates the topics
		t.Fatal(err)
	}
	c.produce("test-page-totals-changelog", message{key: view.AppendKey(nil, view.OfString("a")), value: []byte{1, 0x80}})
	wantText(t, c.stopped("page-totals"), "changelog of task hits_0 has rows and no commit record", "reset --app test")
}

func TestRefusesDisagreeingChangelogs(t *testing.T) {
	c := filled(t)
	rec := commitRecord{Seq: 900, Position: 1}
	c.produce("test-page-times-changelog", message{key: commitKey, value: rec.encode()})
	wantText(t, c.stopped("page-totals"), "the changelogs of task hits_0 disagree", "another at 900", "reset --app test")
}

// The offset ahead of the record: committed state is missing.
func TestRefusesOffsetAhead(t *testing.T) {
	c := filled(t)
	client := c.client()
	defer client.Close()
	err := client.CommitOffsets(t.Context(), broker.GroupCommit{Group: "test", Generation: -1, Offsets: map[broker.TopicPartition]broker.OffsetCommit{{Topic: "hits"}: {Offset: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, c.stopped("page-totals"), "the group's offset of hits-0 is 5, ahead of the changelogs' 1", "reset --app test")
}

// Input that was deleted before it was read stops the task, and says how much.
func TestRefusesTrimmedInput(t *testing.T) {
	c := filled(t)
	more := make([]message, 5)
	for i := range more {
		more[i] = message{key: []byte("a"), value: []byte(`{"page":"a","at":"2024-01-01T00:00:00Z","ms":8}`)}
	}
	c.produce("hits", more...)
	client := c.client()
	defer client.Close()
	if err := client.DeleteRecords(t.Context(), map[broker.TopicPartition]int64{{Topic: "hits"}: 4}); err != nil {
		t.Fatal(err)
	}
	wantText(t, c.stopped("page-totals"), "input hits-0 was deleted up to offset 4: 3 records are lost", "onLoss: skip")
}

// With onLoss: skip it goes on with what is left.
func TestSkipsTrimmedInput(t *testing.T) {
	c := filled(t)
	var more []message
	for range 5 {
		more = append(more, message{key: []byte("a"), value: []byte(`{"page":"a","at":"2024-01-01T00:00:00Z","ms":8}`)})
	}
	c.produce("hits", more...)
	client := c.client()
	defer client.Close()
	if err := client.DeleteRecords(t.Context(), map[broker.TopicPartition]int64{{Topic: "hits"}: 4}); err != nil {
		t.Fatal(err)
	}
	in := c.start("skipping", func(cfg *Config) { cfg.SkipLost = true })
	until(t, "three hits of six", func() bool {
		row := ask(t, []*instance{in}, "page-totals", view.OfString("a"))
		return row != nil && column(in, "page-totals", row, "hits").Int() == 3
	})
}

// A newer release's record is not guessed at.
func TestRefusesNewerCommitRecord(t *testing.T) {
	c := filled(t)
	c.produce("test-page-times-changelog", message{key: commitKey, value: []byte{commitVersion + 1}})
	wantText(t, c.stopped("page-totals"), "unknown format version", "run the newer release again")
}
