package streamgauge

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/read/rpc"
	"github.com/streamgauge/streamgauge/view/schema"
	"google.golang.org/grpc"
)

// listening is as much of an instance as answers Hello.
func listening(t *testing.T, name string) (*instance, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	in := &instance{
		edge: &edge{cfg: DefaultConfig("app"), log: slog.New(slog.NewTextHandler(&log, nil))},
		rpc:  l, greeting: rpc.Greeting{Instance: name, Process: uint64(len(name))},
	}
	in.cfg.Instance = name
	s := grpc.NewServer(rpc.ServerOptions()...)
	rpc.Register(s, rpc.Service{Greeting: in.greeting})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // before it began
			t.Error(err)
		}
	})
	return in, &log
}

func TestReach(t *testing.T) {
	a, log := listening(t, "a")
	b, _ := listening(t, "bb")
	if err := a.reachAtStart(t.Context()); err != nil || log.Len() > 0 {
		t.Errorf("at its own address: %v, %s", err, log)
	}
	a.cfg.Listen.Advertise = b.rpc.Addr().String()
	var other *otherError
	if err := a.reachAtStart(t.Context()); !errors.As(err, &other) || !strings.Contains(err.Error(), "another process answers (instance bb): give each instance an address of its own") {
		t.Errorf("at another's address: %v", err)
	}
	a.cfg.Listen.Advertise = "127.0.0.1:1"
	if err := a.reachAtStart(t.Context()); err != nil || !strings.Contains(log.String(), "does not reach itself") || !strings.Contains(log.String(), "addr=127.0.0.1:1") {
		t.Errorf("nowhere: %v, %s", err, log)
	}
}

func TestAddressesThatOthersCannotReach(t *testing.T) {
	for _, c := range []struct {
		name, broker, advertise string
		warned                  bool
	}{
		{"all on this machine", "127.0.0.1:9092", "", false},
		{"brokers elsewhere", "kafka:9092", "", true},
		{"an address of any", "kafka:9092", "0.0.0.0:9090", true},
		{"a name of loopback", "kafka:9092", "localhost:9090", true},
		{"an address of others", "kafka:9092", "10.0.0.1:9090", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, log := listening(t, "a")
			in.cfg.Kafka.Brokers, in.cfg.Listen.Advertise = []string{c.broker}, c.advertise
			in.warnOfAddresses()
			if got := strings.Contains(log.String(), "cannot reach this one"); got != c.warned {
				t.Errorf("warned: %v; log %s", got, log)
			}
		})
	}
}

func TestSharing(t *testing.T) {
	routes := &read.Routes{Instances: map[string]read.Peer{"a": {Addr: "x:1"}, "b": {Addr: "y:1"}, "c": {Addr: "x:1"}}}
	if got := sharing(routes, "a", "x:1"); got != "c" {
		t.Errorf("got %q", got)
	}
	if got := sharing(routes, "b", "y:1"); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestNeedsOfAnApplication(t *testing.T) {
	s, err := schema.Load("schema", []byte(smallSchema))
	if err != nil {
		t.Fatal(err)
	}
	n := needs("small", s.Topology)
	for _, c := range []struct {
		topic string
		op    broker.Operation
	}{
		{"events", broker.OpRead}, {"small-name-totals-changelog", broker.OpWrite},
		{"small-events-by-name-repartition", broker.OpDelete}, {"small-dead-letters", broker.OpWrite},
	} {
		found := false
		for _, op := range n.Topics[c.topic] {
			found = found || op == c.op
		}
		if !found {
			t.Errorf("%s on %s is not asked for: %v", c.op, c.topic, n.Topics)
		}
	}
	if n.Group != "small" || len(n.Transactionals) != len(s.Topology.Subtopologies) {
		t.Errorf("got %+v", n)
	}
}

// What does not end by itself is cut, within the bound.
func TestStopIsBounded(t *testing.T) {
	e, log := testEdge(t)
	cut := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := e.run(ctx, beside{
		parts:   []func(context.Context) error{func(context.Context) error { <-cut; return nil }},
		drained: func() {}, cut: func() { close(cut) },
	})
	if err == nil || !strings.Contains(err.Error(), "not everything had ended 200ms after the stop (stopTimeout), and was cut") || !strings.Contains(log.String(), "the rest is cut") {
		t.Errorf("got %v, %s", err, log)
	}
	e, _ = testEdge(t)
	err = e.run(ctx, beside{
		parts:   []func(context.Context) error{func(ctx context.Context) error { <-ctx.Done(); return nil }},
		drained: func() {}, cut: func() { t.Error("cut what had ended") },
	})
	if err != nil {
		t.Error(err)
	}
}
