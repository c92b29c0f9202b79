package bench

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/gateway"
	"github.com/streamgauge/streamgauge/gateway/server"
	"github.com/streamgauge/streamgauge/graph"
	"github.com/streamgauge/streamgauge/graph/resolve"
	"github.com/streamgauge/streamgauge/internal/embedded"
	"github.com/streamgauge/streamgauge/internal/load"
	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
	"github.com/vektah/gqlparser/v2/ast"
)

// stack is one instance in process, with some flights.
type stack struct {
	gateway *gateway.Gateway
	schema  graphql.ExecutableSchema
}

func newStack(b *testing.B) *stack {
	b.Helper()
	s, err := schema.Load("schema", []byte(graph.SchemaText))
	if err != nil {
		b.Fatal(err)
	}
	kafka, err := embedded.Start(embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(kafka.Close)
	client, err := broker.New(broker.Config{Brokers: kafka.Addrs()})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := client.CreateTopics(ctx, []broker.TopicSpec{{Name: "flights", Partitions: 6, Replication: 1}, {Name: "airports", Partitions: 6, Replication: 1}}); err != nil {
		b.Fatal(err)
	}
	w, err := processor.New(processor.Config{App: "bench", Instance: "a", Topology: s.Topology, Client: client, StateDir: b.TempDir(), Replication: 1, MmapSize: 1 << 28})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		if err := client.Close(); err != nil {
			b.Error(err)
		}
	})
	p := client.NewProducer(broker.ProducerConfig{})
	go func() { _ = p.Run(ctx) }() // ends with ctx
	lw := load.NewWriter(p, "flights", 6)
	for i := range 6000 {
		line := fmt.Sprintf(`{"date":"2024-01-01T%02d:00:00Z","origin":"A%02d","destination":"X","delay":%d,"distance":1}`, i%24, i%60, i%40)
		if err := lw.Write(ctx, load.Record{Partition: -1, Value: []byte(line)}); err != nil {
			b.Fatal(err)
		}
	}
	if err := lw.Flush(ctx); err != nil {
		b.Fatal(err)
	}
	g, err := gateway.New(gateway.Config{
		Views: s.Topology.Views, Routes: w, Local: w, LocalID: "a",
		Dial:  func(read.Peer) (gateway.Peer, error) { return nil, context.Canceled },
		Allow: func(ctx context.Context, v *view.View) error { return auth.Allow(ctx, v.Scope) },
	})
	if err != nil {
		b.Fatal(err)
	}
	st := &stack{gateway: g, schema: graph.New(g)}
	for deadline := time.Now().Add(time.Minute); st.flights(b) != 100; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatal("the flights do not come in")
		}
	}
	return st
}

// flights is the count of one airport, as the gateway reads it.
func (s *stack) flights(b *testing.B) int64 {
	ctx := auth.With(context.Background(), auth.Unrestricted())
	rs, errs := s.gateway.Read(ctx, []*read.Query{{Store: "airport-totals", Op: read.Get, Keys: [][]view.Value{{view.OfString("A01")}}}})
	if errs[0] != nil || rs[0].Rows[0] == nil {
		return -1
	}
	return rs[0].Rows[0].Values[2].Int()
}

// ours is the edge as it is deployed, without authentication and rate limits.
func (s *stack) ours(b *testing.B) http.Handler {
	b.Helper()
	v, err := auth.New(auth.Config{Off: true})
	if err != nil {
		b.Fatal(err)
	}
	srv, err := server.New(server.Config{
		Schema: s.schema, Verifier: v, Limits: server.Limits{Rate: -1, AnonymousRate: -1},
		Extensions: func(ctx context.Context) (context.Context, func() map[string]any) {
			ctx = resolve.BeginOperation(ctx)
			return ctx, func() map[string]any { return resolve.Collected(ctx) }
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	return srv.Handler()
}

// empty answers every read with a row made beforehand: the resolver costs
// nothing, and gqlgen's own transport is in front.
type empty struct{ row *read.Result }

func (e empty) Read(_ context.Context, qs []*read.Query) ([]*read.Result, []error) {
	rs := make([]*read.Result, len(qs))
	for i := range rs {
		rs[i] = e.row
	}
	return rs, make([]error, len(qs))
}

func (empty) Watch(context.Context, *read.Query, time.Duration) (<-chan read.Update, error) {
	return nil, context.Canceled
}

func (s *stack) stock(b *testing.B) http.Handler {
	b.Helper()
	ctx := auth.With(context.Background(), auth.Unrestricted())
	rs, errs := s.gateway.Read(ctx, []*read.Query{{Store: "airport-totals", Op: read.Get, Keys: [][]view.Value{{view.OfString("A01")}}}})
	if errs[0] != nil {
		b.Fatal(errs[0])
	}
	h := handler.New(graph.New(empty{rs[0]}))
	h.AddTransport(transport.POST{})
	h.SetQueryCache(lru.New[*ast.QueryDocument](1000))
	return h
}

const lookup = `{"query":"query($o: String!) { airportTotals(origin: $o) { origin flights delayed delayMinutes averageDelay } }","variables":{"o":"A01"}}`

func post(b *testing.B, h http.Handler) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", "/graphql", strings.NewReader(lookup))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != 200 || !strings.Contains(w.Body.String(), `"flights":100`) {
			b.Fatal(w.Code, w.Body)
		}
	}
}

// BenchmarkGraphQL: a lookup through the whole stack must be no slower than an
// empty resolver behind gqlgen's stock transport.
func BenchmarkGraphQL(b *testing.B) {
	s := newStack(b)
	b.Run("lookup", func(b *testing.B) { post(b, s.ours(b)) })
	b.Run("empty-resolver-stock-transport", func(b *testing.B) { post(b, s.stock(b)) })
}

// BenchmarkRead is the read beneath: through the gateway, to a local snapshot.
func BenchmarkRead(b *testing.B) {
	s := newStack(b)
	b.ReportAllocs()
	for b.Loop() {
		if s.flights(b) != 100 {
			b.Fatal("wrong")
		}
	}
}
