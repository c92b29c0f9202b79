package processor

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
)

const benchSchema = `
type Flight @source(topic: "flights", key: "origin", time: "at") { origin: String! at: DateTime! delay: Int! }
type Totals @view(from: "Flight", by: "origin") {
  origin: String! flights: Long! @count delayed: Long! @count(where: "delay > 15") minutes: Long! @sum(of: "delay")
  average: Float @avg(of: "delay") worst: Int @max(of: "delay") share: Float @expr(of: "delayed / flights") }
type Hours @view(from: "Flight", by: "origin") @window(size: "1h", retain: "120d") {
  origin: String! start: DateTime! @windowStart end: DateTime! @windowEnd flights: Long! @count minutes: Long! @sum(of: "delay") }
type Query { totals(origin: String!): Totals @lookup top(first: Int!): [Totals!] @top(by: "minutes") hours(origin: String!): [Hours!] @windows
  busiest(first: Int!): [Hours!] @top(by: "flights") }`

// benched is a life without a broker: a worker that serves one task.
func benched(b testing.TB, keys, hours int) *life {
	b.Helper()
	loaded, err := schema.Load("bench.graphqls", []byte(benchSchema))
	if err != nil {
		b.Fatal(err)
	}
	client, err := broker.New(broker.Config{Brokers: []string{"127.0.0.1:1"}})
	if err != nil {
		b.Fatal(err)
	}
	w, err := New(Config{App: "bench", Instance: "a", Topology: loaded.Topology, Client: client, StateDir: b.TempDir(), MmapSize: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	sub := loaded.Topology.Subtopologies[0]
	w.layout = &layout{partitions: map[string]int32{sub.Name: 1}}
	t := newTask(context.Background(), w, taskID{sub.Name, 0}, sub)
	t.order(read.Active, 0)
	t.leading.Store(true)
	w.tasks[t.id] = t
	c, err := t.openCopy()
	if err != nil {
		b.Fatal(err)
	}
	l := &life{taskCopy: c, agg: newAggregator(sub, c.store, w.metrics)}
	if err := l.fresh(broker.Committed{Offset: -1}, 0); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	n := int64(0)
	for k := range keys {
		for h := range hours {
			n++
			l.applyAll(b, fmt.Sprintf("key%07d", k), int64(h)*3_600_000, n)
		}
	}
	l.publishAll()
	if err := l.store.Checkpoint(context.Background()); err != nil {
		b.Fatal(err)
	}
	return l
}

func (l *life) applyAll(b testing.TB, key string, at, offset int64) {
	values := []view.Value{view.OfString(key), view.OfTime(at), view.OfInt(offset % 60)}
	for _, f := range l.agg.feeds {
		if err := l.agg.apply(f, values, view.Place{Time: at, Offset: offset}, noTime); err != nil {
			b.Fatal(err)
		}
	}
}

func (l *life) publishAll() {
	next := l.rec.clone()
	next.Seq++
	l.publish(l.agg.takeRun(), &next, nil)
}

func benchRead(b *testing.B, l *life, q read.Query) {
	b.Helper()
	requests := []*read.Request{{Query: q}}
	b.ReportAllocs()
	for b.Loop() {
		as, err := l.w.Read(b.Context(), requests)
		if err != nil || as[0].Err != nil {
			b.Fatal(err, as[0].Err)
		}
	}
}

func BenchmarkReadGet(b *testing.B) {
	l := benched(b, 100_000, 1)
	benchRead(b, l, read.Query{Store: "totals", Op: read.Get, Keys: [][]view.Value{{view.OfString("key0050000")}}})
}

func BenchmarkReadFetch72(b *testing.B) {
	l := benched(b, 200, 200)
	benchRead(b, l, read.Query{Store: "hours", Op: read.Fetch, Keys: [][]view.Value{{view.OfString("key0000100")}},
		Time: read.Time{HasFrom: true, HasTo: true, To: 72 * 3_600_000}})
}

func BenchmarkReadTop10(b *testing.B) {
	l := benched(b, 100_000, 1)
	l.rankings.want(topID{0, "minutes"})
	l.republish()
	benchRead(b, l, read.Query{Store: "totals", Op: read.Top, Ranking: "minutes", First: 10})
}

// BenchmarkApply is a record into two views, over 10,000 keys.
func BenchmarkApply(b *testing.B) {
	l := benched(b, 10_000, 1)
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("key%07d", i)
	}
	values := []view.Value{view.Null, view.OfTime(0), view.OfInt(7)}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		values[0] = view.OfString(keys[i%len(keys)])
		for _, f := range l.agg.feeds {
			if err := l.agg.apply(f, values, view.Place{Offset: int64(i)}, noTime); err != nil {
				b.Fatal(err)
			}
		}
		if i++; i%len(keys) == 0 {
			l.publishAll()
		}
	}
}

// BenchmarkCommit is all of a commit of 1,000 changed keys but the broker's part.
func BenchmarkCommit(b *testing.B) {
	l := benched(b, 100_000, 1)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		for range 1000 {
			l.applyAll(b, fmt.Sprintf("key%07d", i*7919%100_000), 0, int64(i))
			i++
		}
		next := l.rec.clone()
		next.Seq++
		next.Wall = time.Now().UnixMilli()
		run := l.agg.takeRun()
		l.batches(run, &next)
		l.publish(run, &next, nil)
	}
}
