package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
)

// TopicPartition names one partition of one topic.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is topic-partition, as Kafka's tools print it.
func (tp TopicPartition) String() string { return fmt.Sprintf("%s-%d", tp.Topic, tp.Partition) }

// Config is what a Client needs. Brokers is required; zero values elsewhere
// mean the default.
type Config struct {
	Brokers  []string // host:port of some brokers of the cluster
	ClientID string   // default "streamgauge"
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is asked for each connection; nil: plain text. An empty ServerName
	// stands for the broker's.
	TLS            func() (*tls.Config, error)
	SASL           sasl.Mechanism // nil: none
	RequestTimeout time.Duration  // per request, default 10s; fetches and joins add their wait
	MetadataTTL    time.Duration  // how long leaders are believed without a reason to doubt, default 30s
	Logger         *slog.Logger   // default: discards
}

const (
	defaultRequestTimeout = 10 * time.Second
	defaultMetadataTTL    = 30 * time.Second
	dialTimeout           = 3 * time.Second
	// brokerListTTL bounds how long the transport believes its list of brokers.
	// It also is the deadline of its own metadata requests.
	brokerListTTL = 10 * time.Second
)

// Client speaks to one Kafka cluster. It is safe for concurrent use. Every
// request it sends has a deadline; calls whose context has none are bounded by
// three request timeouts.
type Client struct {
	cfg       Config
	log       *slog.Logger
	transport *kafka.Transport
	seeds     net.Addr
	ctx       context.Context // ends at Close
	cancel    context.CancelFunc
	sequence  atomic.Int32 // correlation ids
	resets    atomic.Int64 // times the idle connections were dropped

	mu    sync.Mutex // guards conns and closed
	conns map[*trackedConn]struct{}
	done  bool

	compressors  sync.Pool // of *compressor
	leaders      leaderCache
	complaints   complaints
	coordinators coordinatorCache
}

// New checks the configuration. It connects to nothing and starts nothing.
func New(cfg Config) (*Client, error) {
	if len(cfg.Brokers) == 0 {
		return nil, errors.New("broker: no Kafka brokers configured")
	}
	for _, b := range cfg.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			return nil, fmt.Errorf("broker: Kafka broker %q: want host:port", b)
		}
	}
	if cfg.ClientID == "" {
		cfg.ClientID = "streamgauge"
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	if cfg.RequestTimeout <= 0 {
		cfg.RequestTimeout = defaultRequestTimeout
	}
	if cfg.MetadataTTL <= 0 {
		cfg.MetadataTTL = defaultMetadataTTL
	}
	c := &Client{cfg: cfg, log: logger(cfg.Logger), seeds: kafka.TCP(cfg.Brokers...)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.conns = make(map[*trackedConn]struct{})
	c.transport = &kafka.Transport{
		Dial:        c.dial, // TLS included
		DialTimeout: 3 * dialTimeout,
		ClientID:    cfg.ClientID,
		SASL:        cfg.SASL,
		MetadataTTL: brokerListTTL,
		// Leaders are kept here, by topic in use; the transport needs the
		// brokers alone. An empty list asks for no topic, nil for all.
		MetadataTopics: []string{},
		Context:        c.ctx,
	}
	return c, nil
}

func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}

// Close ends every request in flight and closes every connection. It may be
// called more than once.
func (c *Client) Close() error {
	c.mu.Lock()
	c.done = true
	conns := make([]*trackedConn, 0, len(c.conns))
	for conn := range c.conns {
		conns = append(conns, conn)
	}
	c.mu.Unlock()
	c.cancel()
	c.transport.CloseIdleConnections()
	var errs []error
	for _, conn := range conns {
		if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Ping asks the cluster for its brokers once. The error is one line for people:
// which addresses, why, and what to do.
func (c *Client) Ping(ctx context.Context) error {
	if _, err := c.metadata(ctx, []string{}); err != nil {
		return fmt.Errorf("cannot reach Kafka at %s: %w", strings.Join(c.cfg.Brokers, ", "), c.explain(ctx, err))
	}
	return nil
}
