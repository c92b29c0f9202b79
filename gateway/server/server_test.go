package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/gateway/server/internal/testgraph"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var secret = []byte(strings.Repeat("s", 32))

// rig is a Server with its log and resolvers, over a real connection.
type rig struct {
	t   *testing.T
	s   *Server
	url string
	res *testgraph.Resolver
	log *logged
}

// logged is a log that may be read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// open makes a rig that lets anonymous callers in, unless change says otherwise.
func open(t *testing.T, change func(*Config, *auth.Config)) *rig {
	t.Helper()
	g := &rig{t: t, res: &testgraph.Resolver{}, log: &logged{}}
	c := Config{
		Schema: testgraph.Schema(g.res), Registerer: prometheus.NewRegistry(),
		Logger: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	a := auth.Config{
		Algorithms: []string{"HS256"}, Keys: []auth.Key{{Secret: secret}}, Issuer: "i", Audience: "a",
		AnonymousScopes: []string{},
	}
	if change != nil {
		change(&c, &a)
	}
	v, err := auth.New(a)
	if err != nil {
		t.Fatal(err)
	}
	c.Verifier = v
	if g.s, err = New(c); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(g.s.Handler())
	g.url = h.URL
	t.Cleanup(func() {
		g.s.Drain(context.Background())
		http.DefaultClient.CloseIdleConnections()
		h.Close()
	})
	return g
}

func token(t *testing.T, subject string, ends time.Duration, scopes ...string) string {
	t.Helper()
	s, err := auth.Sign(secret, auth.Grant{
		Issuer: "i", Audience: "a", Subject: subject, Scopes: scopes, Issued: time.Now(), Expires: time.Now().Add(ends),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reply is a response read whole.
type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) code(t *testing.T) string {
	t.Helper()
	return codeOf(t, r.body)
}

// codeOf is the first error's code; empty without errors.
func codeOf(t *testing.T, body string) string {
	t.Helper()
	var m struct {
		Errors []struct {
			Message    string
			Extensions map[string]any
		}
	}
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		t.Fatalf("not JSON: %v: %s", err, body)
	}
	if len(m.Errors) == 0 {
		return ""
	}
	code, _ := m.Errors[0].Extensions["code"].(string)
	return code
}

func (g *rig) do(method, path, body string, header map[string]string) reply {
	g.t.Helper()
	req, err := http.NewRequest(method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(b)}
}

func asBody(query string) string {
	b, err := json.Marshal(map[string]any{"query": query})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// post sends a body as JSON.
func (g *rig) post(body string, header map[string]string) reply {
	g.t.Helper()
	h := map[string]string{"Content-Type": "application/json"}
	maps.Copy(h, header)
	return g.do("POST", "/graphql", body, h)
}

func (g *rig) query(q string) reply {
	g.t.Helper()
	return g.post(asBody(q), nil)
}

// eventually polls a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond) // between two looks
	}
}

func TestPanicOutsideResolvers(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) {
		c.Dashboard = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret page") })
		c.Extensions = func(ctx context.Context) (context.Context, func() map[string]any) { panic("secret extension") }
	})
	for _, r := range []reply{g.query("{hello}"), g.do("GET", "/", "", nil)} {
		if r.status != 500 || r.code(t) != CodeInternal || strings.Contains(r.body, "secret") {
			t.Errorf("got %d %s", r.status, r.body)
		}
	}
	if !strings.Contains(g.log.String(), "secret page") || !strings.Contains(g.log.String(), "secret extension") {
		t.Error("the log lacks the panics")
	}
}

func TestOtherRoutes(t *testing.T) {
	ready := false
	g := open(t, func(c *Config, a *auth.Config) {
		a.AnonymousScopes = nil // none of these needs a token
		page := func(name string) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name, " ", r.URL.Path) })
		}
		c.Dashboard, c.Playground, c.Metrics = page("dashboard"), page("playground"), page("metrics")
		c.Routes = map[string]http.Handler{"GET /status": page("status")}
		c.Ready = func() (bool, any) { return ready, map[string]string{"reason": "no route for flights_3"} }
	})
	for _, tt := range []struct {
		path   string
		status int
		body   string
	}{
		{"/", 200, "dashboard /"}, {"/assets/x.js", 200, "dashboard /assets/x.js"},
		{"/playground/", 200, "playground /"}, {"/playground/x.js", 200, "playground /x.js"},
		{"/metrics", 200, "metrics /metrics"}, {"/status", 200, "status /status"},
		{"/healthz", 200, "{\"status\":\"ok\"}\n"}, {"/readyz", 503, "{\"reason\":\"no route for flights_3\"}\n"},
	} {
		if r := g.do("GET", tt.path, "", nil); r.status != tt.status || r.body != tt.body {
			t.Errorf("%s: %d %q", tt.path, r.status, r.body)
		}
	}
	if r := g.do("GET", "/playground", "", nil); r.header.Get("Location") != "/playground/" {
		t.Errorf("/playground: %d %v", r.status, r.header)
	}
	ready = true
	if r := g.do("GET", "/readyz", "", nil); r.status != 200 {
		t.Errorf("ready: %d %s", r.status, r.body)
	}
}

func TestCORS(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) { c.Origins = []string{"https://page.example"} })
	pre := func(origin string) reply {
		return g.do("OPTIONS", "/graphql", "", map[string]string{"Origin": origin, "Access-Control-Request-Method": "POST"})
	}
	r := pre("https://page.example")
	if r.status != 204 || r.header.Get("Access-Control-Allow-Origin") != "https://page.example" ||
		!strings.Contains(r.header.Get("Access-Control-Allow-Headers"), "Authorization") || r.header.Get("Vary") != "Origin" {
		t.Errorf("allowed: %d %v", r.status, r.header)
	}
	for _, o := range []string{"https://evil.example", "http://page.example", "null", "https://page.example.evil"} {
		if r := pre(o); r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", o, r.header)
		}
	}
	if r := g.post(asBody("{hello}"), map[string]string{"Origin": "https://page.example"}); r.header.Get("Access-Control-Allow-Origin") == "" || r.status != 200 {
		t.Errorf("POST: %d %v", r.status, r.header)
	}
	if _, err := New(Config{Schema: testgraph.Schema(&testgraph.Resolver{}), Verifier: g.s.verifier, Origins: []string{"page.example"}}); err == nil {
		t.Error("an origin without a scheme is taken")
	}
}

func TestExtensions(t *testing.T) {
	var calls atomic.Int64
	g := open(t, func(c *Config, _ *auth.Config) {
		c.Extensions = func(ctx context.Context) (context.Context, func() map[string]any) {
			n := calls.Add(1)
			return auth.With(ctx, auth.NewPrincipal("hook", "x")), func() map[string]any { return map[string]any{"call": n} }
		}
	})
	if r := g.query(`{needs(scope:"x")}`); r.body != `{"data":{"needs":"hook"},"extensions":{"call":1}}` {
		t.Errorf("got %s", r.body)
	}
	e := g.subscribe("subscription{ticks(n:2)}", nil)
	for i := range 2 { // each event has its own
		want := fmt.Sprintf("event: next\ndata: {\"data\":{\"ticks\":%d},\"extensions\":{\"call\":%d}}", i, i+2)
		if got := e.next(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestServeDrains(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	v, err := auth.New(auth.Config{Off: true})
	if err != nil {
		t.Fatal(err)
	}
	res := &testgraph.Resolver{}
	s, err := New(Config{Schema: testgraph.Schema(res), Verifier: v})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()

	g := &rig{t: t, s: s, url: "http://" + l.Addr().String(), res: res}
	events := g.subscribe(`subscription{forever(id:"a"){text}}`, nil)
	if e := events.next(); !strings.Contains(e, `"text":"a"`) {
		t.Fatalf("got %q", e)
	}
	k := g.dial(nil)
	k.init(nil)
	k.send(`{"id":"1","type":"subscribe","payload":{"query":"subscription{forever(id:\"b\"){text}}"}}`)
	k.expect("next", "1")

	stop()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if res.Started.Load() != 2 || res.Ended.Load() != 2 {
		t.Errorf("%d subscriptions started, %d ended", res.Started.Load(), res.Ended.Load())
	}
	if e := events.next(); e != "event: complete\ndata:" {
		t.Errorf("the stream ends with %q", e)
	}
	if code := k.closed(); code != closeGoingAway {
		t.Errorf("the socket is closed with %d", code)
	}
	events.close()
}

func TestDrainWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, err := auth.New(auth.Config{Off: true})
		if err != nil {
			t.Fatal(err)
		}
		s, err := New(Config{Schema: testgraph.Schema(&testgraph.Resolver{}), Verifier: v, Limits: Limits{Drain: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		if !s.join() {
			t.Fatal("no session is taken")
		}
		start := time.Now()
		time.AfterFunc(time.Second, s.sessions.Done)
		s.Drain(t.Context())
		if took := time.Since(start); took != time.Second {
			t.Errorf("drained after %v; the session took 1s", took)
		}
		if s.join() {
			t.Error("a session is taken after it")
		}
	})
}
