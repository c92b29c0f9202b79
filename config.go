package streamgauge

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/gateway/server"
	"github.com/streamgauge/streamgauge/internal/kafka"
	"github.com/streamgauge/streamgauge/internal/settings"
)

// Config is everything that can be set of an instance. deploy/streamgauge.yml
// has each setting with its default and what it does. An environment variable
// overrides a setting: STREAMGAUGE_ and its path in capitals, STATE_DIR for
// state.dir; lists are divided by commas.
type Config struct {
	App         string        `yaml:"app"`
	Instance    string        `yaml:"instance"`
	Rack        string        `yaml:"rack"`
	StopTimeout time.Duration `yaml:"stopTimeout"`
	Kafka       kafka.Config  `yaml:"kafka"`
	Listen      struct {
		HTTP          string    `yaml:"http"`
		GRPC          string    `yaml:"grpc"`
		Advertise     string    `yaml:"advertise"`
		AdvertiseHTTP string    `yaml:"advertiseHTTP"`
		TLS           listenTLS `yaml:"tls"`
	} `yaml:"listen"`
	// Gateway is for a gateway alone.
	Gateway struct {
		Seeds []string `yaml:"seeds"`
	} `yaml:"gateway"`
	State struct {
		Dir                string        `yaml:"dir"`
		OverlayBytes       int64         `yaml:"overlayBytes"`
		CommitInterval     time.Duration `yaml:"commitInterval"`
		CheckpointInterval time.Duration `yaml:"checkpointInterval"`
		// Standbys of each task; 0: none.
		Standbys      int   `yaml:"standbys"`
		AcceptableLag int64 `yaml:"acceptableLag"`
		WarmUps       int   `yaml:"warmUps"`
	} `yaml:"state"`
	Processing struct {
		MaxAhead time.Duration `yaml:"maxAhead"`
		OnError  string        `yaml:"onError"`
		OnLoss   string        `yaml:"onLoss"`
	} `yaml:"processing"`
	Reads struct {
		Timeout time.Duration `yaml:"timeout"`
		MaxRows int           `yaml:"maxRows"`
		// MaxPoints bounds one key's series.
		MaxPoints int `yaml:"maxPoints"`
		// MaxAge bounds the age of what copies that are not active answer.
		MaxAge time.Duration `yaml:"maxAge"`
	} `yaml:"reads"`
	Auth struct {
		Mode            string   `yaml:"mode"`
		Algorithms      []string `yaml:"algorithms"`
		Keys            authKeys `yaml:"keys"`
		Issuer          string   `yaml:"issuer"`
		Audience        string   `yaml:"audience"`
		ScopeClaims     []string `yaml:"scopeClaims"`
		TokensFile      string   `yaml:"tokensFile"`
		AnonymousScopes []string `yaml:"anonymousScopes"`
	} `yaml:"auth"`
	Web struct {
		Origins        []string `yaml:"origins"`
		TrustedProxies []string `yaml:"trustedProxies"`
		Playground     bool     `yaml:"playground"`
		Introspection  bool     `yaml:"introspection"`
		Dashboard      bool     `yaml:"dashboard"`
	} `yaml:"web"`
	Limits struct {
		Body          int64   `yaml:"body"`
		Tokens        int     `yaml:"tokens"`
		Depth         int     `yaml:"depth"`
		Aliases       int     `yaml:"aliases"`
		RootFields    int     `yaml:"rootFields"`
		Complexity    int     `yaml:"complexity"`
		PageSize      int     `yaml:"pageSize"`
		Subscriptions int     `yaml:"subscriptions"`
		Sockets       int     `yaml:"sockets"`
		Rate          float64 `yaml:"rate"`
		AnonymousRate float64 `yaml:"anonymousRate"`
	} `yaml:"limits"`
	Log struct {
		Level  string `yaml:"level"`
		Format string `yaml:"format"`
	} `yaml:"log"`
}

// listenTLS is mutual TLS between instances: off while nothing is set.
type listenTLS struct {
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
	CA   string `yaml:"ca"`
	// Names of peers; none: the application's.
	Names []string `yaml:"names"`
}

type authKeys []authKey

// SetFirst takes the file of one key, from the environment.
func (k *authKeys) SetFirst(file string) { *k = authKeys{{File: file}} }

type authKey struct {
	File      string `yaml:"file"`
	ID        string `yaml:"id"`
	Algorithm string `yaml:"algorithm"`
}

// DefaultConfig has every default.
func DefaultConfig(app string) *Config {
	c := &Config{App: app}
	if host, err := os.Hostname(); err == nil {
		c.Instance = host
	}
	c.StopTimeout = 30 * time.Second
	c.Kafka = kafka.Default()
	c.Listen.HTTP, c.Listen.GRPC = "127.0.0.1:8080", "127.0.0.1:9090"
	c.State.Dir, c.State.OverlayBytes = "state", 256<<20
	c.State.CommitInterval, c.State.CheckpointInterval = 100*time.Millisecond, 30*time.Second
	c.State.Standbys, c.State.AcceptableLag, c.State.WarmUps = 1, 10_000, 2
	c.Processing.MaxAhead, c.Processing.OnError, c.Processing.OnLoss = time.Hour, "deadLetter", "stop"
	c.Reads.Timeout, c.Reads.MaxRows, c.Reads.MaxPoints = 5*time.Second, 100_000, 10_000
	c.Reads.MaxAge = time.Minute
	c.Auth.Mode = "jwt"
	c.Web.Playground, c.Web.Introspection, c.Web.Dashboard = true, true, true
	c.Limits.Body, c.Limits.Tokens, c.Limits.Depth, c.Limits.Aliases = 256<<10, 2000, 15, 30
	c.Limits.RootFields, c.Limits.Complexity, c.Limits.PageSize = 20, 20_000, 1000
	c.Limits.Subscriptions, c.Limits.Sockets = 50, 20
	c.Limits.Rate, c.Limits.AnonymousRate = 1000, 200
	c.Log.Level, c.Log.Format = "info", "text"
	return c
}

// LoadConfig reads the defaults, then the file (when path is not empty), then
// the environment. A setting that is unknown or out of its range is an error, of
// one line.
func LoadConfig(app, path string, environ []string) (*Config, error) {
	c := DefaultConfig(app)
	if path != "" {
		if err := settings.File(c, path); err != nil {
			return nil, err
		}
	}
	if err := settings.Environment(c, environ); err != nil {
		return nil, err
	}
	return c, c.check()
}

// authConfig is what the verifier is made of.
func (c *Config) authConfig(log *slog.Logger) auth.Config {
	a := auth.Config{
		Algorithms: c.Auth.Algorithms, Issuer: c.Auth.Issuer, Audience: c.Auth.Audience,
		ScopeClaims: c.Auth.ScopeClaims, TokensFile: c.Auth.TokensFile, AnonymousScopes: c.Auth.AnonymousScopes,
		Off: c.Auth.Mode == "off", Logger: log,
	}
	for _, k := range c.Auth.Keys {
		a.Keys = append(a.Keys, auth.Key{File: k.File, ID: k.ID, Algorithm: k.Algorithm})
	}
	return a
}

func (c *Config) limits() server.Limits {
	return server.Limits{
		Body: c.Limits.Body, Tokens: c.Limits.Tokens, Depth: c.Limits.Depth, Aliases: c.Limits.Aliases,
		RootFields: c.Limits.RootFields, Complexity: c.Limits.Complexity,
		Subscriptions: c.Limits.Subscriptions, Sockets: c.Limits.Sockets,
		Rate: c.Limits.Rate, AnonymousRate: c.Limits.AnonymousRate,
	}
}

func (c *Config) proxies() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range c.Web.TrustedProxies {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("configuration: web.trustedProxies: %q is no network such as 10.0.0.0/8", s)
		}
		out = append(out, p)
	}
	return out, nil
}

// logger writes to w as configured.
func (c *Config) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		level = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: level}
	if c.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
