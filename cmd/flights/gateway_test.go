package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/internal/certs"
	"github.com/streamgauge/streamgauge/internal/embedded"
	"github.com/streamgauge/streamgauge/internal/load"
	"github.com/streamgauge/streamgauge/processor/broker"
)

// process is a running instance or gateway.
type process struct {
	cmd  *exec.Cmd
	http string
	out  *output
}

// output is what a process prints, while it runs.
type output struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// begin starts a command of the program with settings.
func begin(t *testing.T, command string, settings ...string) *process {
	t.Helper()
	p := &process{http: freeAddr(t), out: &output{}}
	p.cmd = exec.Command(binary, command)
	p.cmd.Env = append(os.Environ(), "STREAMGAUGE_AUTH_MODE=off", "STREAMGAUGE_LISTEN_HTTP="+p.http, "STREAMGAUGE_KAFKA_SESSIONTIMEOUT=3s", "STREAMGAUGE_KAFKA_HEARTBEATINTERVAL=300ms")
	for _, s := range settings {
		p.cmd.Env = append(p.cmd.Env, "STREAMGAUGE_"+s)
	}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s at %s:\n%s", command, p.http, p.out)
		}
	})
	return p
}

func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill() // what was killed before is gone already
		_ = p.cmd.Wait()
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not in time", what)
		}
		<-time.After(50 * time.Millisecond)
	}
}

func (p *process) ready() bool {
	r, err := http.Get("http://" + p.http + "/readyz")
	if err != nil {
		return false
	}
	defer r.Body.Close()
	return r.StatusCode == http.StatusOK
}

// flightsOf asks for an airport's departures; −1: no answer.
func (p *process) flightsOf(origin string) int {
	r, err := http.Post("http://"+p.http+"/graphql", "application/json", strings.NewReader(fmt.Sprintf(`{"query":"{ airportTotals(origin: \"%s\") { flights } }"}`, origin)))
	if err != nil {
		return -1
	}
	defer r.Body.Close()
	var body struct {
		Data struct{ AirportTotals *struct{ Flights int } }
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil || body.Data.AirportTotals == nil {
		return -1
	}
	return body.Data.AirportTotals.Flights
}

// loadFlights makes the topics, and n departures from one airport.
func loadFlights(t *testing.T, brokers []string, n int) {
	t.Helper()
	client, err := broker.New(broker.Config{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := client.CreateTopics(ctx, []broker.TopicSpec{
		{Name: "flights", Partitions: 3, Replication: 1}, {Name: "airports", Partitions: 1, Replication: 1, Configs: map[string]string{"cleanup.policy": "compact"}},
	}); err != nil {
		t.Fatal(err)
	}
	p := client.NewProducer(broker.ProducerConfig{})
	ran := make(chan error, 1)
	running, stop := context.WithCancel(ctx)
	go func() { ran <- p.Run(running) }()
	w := load.NewWriter(p, "flights", 3)
	for i := range n {
		line := fmt.Sprintf(`{"date":"2001-01-01T10:%02d:00Z","delay":%d,"distance":100,"origin":"DFW","destination":"LAX"}`, i%60, i)
		if err := w.Write(ctx, load.Record{Partition: -1, Value: []byte(line)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	stop()
	<-ran
}

// Gateways alone, one by the group and one by seeds without any Kafka, over two
// instances and mutual TLS: they answer, survive the instance that they follow,
// and stop when told.
func TestGatewayAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("four processes")
	}
	kafka, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer kafka.Close()
	loadFlights(t, kafka.Addrs(), 30)
	ca := certs.NewAuthority(t, "ours")
	f := ca.Write(t, t.TempDir(), ca, certs.Leaf{Names: []string{"flights"}})
	secure := []string{"LISTEN_TLS_CERT=" + f.Cert, "LISTEN_TLS_KEY=" + f.Key, "LISTEN_TLS_CA=" + f.CA}
	brokers := "KAFKA_BROKERS=" + strings.Join(kafka.Addrs(), ",")
	instances := map[string]*process{}
	var grpc []string
	for _, name := range []string{"a", "b"} {
		addr := freeAddr(t)
		grpc = append(grpc, addr)
		instances[addr] = begin(t, "run", append(secure, brokers, "INSTANCE="+name, "LISTEN_GRPC="+addr, "STATE_DIR="+filepath.Join(t.TempDir(), name))...)
	}
	byGroup := begin(t, "gateway", append(secure, brokers, "INSTANCE=g")...)
	bySeeds := begin(t, "gateway", append(secure, "KAFKA_BROKERS=127.0.0.1:1", "INSTANCE=s", "GATEWAY_SEEDS="+grpc[0])...)
	plain := begin(t, "gateway", "INSTANCE=p", "GATEWAY_SEEDS="+grpc[0])
	gateways := []*process{byGroup, bySeeds}
	panel := func() string {
		r, err := http.Get("http://" + byGroup.http + "/api/instances")
		if err != nil {
			return err.Error()
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	eventually(t, "both instances are there", func() bool {
		shown := panel()
		return instances[grpc[0]].ready() && instances[grpc[1]].ready() && strings.Contains(shown, `"id":"a"`) && strings.Contains(shown, `"id":"b"`)
	})
	for _, g := range gateways {
		eventually(t, "ready", g.ready)
		eventually(t, "all flights", func() bool { return g.flightsOf("DFW") == 30 })
	}
	eventually(t, "a plain gateway is refused", func() bool {
		return strings.Contains(instances[grpc[0]].out.String(), "a peer was refused") && strings.Contains(plain.out.String(), "no instance sends routes yet")
	})
	if plain.ready() {
		t.Error("a gateway in plain text got routes over mutual TLS")
	}
	instances[grpc[0]].kill() // both may follow it: one is seeded with it alone
	for _, g := range gateways {
		eventually(t, "all flights without an instance", func() bool { return g.flightsOf("DFW") == 30 })
		if !g.ready() {
			t.Error("not ready while an instance is left")
		}
	}
	for _, g := range gateways {
		began := time.Now()
		if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := g.cmd.Wait(); err != nil || time.Since(began) > 10*time.Second {
			t.Errorf("stopped after %v: %v", time.Since(began), err)
		}
	}
}
