package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/internal/embedded"
	"github.com/streamgauge/streamgauge/internal/load"
	"github.com/streamgauge/streamgauge/processor/broker"
)

// kafkaEnv names a real Kafka to test over.
const kafkaEnv = "STREAMGAUGE_TEST_KAFKA"

// kafka is the brokers' addresses: a real Kafka's, or an embedded broker's.
func kafka(t *testing.T) []string {
	t.Helper()
	if s := os.Getenv(kafkaEnv); s != "" {
		return strings.Split(s, ",")
	}
	b, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b.Addrs()
}

// build builds the example application.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "flights")
	if out, err := exec.Command("go", "build", "-o", bin, "../../cmd/flights").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// process is one instance.
type process struct {
	t    *testing.T
	bin  string
	env  []string
	http string

	mu  sync.Mutex // guards the following
	cmd *exec.Cmd
	out bytes.Buffer
}

func newProcess(t *testing.T, bin, app, name string, brokers []string) *process {
	t.Helper()
	p := &process{t: t, bin: bin, http: freeAddr(t)}
	p.env = append(os.Environ(),
		"STREAMGAUGE_APP="+app, "STREAMGAUGE_INSTANCE="+name, "STREAMGAUGE_KAFKA_BROKERS="+strings.Join(brokers, ","),
		"STREAMGAUGE_LISTEN_HTTP="+p.http, "STREAMGAUGE_LISTEN_GRPC="+freeAddr(t), "STREAMGAUGE_STATE_DIR="+t.TempDir(),
		"STREAMGAUGE_AUTH_MODE=off", "STREAMGAUGE_KAFKA_SESSIONTIMEOUT=3s", "STREAMGAUGE_KAFKA_HEARTBEATINTERVAL=500ms",
		"STREAMGAUGE_LIMITS_ANONYMOUSRATE=10000",
	)
	t.Cleanup(p.kill)
	return p
}

func (p *process) start() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = exec.Command(p.bin, "run")
	p.cmd.Env = p.env
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	// One that has ended by itself is judged by what it wrote.
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	p.cmd = nil
}

// ask runs a query; "" when there is no answer.
func (p *process) ask(query string) string {
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		p.t.Fatal(err)
	}
	resp, err := (&http.Client{Timeout: 8 * time.Second}).Post("http://"+p.http+"/graphql", "application/json", bytes.NewReader(body))
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return ""
	}
	return string(b)
}

// ready says what /readyz does.
func (p *process) ready() bool {
	resp, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + p.http + "/readyz")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
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

// feed is a topic being written.
type feed struct {
	t      *testing.T
	client *broker.Client
	writer *load.Writer
	stop   func()
}

func newFeed(t *testing.T, brokers []string, topic string) *feed {
	t.Helper()
	client, err := broker.New(broker.Config{Brokers: brokers})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := client.CreateTopics(ctx, []broker.TopicSpec{{Name: topic, Partitions: 6, Replication: -1}}); err != nil {
		t.Fatal(err)
	}
	p := client.NewProducer(broker.ProducerConfig{})
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	f := &feed{t: t, client: client, writer: load.NewWriter(p, topic, 6)}
	f.stop = func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	return f
}

func (f *feed) write(key string, lines []string) {
	f.t.Helper()
	for _, line := range lines {
		r := load.Record{Partition: -1, Value: []byte(line)}
		if key != "" {
			k, err := load.KeyOf(r.Value, key)
			if err != nil {
				f.t.Fatal(err)
			}
			r.Key = k
		}
		if err := f.writer.Write(f.t.Context(), r); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := f.writer.Flush(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func until(t *testing.T, ok func() bool, what func() string) {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what())
		}
	}
}

func clip(s string) string {
	if len(s) > 4000 {
		return "…" + s[len(s)-4000:]
	}
	return s
}
