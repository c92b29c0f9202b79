package streamgauge

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/internal/certs"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// noRoutes is a source that has none.
type noRoutes struct{}

func (noRoutes) Routes() (*read.Routes, <-chan struct{}) { return &read.Routes{}, nil }

// schemaAlone is a schema that nothing is asked of.
type schemaAlone struct {
	graphql.ExecutableSchema
	schema *ast.Schema
}

func (s schemaAlone) Schema() *ast.Schema { return s.schema }

// testEdge is an edge with nothing behind it, which stops within 200 ms.
func testEdge(t *testing.T) (*edge, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	cfg := DefaultConfig("small")
	cfg.Listen.HTTP, cfg.StopTimeout = "127.0.0.1:0", 200*time.Millisecond
	loaded, err := schema.Load("schema", []byte(smallSchema))
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := auth.New(auth.Config{Off: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	app := small()
	app.New = func(read.Views) graphql.ExecutableSchema {
		return schemaAlone{schema: gqlparser.MustLoadSchema(&ast.Source{Input: "type Query { x: Int }"})}
	}
	s := setup{app: app, cfg: cfg, topology: loaded.Topology, verifier: verifier, log: log}
	e, err := newEdge(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.open(s, behind{routes: noRoutes{}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.close)
	return e, &out
}

// By default a peer's certificate is for the application's name.
func TestIdentityOfSettings(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	ca := certs.NewAuthority(t, "ours")
	f := ca.Write(t, t.TempDir(), ca, certs.Leaf{Names: []string{"flights"}})
	for _, c := range []struct {
		name, app string
		tls       listenTLS
		want      string // "": taken
	}{
		{"by default", "flights", listenTLS{Cert: f.Cert, Key: f.Key, CA: f.CA}, ""},
		{"another application", "payments", listenTLS{Cert: f.Cert, Key: f.Key, CA: f.CA}, `listen.tls: the others would refuse this instance's certificate: it is for the DNS names ["flights"]; allowed are ["payments"]`},
		{"named", "payments", listenTLS{Cert: f.Cert, Key: f.Key, CA: f.CA, Names: []string{"x", "flights"}}, ""},
		{"no file", "flights", listenTLS{Cert: "nowhere", Key: f.Key, CA: f.CA}, "listen.tls: stat nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := DefaultConfig(c.app)
			cfg.Listen.TLS = c.tls
			i, err := identityOf(cfg, log)
			if c.want == "" && (err != nil || i == nil) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, %v", i, err)
			}
		})
	}
	if i, err := identityOf(DefaultConfig("flights"), log); i != nil || err != nil {
		t.Errorf("without settings: %v, %v", i, err)
	}
}

// A port that is taken is no edge.
func TestEdgeWithoutAPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cfg := DefaultConfig("small")
	cfg.Listen.HTTP = l.Addr().String()
	if _, err := newEdge(setup{cfg: cfg, log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("it was made")
	}
}
