package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/streamgauge/streamgauge/auth"
)

// Close codes: of RFC 6455, and of the graphql-transport-ws protocol. Its
// clients connect again after 1001 and 4403 (with a new token), not after the
// others.
const (
	closeGoingAway    = 1001
	closeBadRequest   = 4400
	closeUnauthorized = 4401
	closeForbidden    = 4403
	closeSubprotocol  = 4406
	closeInitTimeout  = 4408
	closeDuplicate    = 4409
	closeTooMany      = 4429
)

const subprotocol = "graphql-transport-ws"

// closeWait is how long a client has to answer a close frame.
const closeWait = time.Second

// socket is one websocket. Its states:
//
//	opened ──connection_init──► acknowledged ──► ended
//	   └──────4401, 4403, 4408, 4429──────────────▲
//
// One goroutine, the handler's, reads; each operation has one that executes and
// writes; one pings. Whatever goes wrong ends the socket (end, drop), and the
// handler returns when all of them have. A client that stalls holds up its own
// operations, each with one event in hand, until the write deadline.
type socket struct {
	s      *Server
	c      *websocket.Conn
	net    net.Conn // under c: its deadlines, and to cut it off
	r      *http.Request
	header *auth.Principal // of the Authorization header; nil: none

	ctx     context.Context // ends with the socket; the operations' parent
	cancel  context.CancelFunc
	writing chan struct{} // holds one: the right to write
	work    sync.WaitGroup

	// The reader's own.
	principal *auth.Principal // nil until acknowledged
	stops     []func()        // of timers and the like
	left      func()          // uncounts the socket; nil until acknowledged

	mu           sync.Mutex // guards what follows
	acknowledged bool
	ended        bool
	operations   map[string]*operation
}

// socket answers a websocket handshake and stays until the socket has ended.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	k, f := s.admit(r)
	if f != nil {
		s.refuse(w, *f)
		return
	}
	if !s.join() {
		s.refuse(w, shuttingDown())
		return
	}
	defer s.sessions.Done()
	in := &interceptor{ResponseWriter: w}
	c, err := websocket.Accept(in, r, &websocket.AcceptOptions{
		Subprotocols: []string{subprotocol}, InsecureSkipVerify: true, // admit has checked the origin
	})
	if err != nil {
		s.log.Debug("websocket handshake", "cause", err)
		return
	}
	k.c, k.net = c, in.conn
	if s.limits.Body >= 0 {
		c.SetReadLimit(s.limits.Body)
	} else {
		c.SetReadLimit(-1)
	}
	s.metrics.sockets.Inc()
	defer s.metrics.sockets.Dec()
	k.live()
}

// admit checks what can be checked before the handshake.
func (s *Server) admit(r *http.Request) (*socket, *refusal) {
	if o := r.Header.Get("Origin"); o != "" && !s.mayUse(r, o) {
		return nil, &refusal{status: http.StatusForbidden, code: CodeForbidden, message: "this origin may not open a websocket"}
	}
	var p *auth.Principal
	var f *refusal
	if r.Header["Authorization"] != nil {
		if p, f = s.identify(r); f != nil {
			return nil, f
		}
	} else if wait, ok := s.addresses.take(s.address(r), time.Now()); !ok {
		return nil, tooMany(wait)
	}
	k := &socket{s: s, r: r, header: p, writing: make(chan struct{}, 1), operations: map[string]*operation{}}
	// The request's context ends with the handler only; what it carries stays.
	k.ctx, k.cancel = context.WithCancel(context.WithoutCancel(r.Context()))
	return k, nil
}

// live reads messages until the socket ends, and waits for what it started.
func (k *socket) live() {
	l := &k.s.limits
	defer k.leave()
	k.later(l.InitTimeout, func() {
		if !k.isAcknowledged() {
			k.end(closeInitTimeout, "connection initialisation timeout")
		}
	})
	stop := context.AfterFunc(k.s.drain, func() { k.end(closeGoingAway, "going away") })
	k.stops = append(k.stops, func() { stop() })
	if k.c.Subprotocol() != subprotocol {
		k.end(closeSubprotocol, "subprotocol not acceptable: need "+subprotocol)
	}
	k.work.Go(k.ping)
	for {
		kind, b, err := k.c.Read(context.Background())
		switch {
		case err != nil:
			return
		case k.hasEnded(): // what comes before the answer to our close frame
		case kind != websocket.MessageText:
			k.end(closeBadRequest, "need text messages")
		default:
			k.message(b)
		}
	}
}

// leave ends everything of the socket.
func (k *socket) leave() {
	k.drop()
	for _, stop := range k.stops {
		stop()
	}
	k.work.Wait()
	_ = k.c.CloseNow() // the connection is closed: this lets go of its buffers
	if k.left != nil {
		k.left()
	}
}

// later runs f after d, unless the socket has left by then.
func (k *socket) later(d time.Duration, f func()) {
	t := time.AfterFunc(d, f)
	k.stops = append(k.stops, func() { t.Stop() })
}

// end ends the operations without a word and closes with a code, once.
func (k *socket) end(code websocket.StatusCode, reason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ended {
		return
	}
	k.ended = true
	k.cancel()
	k.work.Go(func() {
		t := time.AfterFunc(closeWait, func() { _ = k.net.Close() })
		defer t.Stop()
		_ = k.c.Close(code, reason) // the other side may be gone
	})
}

// drop cuts the connection off.
func (k *socket) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.cancel()
	_ = k.net.Close()
}

func (k *socket) hasEnded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ended
}

func (k *socket) isAcknowledged() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.acknowledged
}

// ping asks now and then whether the client is there, by the websocket's own
// ping, which every client answers by itself; one that does not is cut off.
func (k *socket) ping() {
	t := time.NewTicker(k.s.limits.Ping)
	defer t.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-t.C:
		}
		ctx, cancel := context.WithTimeout(k.ctx, k.s.limits.Pong)
		err := k.c.Ping(ctx)
		cancel()
		if err != nil && k.ctx.Err() == nil {
			k.s.log.Debug("websocket does not answer", "cause", err)
			k.drop()
			return
		}
	}
}

// write sends a message, unless moot, asked when it is our turn, says that it no
// longer matters. A client that does not take it in time is cut off.
func (k *socket) write(b []byte, moot func() bool) bool {
	select {
	case k.writing <- struct{}{}:
	case <-k.ctx.Done():
		return false
	}
	defer func() { <-k.writing }()
	if moot != nil && moot() {
		return false
	}
	_ = k.net.SetWriteDeadline(time.Now().Add(k.s.limits.WriteTimeout))
	err := k.c.Write(context.Background(), websocket.MessageText, b)
	_ = k.net.SetWriteDeadline(time.Time{})
	if err != nil {
		k.drop()
		return false
	}
	return true
}

// message is one of graphql-transport-ws.
type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// maxID bounds an operation's id: each message of it carries it.
const maxID = 256

// message acts on one message of the client.
func (k *socket) message(b []byte) {
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		k.end(closeBadRequest, "need a JSON message")
		return
	}
	switch m.Type {
	case "connection_init":
		k.init(m.Payload)
	case "ping":
		k.send(message{Type: "pong", Payload: m.Payload})
	case "pong":
	case "subscribe":
		k.subscribe(m)
	case "complete":
		if m.ID == "" {
			k.end(closeBadRequest, "complete needs an id")
			return
		}
		k.forget(m.ID)
	default:
		k.end(closeBadRequest, "unknown type of message")
	}
}

func (k *socket) send(m message) bool {
	b, err := json.Marshal(m)
	if err != nil {
		k.s.log.Error("encoding a message", "cause", err)
		k.drop()
		return false
	}
	return k.write(b, nil)
}

// init finds who asks, once: by the token in the payload, else by the header of
// the handshake, else as anonymous.
func (k *socket) init(payload json.RawMessage) {
	if k.isAcknowledged() {
		k.end(closeTooMany, "connection_init came before")
		return
	}
	token, err := tokenOf(payload)
	if err != nil {
		k.end(closeBadRequest, "connection_init: "+err.Error())
		return
	}
	s := k.s
	p := k.header
	switch {
	case s.verifier.Off(), token == "" && p == nil:
		p = s.verifier.Anonymous()
	case token != "":
		if p, err = s.verifier.Verify(k.ctx, token); err != nil {
			s.log.Debug("token refused", "cause", auth.Cause(err))
			s.addresses.take(s.address(k.r), time.Now())
			k.end(closeForbidden, "forbidden")
			return
		}
	}
	if p == nil {
		k.end(closeUnauthorized, "a token is required")
		return
	}
	leave, ok := s.enter(s.client(p, k.r))
	if !ok {
		k.end(closeTooMany, "too many sockets")
		return
	}
	k.left = leave
	k.principal = p
	if !p.Expires.IsZero() {
		k.later(time.Until(p.Expires), func() { k.end(closeForbidden, "the token has ended") })
	}
	k.mu.Lock()
	k.acknowledged = true
	k.mu.Unlock()
	k.send(message{Type: "connection_ack"})
}

// tokenOf is the token in connection_init's payload: {"Authorization": "Bearer
// …"} or {"token": "…"}, in any case; empty: none.
func tokenOf(payload json.RawMessage) (string, error) {
	if len(payload) == 0 {
		return "", nil
	}
	m, err := decodeObject(payload)
	if err != nil {
		return "", errors.New("the payload must be an object")
	}
	var token string
	for name, v := range m {
		text, ok := v.(string)
		switch {
		case !ok:
		case strings.EqualFold(name, "authorization"):
			if token = bearer(text); token == "" {
				return "", errors.New("authorization must be Bearer and a token")
			}
			return token, nil
		case strings.EqualFold(name, "token"):
			token = text
		}
	}
	return token, nil
}

// interceptor keeps the connection that a handshake takes over.
type interceptor struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack takes the connection from the server (http.Hijacker).
func (i *interceptor) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(i.ResponseWriter).Hijack()
	i.conn = conn
	return conn, rw, err
}
