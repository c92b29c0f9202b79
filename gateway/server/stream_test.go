package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/auth"
)

// events reads an event stream block by block.
type eventReader struct {
	t      *testing.T
	resp   *http.Response
	in     *bufio.Reader
	cancel context.CancelFunc
	all    bool // comments too
}

func (g *rig) subscribe(query string, header map[string]string) *eventReader {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "POST", g.url+"/graphql", strings.NewReader(asBody(query)))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		g.t.Fatal(err)
	}
	e := &eventReader{t: g.t, resp: resp, in: bufio.NewReader(resp.Body), cancel: cancel}
	g.t.Cleanup(e.close)
	return e
}

func (e *eventReader) close() {
	e.cancel()
	_ = e.resp.Body.Close()
}

// next is the next block, comments apart; empty at the end.
func (e *eventReader) next() string {
	e.t.Helper()
	for {
		var lines []string
		for {
			line, err := e.in.ReadString('\n')
			if err == io.EOF && line == "" && len(lines) == 0 {
				return ""
			}
			if err != nil {
				e.t.Fatalf("after %q: %v", lines, err)
			}
			if line = strings.TrimSuffix(line, "\n"); line == "" {
				break
			}
			lines = append(lines, line)
		}
		if block := strings.Join(lines, "\n"); e.all || !strings.HasPrefix(block, ":") {
			return block
		}
	}
}

func TestEventStream(t *testing.T) {
	g := open(t, nil)
	e := g.subscribe("subscription{ticks(n:2)}", map[string]string{"Accept-Encoding": "gzip"})
	h := e.resp.Header
	if e.resp.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream; charset=utf-8" ||
		!strings.Contains(h.Get("Cache-Control"), "no-cache") || h.Get("X-Accel-Buffering") != "no" || h.Get("Content-Encoding") != "" {
		t.Errorf("%d %v", e.resp.StatusCode, h)
	}
	for _, want := range []string{
		"event: next\ndata: {\"data\":{\"ticks\":0}}", "event: next\ndata: {\"data\":{\"ticks\":1}}", "event: complete\ndata:", "",
	} {
		if got := e.next(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFirstByteBeforeFirstEvent(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) { c.Limits.KeepAlive = time.Hour })
	e := g.subscribe("{slow}", nil) // headers have arrived though nothing is answered
	if e.all = true; e.next() != ":" {
		t.Error("no first byte")
	}
}

func TestKeepAlive(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) { c.Limits.KeepAlive = 20 * time.Millisecond })
	e := g.subscribe("{slow}", nil)
	e.all = true
	for range 3 {
		if got := e.next(); got != ":" {
			t.Fatalf("got %q", got)
		}
	}
}

func TestOneDataLineEach(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) { c.Limits.KeepAlive = time.Millisecond })
	e := g.subscribe("subscription{text}", nil)
	for i := range 500 {
		lines := strings.Split(e.next(), "\n")
		if len(lines) != 2 || lines[0] != "event: next" {
			t.Fatalf("event %d: %q", i, lines)
		}
		var m struct{ Data struct{ Text string } }
		if err := json.Unmarshal([]byte(strings.TrimPrefix(lines[1], "data: ")), &m); err != nil {
			t.Fatalf("event %d: %v in %q", i, err, lines[1])
		}
		if want := fmt.Sprintf("a\nb\rc\r\nd\u2028e\n\nevent: fake %d", i); m.Data.Text != want {
			t.Fatalf("event %d: got %q", i, m.Data.Text)
		}
	}
	if got := e.next(); got != "event: complete\ndata:" {
		t.Errorf("got %q", got)
	}
	if got := string(nextFrame([]byte("{\n\"a\":\r\n1}"))); got != "event: next\ndata: { \"a\":  1}\n\n" {
		t.Errorf("JSON over lines: %q", got)
	}
}

func TestStreamOrNot(t *testing.T) {
	g := open(t, nil)
	const urql = "application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed"
	r := g.post(asBody("{hello}"), map[string]string{"Accept": urql})
	if r.header.Get("Content-Type") != "application/graphql-response+json; charset=utf-8" || r.body != `{"data":{"hello":"world"}}` {
		t.Errorf("a query: %v %s", r.header, r.body)
	}
	if r := g.post(asBody("{helo}"), map[string]string{"Accept": urql}); r.status != 400 || r.code(t) != CodeValidation {
		t.Errorf("an invalid query: %d %s", r.status, r.body)
	}
	if e := g.subscribe("subscription{ticks(n:1)}", map[string]string{"Accept": urql}); e.next() != "event: next\ndata: {\"data\":{\"ticks\":0}}" {
		t.Errorf("a subscription is no stream")
	}
	e := g.subscribe("{hello}", nil)
	if got := e.next(); got != "event: next\ndata: {\"data\":{\"hello\":\"world\"}}" {
		t.Errorf("a query as a stream: %q", got)
	}
	if got := e.next(); got != "event: complete\ndata:" {
		t.Errorf("its end: %q", got)
	}
	for query, code := range map[string]string{
		"{helo}": CodeValidation, "{": CodeParse, "subscription{a:ticks(n:1) b:ticks(n:2)}": CodeValidation,
		`subscription{failing(kind:"stale")}`: CodeStale,
	} {
		e := g.subscribe(query, nil)
		first := e.next()
		data, ok := strings.CutPrefix(first, "event: next\ndata: ")
		if e.resp.StatusCode != 200 || !ok || codeOf(t, data) != code {
			t.Errorf("%s: %d %q", query, e.resp.StatusCode, first)
		}
		if got := e.next(); got != "event: complete\ndata:" {
			t.Errorf("%s: then %q", query, got)
		}
	}
	if r := g.post(asBody(forever), map[string]string{"Accept": "text/event-stream", "Authorization": "Bearer junk"}); r.status != 401 || r.code(t) != CodeUnauthenticated {
		t.Errorf("a bad token: %d %s", r.status, r.body)
	}
}

func TestStreamEnds(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) { c.Limits.Sockets = 1 })
	e := g.subscribe(forever, nil)
	e.next()
	if r := g.post(asBody(forever), map[string]string{"Accept": "text/event-stream"}); r.status != 429 || r.code(t) != CodeLimit {
		t.Errorf("one too many: %d %s", r.status, r.body)
	}
	e.close() // the client leaves
	eventually(t, "the operation ends with its client", func() bool { return g.res.Ended.Load() == 1 })

	e = g.subscribe(forever, map[string]string{"Authorization": "Bearer " + token(t, "ann", 2*time.Second)})
	e.next()
	if got := e.next(); got != "event: complete\ndata:" { // the token ends
		t.Errorf("got %q", got)
	}
	if got := e.next(); got != "" {
		t.Errorf("after the end: %q", got)
	}
	eventually(t, "the operation ends with its token", func() bool { return g.res.Ended.Load() == 2 })
}

func TestSlowStreamIsDropped(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) { c.Limits.WriteTimeout = 200 * time.Millisecond })
	e := g.subscribe("subscription{blob(size:1048576)}", nil) // and nobody reads
	eventually(t, "it runs", func() bool { return g.res.Started.Load() == 1 })
	eventually(t, "it is dropped", func() bool { return g.res.Ended.Load() == 1 })
	e.close()
	if r := g.query("{hello}"); r.status != 200 {
		t.Errorf("others: %d", r.status)
	}
}

func TestEnding(t *testing.T) {
	var fail error
	g := open(t, func(c *Config, _ *auth.Config) {
		c.Ending = func(ctx context.Context) (context.Context, func() error) { return ctx, func() error { return fail } }
	})
	fail = auth.ErrForbidden
	e := g.subscribe("subscription{ticks(n:1)}", nil)
	e.next()
	if got := e.next(); !strings.Contains(got, CodeForbidden) {
		t.Errorf("got %q", got)
	}
	if got := e.next(); got != "event: complete\ndata:" {
		t.Errorf("got %q", got)
	}
}
