package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"go.uber.org/goleak"
)

// A fake cluster that is closed in the middle of a slept control leaves its own
// goroutine behind; none of ours may be.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/twmb/franz-go/pkg/kfake.(*Cluster).beginSleptControl"))
}

// cluster starts kfake with a client on it; both end with the test.
func cluster(t testing.TB, opts ...kfake.Opt) (*kfake.Cluster, *Client) {
	t.Helper()
	fake, err := kfake.NewCluster(append([]kfake.Opt{
		kfake.NumBrokers(3), kfake.GroupMinSessionTimeout(10 * time.Millisecond),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, fake.ListenAddrs()...)
	t.Cleanup(fake.Close)
	return fake, c
}

func client(t testing.TB, brokers ...string) *Client {
	t.Helper()
	c, err := New(Config{Brokers: brokers, RequestTimeout: 2 * time.Second, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return c
}

// testLogger logs into the test, until it ends.
func testLogger(t testing.TB) *slog.Logger {
	w := &testWriter{t: t}
	t.Cleanup(func() { w.mu.Lock(); w.t = nil; w.mu.Unlock() })
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type testWriter struct {
	mu sync.Mutex
	t  testing.TB
}

func (w *testWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.t != nil {
		w.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// background runs f until the test ends.
func background(t testing.TB, f func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func createTopic(t testing.TB, c *Client, name string, partitions int32) {
	t.Helper()
	err := c.CreateTopics(within(t), []TopicSpec{{Name: name, Partitions: partitions, Replication: -1}})
	if err != nil {
		t.Fatal(err)
	}
}

// values builds a batch of records with these values, "" being empty.
func values(codec Codec, list ...string) *BatchBuilder {
	b := NewBatchBuilder(codec)
	for _, v := range list {
		b.Append(1000, []byte("k"), []byte(v), nil)
	}
	return b
}

// write produces values through a producer of its own.
func write(t testing.TB, c *Client, tp TopicPartition, list ...string) {
	t.Helper()
	p := c.NewProducer(ProducerConfig{})
	stop := background(t, p.Run)
	defer stop()
	acked := make(chan error, 1)
	if err := p.Produce(within(t), tp, values(LZ4, list...), func(_ int64, err error) { acked <- err }); err != nil {
		t.Fatal(err)
	}
	if err := <-acked; err != nil {
		t.Fatal(err)
	}
}

// reader collects what a fetcher delivers for one partition.
type reader struct {
	mu       sync.Mutex
	values   []string
	position int64
	last     Chunk // without its records
	errs     []error
	chunks   int
}

// read fetches tp from position until the test ends or stop is called.
func read(t testing.TB, c *Client, isolation Isolation, tp TopicPartition, position int64) (*reader, func()) {
	t.Helper()
	f := c.NewFetcher(FetcherConfig{Isolation: isolation, MaxWait: 100 * time.Millisecond, Logger: testLogger(t)})
	r := &reader{position: position}
	f.Add(tp, position, func(chunk *Chunk) { r.take(f, chunk) })
	return r, background(t, f.Run)
}

func (r *reader) take(f *Fetcher, chunk *Chunk) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer chunk.Release()
	r.chunks++
	next, err := chunk.Each(func(rec *Record) error {
		r.values = append(r.values, string(rec.Value))
		return nil
	})
	r.last = Chunk{HighWatermark: chunk.HighWatermark, LastStable: chunk.LastStable, LogStart: chunk.LogStart, At: chunk.At}
	if err != nil {
		r.errs = append(r.errs, err)
		if errors.Is(err, ErrOffsetOutOfRange) {
			next = 0
		} else {
			return
		}
	}
	r.position = next
	f.Resume(chunk.TopicPartition, next)
}

func (r *reader) got() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprint(r.values)
}

func (r *reader) at(position int64) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.position == position
	}
}

// wantValues waits for the position and compares what was read.
func (r *reader) want(t testing.TB, position int64, values string) {
	t.Helper()
	eventually(t, fmt.Sprintf("position %d", position), r.at(position))
	if got := r.got(); got != values {
		t.Errorf("read %s, want %s", got, values)
	}
}
