package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
)

// realTopic is a client of a real broker that nothing else uses, and a topic of the
// test's own.
func realTopic(t *testing.T, partitions int32, configs map[string]string) (*Client, string) {
	t.Helper()
	addr := os.Getenv("STREAMGAUGE_TEST_KAFKA")
	if addr == "" {
		t.Skip("needs a real Kafka: make test-kafka")
	}
	c, err := New(Config{Brokers: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	topic := fmt.Sprintf("t%d", time.Now().UnixNano())
	if err := c.CreateTopics(t.Context(), []TopicSpec{{Name: topic, Partitions: partitions, Replication: -1, Configs: configs}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.DeleteTopics(context.WithoutCancel(t.Context()), topic); err != nil && !errors.Is(err, ErrUnknownTopic) {
			t.Log(err)
		}
		c.Close()
	})
	return c, topic
}

// contextFor is a context that outlives the test's own, until it is cancelled.
func contextFor(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
}

func one(value string) *BatchBuilder {
	b := NewBatchBuilder(LZ4)
	b.Append(time.Now().UnixMilli(), []byte("k"), []byte(value), nil)
	return b
}

// joinedMember is a member alone in a group of its own.
func joinedMember(t *testing.T, c *Client, topic string) (*Member, string) {
	t.Helper()
	group := topic + "-group"
	m := c.NewMember(MemberConfig{
		Group: group, SessionTimeout: 6 * time.Second, HeartbeatInterval: time.Second,
		Metadata: func() Subscription { return Subscription{Topics: []string{topic}} },
		Balance: func(ms []GroupMember) (map[string]Assignment, error) {
			return map[string]Assignment{ms[0].ID: {Partitions: map[string][]int32{topic: {0}}}}, nil
		},
		Assigned: func(Assignment, string, int32) {}, Lost: func(error) {},
	})
	ran := make(chan error, 1)
	ctx, cancel := contextFor(t)
	go func() { ran <- m.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ran })
	for deadline := time.Now().Add(20 * time.Second); !m.Status().Joined; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("did not join")
		}
	}
	return m, group
}

// Transactions that follow each other at once meet CONCURRENT_TRANSACTIONS while
// the markers of the one before are written; an Init right after a commit too.
// What is committed is there, once, and nothing else. Invariant 3.
func TestKafkaTransactionsInARow(t *testing.T) {
	c, topic := realTopic(t, 1, nil)
	m, group := joinedMember(t, c, topic)
	tp := TopicPartition{Topic: topic}
	txn := c.NewTransaction(topic, 10*time.Second)
	if err := txn.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit := func(txn *Transaction, n int) error {
		s := m.Status()
		_, err := txn.Commit(t.Context(), TxnCommit{
			Batches: []TargetBatch{{tp, one(fmt.Sprint(n))}}, Group: group, MemberID: s.MemberID, Generation: s.Generation,
			Offsets: map[TopicPartition]OffsetCommit{tp: {Offset: int64(n), Metadata: fmt.Sprint(n)}},
		})
		return err
	}
	for n := range 50 {
		if err := commit(txn, n); err != nil {
			t.Fatal(n, err)
		}
		if n%10 == 9 {
			if err := txn.Init(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A successor fences; the predecessor is told so, whatever it tries.
	other := c.NewTransaction(topic, 10*time.Second)
	if err := other.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := commit(txn, 1000); !errors.Is(err, ErrInDoubt) {
		t.Fatalf("a fenced producer committed: %v", err)
	}
	// A wrong generation aborts, for certain.
	s := m.Status()
	_, err := other.Commit(t.Context(), TxnCommit{
		Batches: []TargetBatch{{tp, one("2000")}}, Group: group, MemberID: s.MemberID, Generation: s.Generation + 1,
		Offsets: map[TopicPartition]OffsetCommit{tp: {Offset: 2000}},
	})
	if !errors.Is(err, ErrGeneration) {
		t.Fatalf("a wrong generation: %v", err)
	}
	if err := commit(other, 50); err != nil {
		t.Fatal(err)
	}
	got := readAll(t, c, tp)
	if len(got) != 51 || got[0] != "0" || got[50] != "50" {
		t.Fatalf("%d records: %v", len(got), got)
	}
	offsets, err := c.CommittedOffsets(t.Context(), group, []TopicPartition{tp})
	if err != nil || offsets[tp].Metadata != "50" {
		t.Fatalf("%+v, %v", offsets, err)
	}
}

// readAll reads what is committed of a partition, to its end.
func readAll(t *testing.T, c *Client, tp TopicPartition) (values []string) {
	t.Helper()
	ends, err := c.Offsets(t.Context(), []TopicPartition{tp}, Latest)
	if err != nil {
		t.Fatal(err)
	}
	f := c.NewFetcher(FetcherConfig{Isolation: ReadCommitted})
	chunks := make(chan *Chunk, 1)
	f.Add(tp, 0, func(ch *Chunk) { chunks <- ch })
	done := make(chan struct{})
	ctx, cancel := contextFor(t)
	go func() { defer close(done); _ = f.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for {
		ch := <-chunks
		next, err := ch.Each(func(r *Record) error { values = append(values, string(r.Value)); return nil })
		if err != nil {
			t.Fatal(err)
		}
		ch.Release()
		if next >= ends[tp] {
			return values
		}
		f.Resume(tp, next)
	}
}

// Records that retention or DeleteRecords has taken are OFFSET_OUT_OF_RANGE, with
// the new log start to be had.
func TestKafkaTrimmedLog(t *testing.T) {
	c, topic := realTopic(t, 1, nil)
	tp := TopicPartition{Topic: topic}
	p := c.NewProducer(ProducerConfig{})
	ctx, cancel := contextFor(t)
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	for n := range 10 {
		acked := make(chan error, 1)
		if err := p.Produce(ctx, tp, one(fmt.Sprint(n)), func(_ int64, err error) { acked <- err }); err != nil {
			t.Fatal(err)
		}
		if err := <-acked; err != nil {
			t.Fatal(err)
		}
	}
	if err := c.DeleteRecords(t.Context(), map[TopicPartition]int64{tp: 7}); err != nil {
		t.Fatal(err)
	}
	f := c.NewFetcher(FetcherConfig{})
	chunks := make(chan *Chunk, 1)
	f.Add(tp, 3, func(ch *Chunk) { chunks <- ch })
	fetched := make(chan error, 1)
	go func() { fetched <- f.Run(ctx) }()
	if ch := <-chunks; !errors.Is(ch.Err, ErrOffsetOutOfRange) {
		t.Errorf("position 3 of a log that begins at 7: %v", ch.Err)
	}
	first, err := c.Offsets(t.Context(), []TopicPartition{tp}, Earliest)
	if err != nil || first[tp] != 7 {
		t.Errorf("the log begins at %d, %v", first[tp], err)
	}
	cancel()
	<-ran
	<-fetched
}
