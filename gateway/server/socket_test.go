package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/streamgauge/streamgauge/auth"
)

// client is a websocket client of a test.
type client struct {
	t *testing.T
	c *websocket.Conn
}

// tried dials with headers; the error is the handshake's.
func (g *rig) tried(header http.Header, protocols ...string) (*websocket.Conn, *http.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return websocket.Dial(ctx, strings.Replace(g.url, "http", "ws", 1)+"/graphql", &websocket.DialOptions{ //nolint:bodyclose // the library owns it
		HTTPHeader: header, Subprotocols: protocols,
	})
}

func (g *rig) dial(header http.Header) *client {
	g.t.Helper()
	c, _, err := g.tried(header, subprotocol) //nolint:bodyclose // the library owns it
	if err != nil {
		g.t.Fatal(err)
	}
	c.SetReadLimit(1 << 20)
	g.t.Cleanup(func() { _ = c.CloseNow() })
	return &client{g.t, c}
}

func (k *client) send(message string) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := k.c.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
		k.t.Fatalf("sending: %v", err)
	}
}

func (k *client) read() (message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, b, err := k.c.Read(ctx)
	if err != nil {
		return message{}, err
	}
	var m message
	return m, json.Unmarshal(b, &m)
}

func (k *client) expect(kind, id string) message {
	k.t.Helper()
	m, err := k.read()
	if err != nil || m.Type != kind || m.ID != id {
		k.t.Fatalf("got %s %q %s, %v; want %s %q", m.Type, m.ID, m.Payload, err, kind, id)
	}
	return m
}

func (k *client) init(payload any) {
	k.t.Helper()
	k.initAs(payload)
	k.expect("connection_ack", "")
}

func (k *client) initAs(payload any) {
	k.t.Helper()
	b, err := json.Marshal(map[string]any{"type": "connection_init", "payload": payload})
	if err != nil {
		k.t.Fatal(err)
	}
	k.send(string(b))
}

func (k *client) start(id, query string) {
	k.t.Helper()
	b, err := json.Marshal(map[string]any{"type": "subscribe", "id": id, "payload": map[string]string{"query": query}})
	if err != nil {
		k.t.Fatal(err)
	}
	k.send(string(b))
}

// closed reads to the end and is the close code; 0 when there was none.
func (k *client) closed() websocket.StatusCode {
	k.t.Helper()
	for {
		if _, err := k.read(); err != nil {
			return max(websocket.CloseStatus(err), 0)
		}
	}
}

const forever = `subscription{forever(id:"a"){text}}`

func TestSocketManners(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) { c.Limits.InitTimeout = 200 * time.Millisecond })
	tests := []struct {
		name string
		do   func(*client)
		want websocket.StatusCode
	}{
		{"says nothing", func(*client) {}, closeInitTimeout},
		{"subscribes first", func(k *client) { k.start("1", forever) }, closeUnauthorized},
		{"connection_init twice", func(k *client) { k.init(nil); k.initAs(nil) }, closeTooMany},
		{"unknown type", func(k *client) { k.init(nil); k.send(`{"type":"hello"}`) }, closeBadRequest},
		{"unknown type before init", func(k *client) { k.send(`{"type":"hello"}`) }, closeBadRequest},
		{"not JSON", func(k *client) { k.init(nil); k.send(`{`) }, closeBadRequest},
		{"no object", func(k *client) { k.init(nil); k.send(`[]`) }, closeBadRequest},
		{"binary", func(k *client) {
			k.init(nil)
			if err := k.c.Write(context.Background(), websocket.MessageBinary, []byte(`{"type":"ping"}`)); err != nil {
				k.t.Fatal(err)
			}
		}, closeBadRequest},
		{"subscribe without id", func(k *client) { k.init(nil); k.start("", forever) }, closeBadRequest},
		{"subscribe without query", func(k *client) { k.init(nil); k.send(`{"type":"subscribe","id":"1","payload":{}}`) }, closeBadRequest},
		{"payload is a text", func(k *client) { k.initAs("x") }, closeBadRequest},
		{"the same id", func(k *client) { k.init(nil); k.start("1", forever); k.start("1", forever) }, closeDuplicate},
		{"too large", func(k *client) { k.init(nil); k.send(`{"type":"` + strings.Repeat("x", 300<<10) + `"}`) }, websocket.StatusMessageTooBig},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := g.dial(nil)
			k.t = t
			tt.do(k)
			if got := k.closed(); got != tt.want {
				t.Errorf("closed with %d, want %d", got, tt.want)
			}
		})
	}
	eventually(t, "the one operation that started has ended", func() bool {
		return g.res.Started.Load() == 1 && g.res.Ended.Load() == 1
	})
	for _, protocols := range [][]string{nil, {"graphql-ws"}} {
		c, _, err := g.tried(nil, protocols...) //nolint:bodyclose // the library owns it
		if err != nil {
			t.Fatal(err)
		}
		if got := (&client{t, c}).closed(); got != closeSubprotocol {
			t.Errorf("%q: closed with %d", protocols, got)
		}
	}
}

func TestSocketOperations(t *testing.T) {
	g := open(t, nil)
	k := g.dial(nil)
	k.send(`{"type":"ping","payload":{"n":1}}`)
	if m := k.expect("pong", ""); string(m.Payload) != `{"n":1}` {
		t.Errorf("pong with %s", m.Payload)
	}
	k.send(`{"type":"pong"}`)
	k.init(map[string]any{})
	k.send(`{"type":"ping"}`)
	k.expect("pong", "")

	k.start("q", "{hello}")
	if m := k.expect("next", "q"); string(m.Payload) != `{"data":{"hello":"world"}}` {
		t.Errorf("query: %s", m.Payload)
	}
	k.expect("complete", "q")

	k.start("s", "subscription{ticks(n:2)}")
	for i := range 2 {
		if m := k.expect("next", "s"); string(m.Payload) != fmt.Sprintf(`{"data":{"ticks":%d}}`, i) {
			t.Errorf("event %d: %s", i, m.Payload)
		}
	}
	k.expect("complete", "s")

	for query, code := range map[string]string{
		"{helo}": CodeValidation, "{": CodeParse, "subscription{__typename}": CodeValidation,
		"subscription{... {a:ticks(n:1) b:ticks(n:2)}}":                               CodeValidation,
		"subscription{a:ticks(n:1) b:ticks(n:1)}":                                     CodeValidation,
		"subscription{ticks(n:1) __typename}":                                         CodeValidation,
		"subscription{ticks(n:1) @skip(if:false)}":                                    CodeValidation,
		"subscription{...F @include(if:true)} fragment F on Subscription{ticks(n:1)}": CodeValidation,
		`subscription{failing(kind:"forbidden")}`:                                     CodeForbidden,
		`subscription{failing(kind:"panic")}`:                                         CodeInternal,
		`subscription{failing(kind:"unknown")}`:                                       CodeInternal,
		`query($n: Long!){echo(n:$n)}`:                                                CodeBadInput,
	} {
		k.start("e", query)
		m := k.expect("error", "e")
		if got := codeOf(t, `{"errors":`+string(m.Payload)+`}`); got != code {
			t.Errorf("%s: %s", query, m.Payload)
		}
		k.send(`{"type":"ping"}`)
		k.expect("pong", "") // nothing after the error, and the socket lives
	}

	k.start("1", forever)
	k.expect("next", "1")
	k.start("2", `subscription{forever(id:"b"){text}}`)
	if m := k.expect("next", "2"); !strings.Contains(string(m.Payload), `"b"`) {
		t.Errorf("second: %s", m.Payload)
	}
	k.send(`{"type":"complete","id":"nobody"}`)
	k.send(`{"type":"complete","id":"1"}`)
	k.send(`{"type":"complete","id":"1"}`)
	eventually(t, "the completed one ends", func() bool { return g.res.Started.Load()-g.res.Ended.Load() == 1 })
	k.start("1", `subscription{forever(id:"again"){text}}`)
	if m := k.expect("next", "1"); !strings.Contains(string(m.Payload), "again") {
		t.Errorf("again: %s", m.Payload)
	}
	_ = k.c.Close(websocket.StatusNormalClosure, "")
	eventually(t, "all operations end", func() bool { return g.res.Started.Load() == g.res.Ended.Load() })
}

func TestNothingAfterComplete(t *testing.T) {
	g := open(t, nil)
	k := g.dial(nil)
	k.init(nil)
	k.start("1", "subscription{ticks(n:-1)}")
	k.expect("next", "1")
	k.send(`{"type":"complete","id":"1"}`)
	k.start("1", forever)
	for { // what was on its way, then the second run's only
		if m := k.expect("next", "1"); strings.Contains(string(m.Payload), "forever") {
			break
		}
	}
	k.send(`{"type":"ping"}`)
	k.expect("pong", "")
	eventually(t, "the first run ends", func() bool { return g.res.Ended.Load() == 1 })
}

// TestOverIsSilent: an operation that the client has ended sends nothing, even
// when it has an event in hand and another of its id is running. The socket has
// no connection: writing would panic.
func TestOverIsSilent(t *testing.T) {
	k := &socket{ctx: context.Background(), writing: make(chan struct{}, 1)}
	op := &operation{k: k, id: "1", quoted: []byte(`"1"`)}
	k.operations = map[string]*operation{"1": {k: k, id: "1"}}
	if op.next([]byte("{}")) || op.fail(nil) || op.finish("complete", nil) {
		t.Error("it says it has sent")
	}
	if k.operations["1"] == nil {
		t.Error("it has ended the other")
	}
}

func TestSocketLimits(t *testing.T) {
	g := open(t, func(c *Config, a *auth.Config) {
		c.Limits.Subscriptions, c.Limits.Sockets = 2, 2
		a.AnonymousScopes = nil
	})
	payload := map[string]string{"token": token(t, "ann", time.Minute)}
	k := g.dial(nil)
	k.init(payload)
	for _, id := range []string{"1", "2"} {
		k.start(id, forever)
		k.expect("next", id)
	}
	k.start("3", forever)
	if m := k.expect("error", "3"); codeOf(t, `{"errors":`+string(m.Payload)+`}`) != CodeLimit {
		t.Errorf("third operation: %s", m.Payload)
	}
	k.send(`{"type":"complete","id":"2"}`)
	k.start("3", forever)
	k.expect("next", "3")

	second := g.dial(nil)
	second.init(payload)
	third := g.dial(nil)
	third.initAs(payload)
	if got := third.closed(); got != closeTooMany {
		t.Errorf("third socket: closed with %d", got)
	}
	other := g.dial(nil)
	other.init(map[string]string{"token": token(t, "bob", time.Minute)})
	_ = second.c.Close(websocket.StatusNormalClosure, "")
	eventually(t, "a socket is free again", func() bool {
		again := g.dial(nil)
		again.initAs(payload)
		m, err := again.read()
		return err == nil && m.Type == "connection_ack"
	})
}

func TestSocketTokens(t *testing.T) {
	g := open(t, func(c *Config, a *auth.Config) {
		a.AnonymousScopes = nil
		c.Origins = []string{"https://page.example"}
	})
	good := token(t, "ann", time.Minute, "x:read")
	asAnn := func(k *client) {
		t.Helper()
		k.start("1", `{needs(scope:"x:read")}`)
		if m := k.expect("next", "1"); string(m.Payload) != `{"data":{"needs":"ann"}}` {
			t.Errorf("got %s", m.Payload)
		}
	}
	for _, payload := range []map[string]string{
		{"Authorization": "Bearer " + good}, {"authorization": "bearer " + good}, {"token": good},
	} {
		k := g.dial(nil)
		k.init(payload)
		asAnn(k)
	}
	k := g.dial(http.Header{"Authorization": {"Bearer " + good}})
	k.init(nil)
	asAnn(k)

	for _, tt := range []struct {
		payload any
		want    websocket.StatusCode
	}{
		{nil, closeUnauthorized}, {map[string]string{"token": "junk"}, closeForbidden},
		{map[string]string{"Authorization": "Basic x"}, closeBadRequest},
		{map[string]string{"token": token(t, "ann", -time.Hour)}, closeForbidden},
	} {
		k := g.dial(nil)
		k.initAs(tt.payload)
		if got := k.closed(); got != tt.want {
			t.Errorf("%v: closed with %d, want %d", tt.payload, got, tt.want)
		}
	}
	for _, tt := range []struct {
		header http.Header
		status int
	}{
		{http.Header{"Authorization": {"Bearer junk"}}, 401}, {http.Header{"Origin": {"https://evil.example"}}, 403},
		{http.Header{"Origin": {"https://page.example"}}, 101}, {http.Header{"Origin": {g.url}}, 101},
	} {
		c, resp, err := g.tried(tt.header, subprotocol) //nolint:bodyclose // the library owns it
		if resp == nil || resp.StatusCode != tt.status {
			t.Errorf("%v: %v, %v", tt.header, resp, err)
		}
		if c != nil {
			_ = c.CloseNow()
		}
	}
}

func TestSocketEndsWithItsToken(t *testing.T) {
	g := open(t, nil)
	k := g.dial(nil)
	k.init(map[string]string{"token": token(t, "ann", 2*time.Second)}) // in whole seconds
	k.start("1", forever)
	k.expect("next", "1")
	if got := k.closed(); got != closeForbidden {
		t.Errorf("closed with %d", got)
	}
	eventually(t, "the operation ends", func() bool { return g.res.Ended.Load() == 1 })
}

// rawSocket is a client that handshakes and then does only what a test does.
func rawSocket(t *testing.T, g *rig) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "GET /graphql HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: %s\r\n\r\n", subprotocol)
	return c
}

// frame writes a masked text frame (under a mask of zeros).
func frame(t *testing.T, c net.Conn, text string) {
	t.Helper()
	head := []byte{0x81, 0x80 | 126, byte(len(text) >> 8), byte(len(text)), 0, 0, 0, 0}
	if _, err := c.Write(append(head, text...)); err != nil {
		t.Fatal(err)
	}
}

func TestStalledReaderIsDroppedAlone(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) { c.Limits.WriteTimeout = 200 * time.Millisecond })
	good := g.dial(nil)
	good.init(nil)
	good.start("1", forever)
	good.expect("next", "1")

	stalled := rawSocket(t, g)
	frame(t, stalled, `{"type":"connection_init"}`)
	frame(t, stalled, `{"id":"1","type":"subscribe","payload":{"query":"subscription{blob(size:65536)}"}}`)
	eventually(t, "both run", func() bool { return g.res.Started.Load() == 2 })
	eventually(t, "the stalled one is dropped", func() bool { return g.res.Ended.Load() == 1 })

	good.start("2", "{hello}")
	good.expect("next", "2")
	good.expect("complete", "2")
}

func TestSilentClientIsDropped(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) {
		c.Limits.Ping, c.Limits.Pong = 50*time.Millisecond, 50*time.Millisecond
	})
	silent := rawSocket(t, g)
	frame(t, silent, `{"type":"connection_init"}`)
	frame(t, silent, `{"id":"1","type":"subscribe","payload":{"query":"subscription{forever(id:\"a\"){text}}"}}`)
	eventually(t, "it subscribes", func() bool { return g.res.Started.Load() == 1 })
	eventually(t, "it is dropped", func() bool { return g.res.Ended.Load() == 1 })

	k := g.dial(nil)
	k.init(nil)
	k.start("1", `subscription{forever(id:"a"){text}}`)
	k.expect("next", "1")
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, _, err := k.c.Read(ctx); ctx.Err() == nil { // it answers pings while it reads
		t.Errorf("a client that answers is dropped: %v", err)
	}
}
