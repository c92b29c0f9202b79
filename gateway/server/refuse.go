package server

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Header values are shared: nobody changes them.
var (
	jsonType     = []string{"application/json; charset=utf-8"}
	responseType = []string{"application/graphql-response+json; charset=utf-8"}
	eventsType   = []string{"text/event-stream; charset=utf-8"}
	nosniff      = []string{"nosniff"}
	noStore      = []string{"no-store"}
)

// refusal is why a request does not get as far as GraphQL. Its message never
// holds any of the request.
type refusal struct {
	status     int
	code       string
	message    string
	retryAfter time.Duration // 0: no use
	allow      string        // the Allow header
}

func (f *refusal) error() *gqlerror.Error {
	ext := map[string]any{"code": f.code}
	if f.retryAfter > 0 {
		ext["retryAfterMs"] = millis(f.retryAfter)
	}
	return &gqlerror.Error{Message: f.message, Extensions: ext}
}

// refuse answers with a refusal: JSON with errors, whatever was asked for.
func (s *Server) refuse(w http.ResponseWriter, f refusal) {
	s.metrics.refusals.WithLabelValues(f.code).Inc()
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Cache-Control"] = noStore
	if f.allow != "" {
		h.Set("Allow", f.allow)
	}
	if f.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="streamgauge"`)
	}
	if f.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(f.retryAfter.Seconds()))))
	}
	body, err := json.Marshal(map[string]any{"errors": []*gqlerror.Error{f.error()}})
	if err != nil {
		body = []byte(`{"errors":[{"message":"internal error","extensions":{"code":"INTERNAL"}}]}`)
	}
	w.WriteHeader(f.status)
	_, _ = w.Write(body) // the client may have gone
}

// millis rounds up, so that a client that waits so long is not early.
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
