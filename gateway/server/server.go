package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/validator/core"

	"github.com/streamgauge/streamgauge/auth"
)

// Server answers GraphQL and the few other paths of an instance. Safe for
// concurrent use.
type Server struct {
	schema          graphql.ExecutableSchema
	verifier        *auth.Verifier
	limits          Limits
	log             *slog.Logger
	origins         map[string]bool
	proxies         []netip.Prefix
	noIntrospection bool
	extensions      func(context.Context) (context.Context, func() map[string]any)
	ending          func(context.Context) (context.Context, func() error)
	ready           func() (bool, any)
	mux             http.Handler

	documents *documents
	rules     []core.Rule
	subjects  *rates
	addresses *rates
	present   graphql.ErrorPresenterFunc
	recovered graphql.RecoverFunc
	metrics   *metrics

	// drain ends when sockets and event streams shall.
	drain      context.Context
	startDrain context.CancelFunc
	sessions   sync.WaitGroup

	mu       sync.Mutex     // guards what follows
	counts   map[string]int // sockets and event streams by subject or address
	draining bool
}

// The server's own times; those of clients are Limits.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 30 * time.Second
	writeTimeout  = 60 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// Handler serves all paths.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func (s *Server) routes(c *Config) http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /healthz", s.healthz)
	m.HandleFunc("GET /readyz", s.readyz)
	if c.Metrics != nil {
		m.Handle("GET /metrics", c.Metrics)
	}
	if c.Playground != nil {
		m.Handle("GET /playground/", http.StripPrefix("/playground", c.Playground))
	}
	for pattern, h := range c.Routes {
		m.Handle(pattern, h)
	}
	if c.Dashboard != nil {
		m.Handle("/", c.Dashboard)
	}
	return m
}

// serve is the outermost handler: GraphQL by the shortest way, and nothing
// panics through it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	defer s.caught(w, r)
	w.Header()["X-Content-Type-Options"] = nosniff
	if r.URL.Path == "/graphql" {
		s.graphql(w, r)
		return
	}
	s.mux.ServeHTTP(w, r)
}

func (s *Server) caught(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // the very value, as net/http compares it
		panic(v)
	}
	s.log.Error("panic in a request", "path", r.URL.Path, "cause", v, "stack", string(debug.Stack()))
	s.refuse(w, refusal{status: http.StatusInternalServerError, code: CodeInternal, message: "internal error"})
}

// Serve answers on l until ctx ends; then it stops accepting, ends sockets
// (1001) and event streams (complete), waits for what is running, at most
// Limits.Drain, and returns nil. It is called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1) // ours; the one value is Serve's error
	go func() { failed <- h.Serve(l) }()
	var err error
	select {
	case err = <-failed:
		s.Drain(context.WithoutCancel(ctx))
		return err
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limits.Drain)
	defer cancel()
	s.startDrain()
	err = h.Shutdown(bounded)
	s.Drain(bounded)
	if err != nil {
		err = h.Close()
	}
	if served := <-failed; !errors.Is(served, http.ErrServerClosed) {
		return served
	}
	return err
}

// Drain ends all sockets and event streams and takes no new ones. It returns
// when they have ended, or ctx or Limits.Drain has.
func (s *Server) Drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.startDrain()
	done := make(chan struct{})
	go func() {
		s.sessions.Wait()
		close(done)
	}()
	t := time.NewTimer(s.limits.Drain)
	defer t.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-t.C:
	}
}

// join adds a socket or event stream to those that Drain waits for, until
// sessions.Done; it is false when no more are taken.
func (s *Server) join() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.sessions.Add(1)
	return true
}

func shuttingDown() refusal {
	return refusal{status: http.StatusServiceUnavailable, code: CodeUnavailable, message: "shutting down", retryAfter: retrySoon}
}

// enter counts a socket or event stream of a client; leave must be called when
// it ends. It is false when the client has too many.
func (s *Server) enter(client string) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if over(s.counts[client]+1, s.limits.Sockets) {
		return nil, false
	}
	s.counts[client]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.counts[client]--; s.counts[client] == 0 {
			delete(s.counts, client)
		}
	}, true
}
