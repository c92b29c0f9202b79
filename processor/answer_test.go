package processor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// answer asks every partition here and returns the rows in key order, each as
// the columns asked for; or the code of the first error.
func (in *instance) answer(t *testing.T, q read.Query, columns string) string {
	t.Helper()
	v := in.views[q.Store]
	routes, _ := in.Routes()
	var rows []*read.Row
	for p := range routes.Partitions[v.Subtopology] {
		as, err := in.Read(t.Context(), []*read.Request{{Query: q, Partition: p}})
		if err != nil {
			t.Fatal(err)
		}
		if as[0].Err != nil {
			return as[0].Err.Error()
		}
		rows = append(rows, as[0].Rows...)
		for _, s := range as[0].Series {
			rows = append(rows, s...)
		}
	}
	rows = slices.DeleteFunc(rows, func(r *read.Row) bool { return r == nil })
	slices.SortFunc(rows, func(a, b *read.Row) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return show(v, rows, columns)
}

// show writes rows as "k=… n=…; k=… n=…".
func show(v *view.View, rows []*read.Row, columns string) string {
	var out []string
	for _, r := range rows {
		var cells []string
		for _, c := range strings.Fields(columns) {
			cells = append(cells, c+"="+strings.Trim(r.Values[v.Column(c)].String(), `"`))
		}
		out = append(out, strings.Join(cells, " "))
	}
	return strings.Join(out, "; ")
}

// becomes waits until a query is answered as wanted.
func (in *instance) becomes(t *testing.T, q read.Query, columns, want string) {
	t.Helper()
	got := ""
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if got = in.answer(t, q, columns); got == want {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s:\ngot  %s\nwant %s", q.Store, got, want)
}

func all(store string) read.Query { return read.Query{Store: store, Op: read.Range, First: 1000} }

func windows(store string, key view.Value, from, to string, step int64, zone string, fill view.Fill) read.Query {
	return read.Query{Store: store, Op: read.Fetch, Keys: [][]view.Value{{key}}, Time: read.Time{
		HasFrom: true, HasTo: true, From: ms(from), To: ms(to), Step: step, Zone: zone, Fill: fill,
	}}
}

func ms(rfc string) int64 {
	t, err := time.Parse(time.RFC3339Nano, rfc)
	if err != nil {
		panic(err)
	}
	return t.UnixMilli()
}

func count(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// letters waits for n dead letters and returns them as "topic/offset view: reason".
func (c *testCluster) letters(n int) []string {
	c.t.Helper()
	client := c.client()
	defer client.Close()
	var found []string
	until(c.t, fmt.Sprintf("%d dead letters", n), func() bool { found = c.readLetters(client); return len(found) >= n })
	return found
}

func (c *testCluster) readLetters(client *broker.Client) (found []string) {
	tp := broker.TopicPartition{Topic: deadLetters(c.app)}
	ends, err := client.Offsets(c.t.Context(), []broker.TopicPartition{tp}, broker.LastStable)
	if err != nil || ends[tp] == 0 {
		return nil
	}
	c.scan(tp, ends[tp], func(r *broker.Record) {
		h := func(name string) string { v, _ := r.Header(name); return string(v) }
		found = append(found, fmt.Sprintf("%s/%s %s: %s", h("topic"), h("offset"), h("view"), h("reason")))
	})
	return found
}

// scan reads a partition up to an offset, read-committed.
func (c *testCluster) scan(tp broker.TopicPartition, end int64, visit func(*broker.Record)) {
	c.t.Helper()
	client := c.client()
	defer client.Close()
	f := client.NewFetcher(broker.FetcherConfig{Isolation: broker.ReadCommitted})
	chunks := make(chan *broker.Chunk, 1)
	f.Add(tp, 0, func(c *broker.Chunk) { chunks <- c })
	ran := make(chan error, 1)
	ctx, cancel := context.WithCancel(c.t.Context())
	go func() { ran <- f.Run(ctx) }()
	for next := int64(0); next < end; {
		chunk := <-chunks
		var err error
		if next, err = chunk.Each(func(r *broker.Record) error { visit(r); return nil }); err != nil {
			c.t.Fatal(err)
		}
		chunk.Release()
		f.Resume(tp, next)
	}
	f.Remove(tp)
	cancel()
	<-ran
}

// one runs one instance over a topic with these records.
func one(t *testing.T, sdl, topic string, partitions int32, records ...message) (*testCluster, *instance) {
	t.Helper()
	c := newTestCluster(t, sdl)
	c.create(topic, partitions)
	c.produce(topic, records...)
	return c, c.start("one")
}

// keyed makes a message with a text as its Kafka key.
func keyed(key, value string) message { return message{key: []byte(key), value: []byte(value)} }
