package processor

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/schema"
)

// Config of a Worker. Client, Topology, App, Instance and StateDir are
// required; the zero value of anything else stands for its default.
type Config struct {
	App      string // names the group and prefixes every internal topic
	Instance string // unique among the instances of the application
	Addr     string // host:port at which other instances reach this one's gRPC
	HTTP     string // host:port at which people reach its HTTP
	Secure   bool   // its gRPC speaks mutual TLS: all instances must, or none

	Topology *schema.Topology
	Client   *broker.Client
	StateDir string

	Replication int16  // of internal topics; −1: the broker's default
	StaticID    string // group.instance.id; "": a dynamic member

	Standbys      int    // copies of each task beside the active one, default 1; −1: none
	Rack          string // where this instance is: standbys are put elsewhere; "": anywhere
	AcceptableLag int64  // changelog offsets that a copy may be behind and still take a task over, default 10,000
	ReadyLag      int64  // source records that a task may be behind for its instance to become ready, default 10,000
	WarmUps       int    // tasks that one instance warms up at a time, default 2

	SessionTimeout    time.Duration // default 10 s
	HeartbeatInterval time.Duration // default 3 s

	CommitInterval     time.Duration // default 100 ms; at least 5 ms a stateful task here
	CommitBytes        int           // pending bytes that commit early, default 4 MiB
	CheckpointInterval time.Duration // default 30 s
	OverlayBytes       int64         // of all tasks together, default 256 MiB
	MmapSize           int           // of each store file, in address space; default the store's
	HeldUpAfter        time.Duration // an open transaction may hold an input up before that is said, default 30 s
	MaxAhead           time.Duration // how far event time may run ahead of the clock, default 1 h
	MaxRows            int           // rows that one read may look at or return, default 100,000
	MaxPoints          int           // of one key's series, default 10,000; MaxRows bounds all keys of a read

	// OnLoss says what to do when input was deleted before it was read: stop
	// (false) or go on, loudly (true).
	SkipLost bool
	// FailOnBadRecord stops a task at a bad record instead of writing it to the
	// dead letters.
	FailOnBadRecord bool

	// StartOver says, in messages, how this application is started over: a
	// sentence without a full stop. Default: the toolbox's reset command.
	StartOver string

	// Of the producer, for tests; 0: its defaults.
	deliveryTimeout time.Duration
	queueBytes      int

	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: metrics are kept and not exposed
}

const (
	transactionTimeout = 10 * time.Second
	markInterval       = time.Second
	idleAfter          = 10 * time.Second
	silentAfter        = 10 * time.Second // a mark so much older than the newest is of nobody who still looks
	trimInterval       = 30 * time.Second
	rankingLimit       = 1000
	requestTimeout     = 15 * time.Second
	// maxMessageBytes of the changelogs and the dead letters: a row is at most as
	// large as the records that it keeps texts of.
	maxMessageBytes = 8 << 20
)

func (c *Config) fill() error {
	if c.App == "" || c.Instance == "" || c.StateDir == "" || c.Topology == nil || c.Client == nil {
		return errors.New("a worker needs an application, an instance, a state directory, a topology and a client")
	}
	setDefault(&c.SessionTimeout, 10*time.Second)
	setDefault(&c.HeartbeatInterval, 3*time.Second)
	setDefault(&c.CommitInterval, 100*time.Millisecond)
	setDefault(&c.CommitBytes, 4<<20)
	setDefault(&c.CheckpointInterval, 30*time.Second)
	setDefault(&c.OverlayBytes, 256<<20)
	setDefault(&c.HeldUpAfter, 30*time.Second)
	setDefault(&c.MaxAhead, time.Hour)
	setDefault(&c.MaxRows, 100_000)
	setDefault(&c.MaxPoints, 10_000)
	setDefault(&c.Standbys, 1)
	setDefault(&c.AcceptableLag, 10_000)
	setDefault(&c.ReadyLag, 10_000)
	setDefault(&c.WarmUps, 2)
	if c.Replication == 0 {
		c.Replication = -1
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.HeartbeatInterval*3 > c.SessionTimeout {
		return fmt.Errorf("heartbeat interval %s is over a third of the session timeout %s", c.HeartbeatInterval, c.SessionTimeout)
	}
	return nil
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
