package server

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/extension"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/gateway/server/internal/testgraph"
)

// discard is a response writer that keeps nothing.
type discard struct{ h http.Header }

func (d *discard) Header() http.Header         { return d.h }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// BenchmarkPost is an empty resolver behind us, with a token verified, rates
// taken and limits checked, and behind gqlgen's own transport with a query cache
// and nothing else. Ours must be the faster.
func BenchmarkPost(b *testing.B) {
	schema := testgraph.Schema(&testgraph.Resolver{})

	stock := handler.New(schema)
	stock.AddTransport(transport.POST{})
	stock.SetQueryCache(lru.New[*ast.QueryDocument](1000))

	// The same, with what a server in the open needs at least.
	guarded := handler.New(schema)
	guarded.AddTransport(transport.POST{})
	guarded.SetQueryCache(lru.New[*ast.QueryDocument](1000))
	guarded.Use(extension.FixedComplexityLimit(20_000))

	v, err := auth.New(auth.Config{Algorithms: []string{"HS256"}, Keys: []auth.Key{{Secret: secret}}, Issuer: "i", Audience: "a"})
	if err != nil {
		b.Fatal(err)
	}
	s, err := New(Config{Schema: schema, Verifier: v, Limits: Limits{Rate: 1e9, Burst: 1e9}})
	if err != nil {
		b.Fatal(err)
	}
	t, err := auth.Sign(secret, auth.Grant{Issuer: "i", Audience: "a", Subject: "ann", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		b.Fatal(err)
	}
	for _, q := range []struct{ name, body string }{
		{"literal", `{"query":"{ hello }"}`},
		{"variable", `{"query":"query Echo($n: Long!) { echo(n: $n) }","operationName":"Echo","variables":{"n":9007199254740993}}`},
	} {
		for _, h := range []struct {
			name    string
			handler http.Handler
		}{{"ours", s.Handler()}, {"stock", stock}, {"stock-complexity", guarded}} {
			b.Run(q.name+"/"+h.name, func(b *testing.B) { benchmarkHandler(b, h.handler, q.body, t) })
		}
	}
}

func benchmarkHandler(b *testing.B, h http.Handler, body, token string) {
	in := bytes.NewReader([]byte(body))
	r := httptest.NewRequest("POST", "/graphql", nil)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	r.ContentLength = int64(len(body))
	w := httptest.NewRecorder()
	r.Body = io.NopCloser(in)
	h.ServeHTTP(w, r)
	if w.Code != 200 || !bytes.Contains(w.Body.Bytes(), []byte(`"data":{`)) || bytes.Contains(w.Body.Bytes(), []byte("errors")) {
		b.Fatalf("%d %s", w.Code, w.Body)
	}
	d := &discard{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		in.Reset([]byte(body))
		r.Body = io.NopCloser(in)
		clear(d.h)
		h.ServeHTTP(d, r)
	}
}
