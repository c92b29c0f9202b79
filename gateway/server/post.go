package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/streamgauge/streamgauge/auth"
)

// post answers POST (GraphQL over HTTP, section 5.4): one response, or a stream
// of them where the client takes text/event-stream alone or subscribes.
func (s *Server) post(w http.ResponseWriter, r *http.Request) {
	if !jsonContent(r.Header["Content-Type"]) {
		s.refuse(w, refusal{
			status: http.StatusUnsupportedMediaType, code: CodeBadInput,
			message: "need Content-Type: application/json, in UTF-8",
		})
		return
	}
	p, f := s.identify(r)
	if f != nil {
		s.refuse(w, *f)
		return
	}
	take := negotiate(r.Header["Accept"])
	if take.single == none && !take.events {
		s.refuse(w, notAcceptable())
		return
	}
	b := buffers.Get().(*buffer)
	defer b.put()
	if f := s.body(w, r, b); f != nil {
		s.refuse(w, *f)
		return
	}
	start := time.Now()
	q, err := decodeRequest(b.b)
	if err != nil {
		s.refuse(w, refusal{status: http.StatusBadRequest, code: CodeBadInput, message: err.Error()})
		return
	}
	ctx := auth.With(r.Context(), p)
	oc, errs := s.prepare(ctx, q, r.Header)
	switch {
	case take.single == none, errs == nil && oc.Operation.Operation == ast.Subscription && take.events:
		s.stream(w, r.WithContext(ctx), p, oc, errs)
	case errs != nil:
		s.failed(w, take.single, b, errs)
	case oc.Operation.Operation == ast.Subscription:
		s.refuse(w, refusal{
			status: http.StatusNotAcceptable, code: CodeBadInput,
			message: "a subscription needs Accept: text/event-stream, or a websocket",
		})
	default:
		s.answer(ctx, w, take.single, b, oc)
		since(s.metrics.post, start)
	}
}

func notAcceptable() refusal {
	return refusal{
		status: http.StatusNotAcceptable, code: CodeBadInput,
		message: "can answer " + acceptResponse + ", " + acceptJSON + " or, to POST, " + acceptEvents,
	}
}

// body reads a request's body, no more than the limit.
func (s *Server) body(w http.ResponseWriter, r *http.Request, b *buffer) *refusal {
	in := r.Body
	switch {
	case s.limits.Body < 0:
	case r.ContentLength > s.limits.Body:
		w.Header().Set("Connection", "close")
		return s.tooLong()
	case r.ContentLength < 0:
		in = http.MaxBytesReader(w, in, s.limits.Body)
	}
	for {
		if len(b.b) == cap(b.b) {
			b.b = append(b.b, 0)[:len(b.b)]
		}
		n, err := in.Read(b.b[len(b.b):cap(b.b)])
		b.b = b.b[:len(b.b)+n]
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return s.unread(err)
		}
	}
}

func (s *Server) unread(err error) *refusal {
	if errors.As(err, new(*http.MaxBytesError)) {
		return s.tooLong()
	}
	return &refusal{status: http.StatusBadRequest, code: CodeBadInput, message: "the body ended early"}
}

func (s *Server) tooLong() *refusal {
	return &refusal{
		status: http.StatusRequestEntityTooLarge, code: CodeLimit,
		message: "the body is larger than " + strconv.FormatInt(s.limits.Body, 10) + " bytes",
	}
}

// answer executes a query and writes its response.
func (s *Server) answer(ctx context.Context, w http.ResponseWriter, m media, b *buffer, oc *graphql.OperationContext) {
	resp := s.execute(ctx, oc)
	b.b = b.b[:0]
	if err := b.response(resp); err != nil {
		s.log.Error("encoding a response", "cause", err)
		s.refuse(w, refusal{status: http.StatusInternalServerError, code: CodeInternal, message: "internal error"})
		return
	}
	s.write(w, m, http.StatusOK, b.b)
}

// failed writes the errors of a request that was not executed: 400, or, in
// application/json, where a status may be a proxy's, 200 (GraphQL over HTTP,
// section 6.4).
func (s *Server) failed(w http.ResponseWriter, m media, b *buffer, errs gqlerror.List) {
	s.count(errs)
	status := http.StatusBadRequest
	if m == plainJSON {
		status = http.StatusOK
	}
	b.b = b.b[:0]
	if err := b.response(&graphql.Response{Errors: errs}); err != nil {
		s.log.Error("encoding errors", "cause", err)
		status = http.StatusInternalServerError
	}
	s.write(w, m, status, b.b)
}

// count counts errors that did not pass the presenter.
func (s *Server) count(errs gqlerror.List) {
	for _, e := range errs {
		if code, ok := e.Extensions["code"].(string); ok {
			s.metrics.errors.WithLabelValues(code).Inc()
		}
	}
}

func (s *Server) write(w http.ResponseWriter, m media, status int, b []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	if m == responseJSON {
		h["Content-Type"] = responseType
	}
	h["Cache-Control"] = noStore // an answer is of its moment
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	if status != http.StatusOK {
		w.WriteHeader(status)
	}
	_, _ = w.Write(b) // the client may have gone
}
