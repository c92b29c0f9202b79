package server

import (
	"net/http"
	"net/url"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/streamgauge/streamgauge/auth"
)

// preflightHeaders make a browser ask before it sends a page's request to
// another origin. A GET must have one of them, an Authorization header, or a
// JSON Content-Type: a form, link or image of a strange page can have none. An
// Accept header proves nothing, pages may set it unasked.
var preflightHeaders = []string{"GraphQL-Require-Preflight", "Apollo-Require-Preflight", "X-Apollo-Operation-Name"}

// get answers GET (GraphQL over HTTP, section 5.3): queries alone.
func (s *Server) get(w http.ResponseWriter, r *http.Request) {
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
	start := time.Now()
	q, f := getRequest(r)
	if f != nil {
		s.refuse(w, *f)
		return
	}
	ctx := auth.With(r.Context(), p)
	oc, errs := s.prepare(ctx, q, r.Header)
	b := buffers.Get().(*buffer)
	defer b.put()
	switch {
	case errs == nil && oc.Operation.Operation != ast.Query:
		s.refuse(w, refusal{
			status: http.StatusMethodNotAllowed, code: CodeBadInput,
			message: "GET is for queries: use POST", allow: "POST",
		})
	case take.single == none:
		s.refuse(w, notAcceptable())
	case errs != nil:
		s.failed(w, take.single, b, errs)
	case !preflighted(r.Header):
		s.refuse(w, refusal{
			status: http.StatusBadRequest, code: CodeBadInput,
			message: "a GET needs an Authorization header, GraphQL-Require-Preflight, or Content-Type: application/json",
		})
	default:
		s.answer(ctx, w, take.single, b, oc)
		since(s.metrics.get, start)
	}
}

func preflighted(h http.Header) bool {
	for _, name := range preflightHeaders {
		if h.Get(name) != "" {
			return true
		}
	}
	return h["Authorization"] != nil || jsonContent(h["Content-Type"])
}

// getRequest reads a request from the URL's parameters.
func getRequest(r *http.Request) (*request, *refusal) {
	bad := func(message string) *refusal {
		return &refusal{status: http.StatusBadRequest, code: CodeBadInput, message: message}
	}
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, bad("the URL's parameters are malformed")
	}
	q := &request{query: params.Get("query"), operationName: params.Get("operationName")}
	if q.query == "" {
		return nil, bad(errNoQuery.Error())
	}
	for _, part := range []struct {
		name string
		to   *map[string]any
	}{{"variables", &q.variables}, {"extensions", &q.extensions}} {
		if text := params.Get(part.name); text != "" {
			if *part.to, err = decodeObject([]byte(text)); err != nil {
				return nil, bad(part.name + ": " + err.Error())
			}
		}
	}
	return q, nil
}
