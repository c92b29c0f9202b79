package server

import (
	"net/http"
	"strings"
	"time"

	"github.com/streamgauge/streamgauge/auth"
)

// graphql is the endpoint: it picks the transport.
func (s *Server) graphql(w http.ResponseWriter, r *http.Request) {
	if origin := r.Header["Origin"]; len(origin) > 0 {
		s.allowOrigin(w.Header(), r, origin[0])
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r)
	case http.MethodGet:
		if r.Header["Upgrade"] != nil {
			s.socket(w, r)
			return
		}
		s.get(w, r)
	case http.MethodOptions:
		w.Header()["Allow"] = []string{"GET, POST, OPTIONS"}
		w.WriteHeader(http.StatusNoContent)
	default:
		s.refuse(w, refusal{
			status: http.StatusMethodNotAllowed, code: CodeBadInput,
			message: "use POST or GET", allow: "GET, POST, OPTIONS",
		})
	}
}

// allowOrigin tells a browser that a page of the origin may use us (Fetch
// standard, CORS protocol); for others it says nothing, and the browser refuses.
func (s *Server) allowOrigin(h http.Header, r *http.Request, origin string) {
	h.Add("Vary", "Origin")
	if !s.mayUse(r, origin) {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Retry-After, WWW-Authenticate")
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
		h.Set("Access-Control-Allow-Methods", "GET, POST")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, "+strings.Join(preflightHeaders, ", "))
		h.Set("Access-Control-Max-Age", "600")
	}
}

// mayUse says whether a page of the origin may use us: our own, or a configured
// one.
func (s *Server) mayUse(r *http.Request, origin string) bool {
	origin = strings.ToLower(origin)
	if s.origins["*"] || s.origins[origin] {
		return true
	}
	_, host, ok := strings.Cut(origin, "://")
	return ok && host == strings.ToLower(r.Host)
}

// identify finds who asks, and takes the request from their rate.
func (s *Server) identify(r *http.Request) (*auth.Principal, *refusal) {
	p, f := s.authenticate(r)
	if f != nil {
		return nil, f
	}
	if p == nil {
		return nil, &refusal{status: http.StatusUnauthorized, code: CodeUnauthenticated, message: "a token is required"}
	}
	if wait, ok := s.takeFor(p, r); !ok {
		return nil, tooMany(wait)
	}
	return p, nil
}

// authenticate finds who asks by the Authorization header; nil: nobody, though
// somebody is required.
func (s *Server) authenticate(r *http.Request) (*auth.Principal, *refusal) {
	h := r.Header["Authorization"]
	if len(h) == 0 || s.verifier.Off() {
		return s.verifier.Anonymous(), nil
	}
	p, err := s.verifier.Verify(r.Context(), bearer(h[0]))
	if err == nil {
		return p, nil
	}
	s.log.Debug("token refused", "cause", auth.Cause(err))
	if wait, ok := s.addresses.take(s.address(r), time.Now()); !ok {
		return nil, tooMany(wait)
	}
	return nil, &refusal{status: http.StatusUnauthorized, code: CodeUnauthenticated, message: "the token is not valid"}
}

// bearer is the token of an Authorization value (RFC 6750), empty when it has
// none.
func bearer(authorization string) string {
	const scheme = "bearer "
	if len(authorization) <= len(scheme) || !strings.EqualFold(authorization[:len(scheme)], scheme) {
		return ""
	}
	return strings.TrimSpace(authorization[len(scheme):])
}

// takeFor takes a request from the rate of a principal: those with a subject by
// subject, others by address.
func (s *Server) takeFor(p *auth.Principal, r *http.Request) (time.Duration, bool) {
	switch {
	case p.Subject != "":
		return s.subjects.take(p.Subject, time.Now())
	case p.Unrestricted():
		return s.subjects.take(s.address(r), time.Now())
	}
	return s.addresses.take(s.address(r), time.Now())
}

func tooMany(wait time.Duration) *refusal {
	return &refusal{
		status: http.StatusTooManyRequests, code: CodeRateLimited, message: "too many requests",
		retryAfter: max(wait, time.Millisecond),
	}
}

// client names who has sockets and event streams.
func (s *Server) client(p *auth.Principal, r *http.Request) string {
	if p.Subject != "" {
		return "subject " + p.Subject
	}
	return "address " + s.address(r)
}
