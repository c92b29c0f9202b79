package broker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Everything works in virtual time, with Kafka's own time scales, twice in one
// process: nothing is shared between bubbles, and every goroutine ends.
func TestVirtualTime(t *testing.T) {
	for range 2 {
		synctest.Test(t, virtualTime)
	}
}

func virtualTime(t *testing.T) {
	var network kfake.VirtualNetwork
	fake, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.Ports(9092, 9093), kfake.ListenFn(network.Listen))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	connect := func() *Client {
		c, err := New(Config{Brokers: []string{"127.0.0.1:9092"}, Dial: network.DialContext})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c, other := connect(), connect()
	defer func() {
		if err := errors.Join(c.Close(), other.Close()); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	run := func(ctx context.Context, f func(context.Context) error) {
		running.Go(func() {
			if err := f(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	if err := c.CreateTopics(ctx, []TopicSpec{{Name: "in", Partitions: inputPartitions, Replication: -1}, {Name: "log", Partitions: 2, Replication: -1}}); err != nil {
		t.Fatal(err)
	}
	patient := func(cfg *MemberConfig) {
		cfg.SessionTimeout, cfg.HeartbeatInterval, cfg.RebalanceTimeout = 10*time.Second, 3*time.Second, 30*time.Second
	}
	a, b := newJoiner(t, c, "a", patient), newJoiner(t, other, "b", patient)
	run(ctx, a.Run)
	bctx, leave := context.WithCancel(ctx)
	run(bctx, b.Run)
	time.Sleep(20 * time.Second)
	if got := a.last() + ", " + b.last(); got != "[0 2] for a, [1 3] for b" {
		t.Errorf("assigned %s", got)
	}
	leave()
	time.Sleep(20 * time.Second)
	if got := a.last(); got != "[0 1 2 3] for a" {
		t.Errorf("assigned %s", got)
	}

	f := c.NewFetcher(FetcherConfig{Isolation: ReadCommitted})
	r := &reader{}
	f.Add(log0, 0, func(chunk *Chunk) { r.take(f, chunk) })
	run(ctx, f.Run)
	x := c.NewTransaction("app-t_0", 10*time.Second)
	if err := x.Init(ctx); err != nil {
		t.Fatal(err)
	}
	s := a.Status()
	for seq, v := range []string{"1", "2"} {
		commit := commitOf(int64(seq), v)
		for i := range commit.Batches {
			commit.Batches[i].Records.codec = Zstd
		}
		commit.MemberID, commit.Generation = s.MemberID, s.Generation
		if _, err := x.Commit(ctx, commit); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(5 * time.Second)
	if got := r.got(); got != "[1 1' 2 2']" || !r.at(6)() {
		t.Errorf("read %s up to %d", got, r.position)
	}
	if lag := time.Since(r.last.At); lag > 2*time.Second {
		t.Errorf("the end is known as of %v ago", lag)
	}
}
