package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/streamgauge/streamgauge/auth"
)

// Frames of an event stream. "complete" has a data line: browsers drop an event
// without one.
var (
	comment  = []byte(":\n\n")
	complete = []byte("event: complete\ndata:\n\n")
)

// stream answers with server-sent events (the distinct connections mode of
// GraphQL over SSE): next for each response, and complete. A request that could
// not be prepared is a stream of one next with its errors. Streams are not
// compressed: an event would wait in the compressor.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, p *auth.Principal, oc *graphql.OperationContext, errs gqlerror.List) {
	if !s.join() {
		s.refuse(w, shuttingDown())
		return
	}
	defer s.sessions.Done()
	leave, ok := s.enter(s.client(p, r))
	if !ok {
		s.refuse(w, refusal{
			status: http.StatusTooManyRequests, code: CodeLimit,
			message: "too many streams and sockets", retryAfter: retrySoon,
		})
		return
	}
	defer leave()
	s.metrics.streams.Inc()
	defer s.metrics.streams.Dec()

	e := &events{w: w, c: http.NewResponseController(w), timeout: s.limits.WriteTimeout}
	_ = e.c.SetReadDeadline(time.Time{}) // not every writer has one
	h := w.Header()
	h["Content-Type"] = eventsType
	h["Cache-Control"] = []string{"no-cache, no-store, no-transform"}
	h["X-Accel-Buffering"] = []string{"no"} // nginx would wait for more
	w.WriteHeader(http.StatusOK)
	if !e.write(comment) {
		return
	}
	if errs != nil {
		s.count(errs)
		e.write(nextFrame(errorsJSON(errs)))
		e.write(complete)
		return
	}
	s.pump(r.Context(), e, p, oc)
}

// pump runs the operation in a goroutine of its own, so that comments keep the
// connection alive between its events, and waits for it.
func (s *Server) pump(ctx context.Context, e *events, p *auth.Principal, oc *graphql.OperationContext) {
	ctx, cancel := context.WithCancel(ctx)
	frames := make(chan []byte) // ours to read; the operation closes it
	go func() {
		defer close(frames)
		s.run(ctx, oc, &frameSink{ctx: ctx, frames: frames})
	}()
	defer func() {
		cancel()
		for range frames { // until the operation has ended
		}
	}()
	alive := time.NewTicker(s.limits.KeepAlive)
	defer alive.Stop()
	expired, stop := expiry(p)
	defer stop()
	for {
		select {
		case f, more := <-frames:
			if !more {
				if ctx.Err() == nil {
					e.write(complete)
				}
				return
			}
			if !e.write(f) {
				return
			}
		case <-alive.C:
			if !e.write(comment) {
				return
			}
		case <-expired:
			e.write(complete)
			return
		case <-s.drain.Done():
			e.write(complete)
			return
		case <-ctx.Done():
			return
		}
	}
}

// expiry tells when a principal ends; never for one that does not.
func expiry(p *auth.Principal) (<-chan time.Time, func() bool) {
	if p.Expires.IsZero() {
		return nil, func() bool { return true }
	}
	t := time.NewTimer(time.Until(p.Expires))
	return t.C, t.Stop
}

// events writes frames of an event stream, each flushed and given up on when
// the client does not take it in time.
type events struct {
	w       http.ResponseWriter
	c       *http.ResponseController
	timeout time.Duration
}

func (e *events) write(frame []byte) bool {
	_ = e.c.SetWriteDeadline(time.Now().Add(e.timeout)) // not every writer has one
	if _, err := e.w.Write(frame); err != nil {
		return false
	}
	return e.c.Flush() == nil
}

// frameSink makes frames of responses.
type frameSink struct {
	ctx    context.Context
	frames chan<- []byte
}

func (f *frameSink) next(response []byte) bool {
	select {
	case f.frames <- nextFrame(response):
		return true
	case <-f.ctx.Done():
		return false
	}
}

func (f *frameSink) fail(errs gqlerror.List) bool { return f.next(errorsJSON(errs)) }

// nextFrame is a response's frame: one line of data. A line break in JSON can only
// be white space.
func nextFrame(response []byte) []byte {
	const head, tail = "event: next\ndata: ", "\n\n"
	f := make([]byte, 0, len(head)+len(response)+len(tail))
	f = append(append(f, head...), response...)
	if bytes.ContainsAny(f[len(head):], "\r\n") {
		for i := len(head); i < len(f); i++ {
			if f[i] == '\n' || f[i] == '\r' {
				f[i] = ' '
			}
		}
	}
	return append(f, tail...)
}

func errorsJSON(errs gqlerror.List) []byte {
	b, err := json.Marshal(map[string]any{"errors": errs})
	if err != nil {
		return []byte(`{"errors":[{"message":"internal error","extensions":{"code":"INTERNAL"}}]}`)
	}
	return b
}
