package broker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var (
	input = TopicPartition{"in", 0}
	log0  = TopicPartition{"log", 0}
	log1  = TopicPartition{"log", 1}
)

// commitOf is a commit of seq by a group without members, which writes v to log0
// and log1.
func commitOf(seq int64, v string) TxnCommit {
	return TxnCommit{
		Batches: []TargetBatch{{log0, values(LZ4, v)}, {log1, values(LZ4, v)}, {log0, values(None, v+"'")}},
		Group:   "g", Generation: -1,
		Offsets: map[TopicPartition]OffsetCommit{input: {seq * 10, fmt.Sprint("seq ", seq)}},
	}
}

func txnTopics(t testing.TB, c *Client) {
	createTopic(t, c, "in", 1)
	createTopic(t, c, "log", 2)
}

func initTxn(t testing.TB, c *Client, id string) *Transaction {
	t.Helper()
	x := c.NewTransaction(id, 10*time.Second)
	if err := x.Init(within(t)); err != nil {
		t.Fatal(err)
	}
	return x
}

func committedSeq(t testing.TB, c *Client) string {
	t.Helper()
	got, err := c.CommittedOffsets(within(t), "g", []TopicPartition{input})
	if err != nil {
		t.Fatal(err)
	}
	return got[input].Metadata
}

func mustCommit(t testing.TB, x *Transaction, commit TxnCommit) map[TopicPartition]int64 {
	t.Helper()
	next, err := x.Commit(within(t), commit)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestCommit(t *testing.T) {
	_, c := cluster(t)
	txnTopics(t, c)
	x := c.NewTransaction("app-t_0", 10*time.Second)
	if _, err := x.Commit(within(t), commitOf(1, "a")); !errors.Is(err, ErrNeedsInit) {
		t.Errorf("commit before Init: %v", err)
	}
	if err := x.Init(within(t)); err != nil {
		t.Fatal(err)
	}
	next := mustCommit(t, x, commitOf(1, "a"))
	if next[log0] != 2 || next[log1] != 1 {
		t.Errorf("next %v", next)
	}
	next = mustCommit(t, x, commitOf(2, "b")) // after a marker in each
	if next[log0] != 5 || next[log1] != 3 {
		t.Errorf("next %v", next)
	}
	if got := committedSeq(t, c); got != "seq 2" {
		t.Errorf("committed %s", got)
	}
	r, _ := read(t, c, ReadCommitted, log0, 0)
	r.want(t, 6, "[a a' b b']")
	if _, err := x.Commit(within(t), TxnCommit{Group: "g"}); err == nil {
		t.Error("a transaction without offsets passed")
	}
	offsets := commitOf(3, "")
	offsets.Batches = nil
	mustCommit(t, x, offsets)
	if got := committedSeq(t, c); got != "seq 3" {
		t.Errorf("committed %s", got)
	}
}

func TestWrongGenerationAborts(t *testing.T) {
	_, c := cluster(t)
	txnTopics(t, c)
	x := initTxn(t, c, "app-t_0")
	mustCommit(t, x, commitOf(1, "a"))
	for name, change := range map[string]func(*TxnCommit){
		"generation": func(k *TxnCommit) { k.Generation = 9 },
		"member":     func(k *TxnCommit) { k.Generation, k.MemberID = 9, "nobody" },
	} {
		wrong := commitOf(2, "zombie")
		change(&wrong)
		if _, err := x.Commit(within(t), wrong); !errors.Is(err, ErrGeneration) || errors.Is(err, ErrInDoubt) {
			t.Fatalf("%s: %v, want ErrGeneration", name, err)
		}
	}
	mustCommit(t, x, commitOf(2, "b")) // the same transaction goes on
	committed, _ := read(t, c, ReadCommitted, log0, 0)
	committed.want(t, 12, "[a a' b b']")
	all, _ := read(t, c, ReadUncommitted, log0, 0)
	all.want(t, 12, "[a a' zombie zombie' zombie zombie' b b']")
}

func TestFence(t *testing.T) {
	_, c := cluster(t)
	txnTopics(t, c)
	old := initTxn(t, c, "app-t_0")
	mustCommit(t, old, commitOf(1, "a"))
	owner := initTxn(t, c, "app-t_0")
	if _, err := old.Commit(within(t), commitOf(2, "zombie")); !errors.Is(err, ErrInDoubt) {
		t.Errorf("fenced commit: %v, want ErrInDoubt", err)
	}
	if _, err := old.Commit(within(t), commitOf(2, "zombie")); !errors.Is(err, ErrNeedsInit) || old.Ready() {
		t.Errorf("commit in doubt: %v, want ErrNeedsInit", err)
	}
	mustCommit(t, owner, commitOf(2, "b"))
	r, _ := read(t, c, ReadCommitted, log0, 0)
	r.want(t, 6, "[a a' b b']")
}

// Whichever answer is lost, Init and the committed metadata tell what happened,
// and nothing is written twice.
func TestLostAnswersAreInDoubt(t *testing.T) {
	for _, tt := range []struct {
		key       protocol.ApiKey
		committed bool
	}{
		{protocol.AddPartitionsToTxn, false},
		{protocol.Produce, false},
		{protocol.AddOffsetsToTxn, false},
		{protocol.TxnOffsetCommit, false},
		{protocol.EndTxn, true},
	} {
		t.Run(tt.key.String(), func(t *testing.T) {
			_, c, net := lossyCluster(t)
			txnTopics(t, c)
			x := initTxn(t, c, "app-t_0")
			mustCommit(t, x, commitOf(1, "a"))
			net.loseNext(tt.key, 1)
			if _, err := x.Commit(within(t), commitOf(2, "b")); !errors.Is(err, ErrInDoubt) {
				t.Fatalf("got %v, want ErrInDoubt", err)
			}
			if _, err := x.Commit(within(t), commitOf(2, "b")); !errors.Is(err, ErrNeedsInit) {
				t.Fatalf("got %v, want ErrNeedsInit", err)
			}
			if err := x.Init(within(t)); err != nil {
				t.Fatal(err)
			}
			if got := committedSeq(t, c) == "seq 2"; got != tt.committed {
				t.Fatalf("committed: %v", got)
			} else if !got {
				mustCommit(t, x, commitOf(2, "b"))
			}
			mustCommit(t, x, commitOf(3, "c"))
			end, err := c.Offsets(within(t), []TopicPartition{log0}, LastStable)
			if err != nil {
				t.Fatal(err)
			}
			r, _ := read(t, c, ReadCommitted, log0, 0)
			r.want(t, end[log0], "[a a' b b' c c']")
		})
	}
}

func TestCoordinatorMovesInEndTxn(t *testing.T) {
	fake, c := cluster(t)
	txnTopics(t, c)
	for _, code := range []*kerr.Error{kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress, kerr.InvalidTxnState, kerr.UnknownServerError} {
		x := initTxn(t, c, "app-t_0")
		fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.EndTxn}, Err: code})
		if _, err := x.Commit(within(t), commitOf(1, "a")); !errors.Is(err, ErrInDoubt) {
			t.Errorf("%s: %v, want ErrInDoubt", code.Message, err)
		}
	}
}

// Refusals for now are retried within Commit and Init.
func TestCommitRetries(t *testing.T) {
	fake, c := cluster(t)
	txnTopics(t, c)
	x := c.NewTransaction("app-t_0", 10*time.Second)
	faults := []kfake.Fault{
		{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ConcurrentTransactions, Count: 2},
		{Keys: []kmsg.Key{kmsg.AddPartitionsToTxn}, Err: kerr.ConcurrentTransactions, Count: 2},
		{Keys: []kmsg.Key{kmsg.AddPartitionsToTxn}, Err: kerr.NotCoordinator},
		{Keys: []kmsg.Key{kmsg.Produce}, Topic: "log", Partitions: []int32{0}, Err: kerr.NotLeaderForPartition, Count: 2},
		{Keys: []kmsg.Key{kmsg.Produce}, Topic: "log", Partitions: []int32{1}, Err: kerr.NotEnoughReplicasAfterAppend},
		{Keys: []kmsg.Key{kmsg.AddOffsetsToTxn}, Err: kerr.CoordinatorLoadInProgress},
		{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Group: "g", Err: kerr.CoordinatorNotAvailable},
		{Keys: []kmsg.Key{kmsg.EndTxn}, Err: kerr.ConcurrentTransactions},
	}
	var handles []*kfake.FaultHandle
	for _, f := range faults {
		handles = append(handles, fake.Fault(f))
	}
	if err := x.Init(within(t)); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, x, commitOf(1, "a"))
	for i, h := range handles {
		if h.Hits() == 0 {
			t.Errorf("fault %d was not met", i)
		}
	}
	mustCommit(t, x, commitOf(2, "b"))
	r, _ := read(t, c, ReadCommitted, log1, 0)
	r.want(t, 4, "[a b]")
}

func TestCommitFollowsMoves(t *testing.T) {
	fake, c := cluster(t)
	txnTopics(t, c)
	x := initTxn(t, c, "app-t_0")
	want := []string{}
	for i := range 5 {
		fake.RehashCoordinators()
		if err := fake.MoveTopicPartition("log", 0, int32(i%3)); err != nil {
			t.Fatal(err)
		}
		_, err := x.Commit(within(t), commitOf(int64(i), fmt.Sprint(i)))
		if err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
		want = append(want, fmt.Sprint(i), fmt.Sprint(i, "'"))
	}
	r, _ := read(t, c, ReadCommitted, log0, 0)
	r.want(t, 15, fmt.Sprint(want))
}

// A batch that is refused for good aborts the transaction and leaves it usable;
// one that may have been written does not.
func TestRefusedBatch(t *testing.T) {
	fake, c := cluster(t)
	txnTopics(t, c)
	x := initTxn(t, c, "app-t_0")
	fault := kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "log", Partitions: []int32{1}, Err: kerr.MessageTooLarge}
	fake.Fault(fault)
	_, err := x.Commit(within(t), commitOf(1, "no"))
	if !errors.Is(err, ErrMessageTooLarge) || errors.Is(err, ErrInDoubt) {
		t.Fatalf("got %v, want ErrMessageTooLarge", err)
	}
	mustCommit(t, x, commitOf(1, "a"))
	r, _ := read(t, c, ReadCommitted, log1, 0)
	r.want(t, 3, "[a]")
	fault.Err = kerr.UnknownServerError
	fake.Fault(fault)
	if _, err := x.Commit(within(t), commitOf(2, "b")); !errors.Is(err, ErrInDoubt) {
		t.Errorf("got %v, want ErrInDoubt", err)
	}
}

// A commit whose time is up before it is decided is aborted, not left open.
func TestCommitOutOfTimeAborts(t *testing.T) {
	fake, c := cluster(t)
	txnTopics(t, c)
	x := initTxn(t, c, "app-t_0")
	h := fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.TxnOffsetCommit}, Group: "g", Err: kerr.CoordinatorLoadInProgress, Count: -1})
	ctx, cancel := context.WithTimeout(within(t), 150*time.Millisecond)
	defer cancel()
	_, err := x.Commit(ctx, commitOf(1, "no"))
	h.Remove()
	switch {
	case err == nil:
		t.Fatal("it was committed")
	case errors.Is(err, ErrInDoubt): // the time was up within a request
		if err := x.Init(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	mustCommit(t, x, commitOf(1, "a"))
	r, _ := read(t, c, ReadCommitted, log0, 0)
	eventually(t, "the second commit alone", func() bool { return r.got() == "[a a']" })
}

// A caller that stops waiting for EndTxn does not know what becomes of it, and
// leaves nothing behind that still waits.
func TestCancelledInEndTxn(t *testing.T) {
	fake, c := cluster(t)
	txnTopics(t, c)
	x := initTxn(t, c, "app-t_0")
	ctx, cancel := context.WithCancel(within(t))
	fake.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		cancel()
		return nil, nil, true // never answered
	})
	if _, err := x.Commit(ctx, commitOf(1, "a")); !errors.Is(err, ErrInDoubt) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want ErrInDoubt", err)
	}
}
