package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/streamgauge/streamgauge/auth"
)

// Config is what a Server is made of. Schema and Verifier are required.
type Config struct {
	Schema   graphql.ExecutableSchema
	Verifier *auth.Verifier
	Limits   Limits

	// Origins (scheme://host[:port], or * for all) may use us from a browser
	// page of another origin, over HTTP and websockets. The own one always may.
	Origins []string
	// TrustedProxies are believed about a client's address (X-Forwarded-For).
	TrustedProxies []netip.Prefix
	// NoIntrospection refuses __schema and __type.
	NoIntrospection bool

	// Ready says whether to send requests here, and a body for people, as JSON:
	// /readyz. nil: always.
	Ready func() (ok bool, body any)
	// Playground serves /playground/ (the prefix removed), Dashboard /, Metrics
	// /metrics; nil: not found. Routes serves more, by pattern of http.ServeMux.
	Playground http.Handler
	Dashboard  http.Handler
	Metrics    http.Handler
	Routes     map[string]http.Handler

	// Extensions is called before each operation, and before each event of a
	// subscription. The context it returns is the one resolvers get; the
	// function is called when they are done, for the response's extensions
	// (nil: none).
	Extensions func(context.Context) (context.Context, func() map[string]any)

	// Ending is called once for each subscription, before it starts; the context
	// it returns is the one its resolver gets. When the resolver's channel has
	// ended, the function says with what error (nil: none), and the client gets
	// that.
	Ending func(context.Context) (context.Context, func() error)

	Logger     *slog.Logger          // nil: none
	Registerer prometheus.Registerer // nil: no metrics
}

// New makes a Server. It starts nothing.
func New(c Config) (*Server, error) {
	if c.Schema == nil || c.Verifier == nil {
		return nil, errors.New("server: needs a schema and a verifier")
	}
	for _, o := range c.Origins {
		if u, err := url.Parse(o); o != "*" && (err != nil || u.Host == "" || u.Path != "" || (u.Scheme != "http" && u.Scheme != "https")) {
			return nil, fmt.Errorf("server: origin %q: need scheme://host, scheme://host:port or *", o)
		}
	}
	l := c.Limits.withDefaults()
	if l.Time < 0 || l.InitTimeout < 0 || l.WriteTimeout < 0 || l.Ping < 0 || l.Pong < 0 || l.KeepAlive < 0 || l.Drain < 0 {
		return nil, errors.New("server: limits: times must not be negative")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		schema: c.Schema, verifier: c.Verifier, limits: l, log: c.Logger,
		origins: map[string]bool{}, proxies: c.TrustedProxies,
		noIntrospection: c.NoIntrospection, extensions: c.Extensions, ending: c.Ending, ready: c.Ready,
		counts: map[string]int{},
	}
	for _, o := range c.Origins {
		s.origins[strings.ToLower(o)] = true
	}
	s.drain, s.startDrain = context.WithCancel(context.Background())
	s.present = s.presenter()
	s.recovered = s.recoverer()
	s.rules = validationRules()
	var err error
	if s.documents, err = newDocuments(l.Documents); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if s.subjects, err = newRates(l.Rate, l.Burst, l.Clients); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if s.addresses, err = newRates(l.AnonymousRate, l.AnonymousBurst, l.Clients); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	if s.metrics, err = newMetrics(c.Registerer); err != nil {
		return nil, fmt.Errorf("server: metrics: %w", err)
	}
	s.mux = s.routes(&c)
	return s, nil
}
