package broker

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestPingNamesAddressAndReason(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	err = client(t, address).Ping(within(t))
	want := "cannot reach Kafka at " + address + ": connection refused"
	if err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestPingBadCredentials(t *testing.T) {
	fake, good := cluster(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "me", "right"))
	if err := good.Ping(within(t)); err == nil {
		t.Error("a client without credentials got in")
	}
	for password, ok := range map[string]bool{"right": true, "wrong": false} {
		c, err := New(Config{Brokers: fake.ListenAddrs(), SASL: plain.Mechanism{Username: "me", Password: password}})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Ping(within(t))
		if ok != (err == nil) || !ok && !strings.Contains(err.Error(), "authentication failed") {
			t.Errorf("password %s: %v", password, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestPingSilentListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := client(t, l.Addr().String()).Ping(ctx); err == nil {
		t.Error("a listener that says nothing passed for Kafka")
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("took %v", d)
	}
}

func TestNewRefusesBadBrokers(t *testing.T) {
	for _, brokers := range [][]string{nil, {"localhost"}} {
		if _, err := New(Config{Brokers: brokers}); err == nil {
			t.Errorf("%q: no error", brokers)
		}
	}
}

func TestTopics(t *testing.T) {
	fake, c := cluster(t)
	ctx := within(t)
	spec := TopicSpec{Name: "a", Partitions: 4, Replication: -1, Configs: map[string]string{"cleanup.policy": "compact"}}
	for range 2 { // a topic that exists is fine
		if err := c.CreateTopics(ctx, []TopicSpec{spec}); err != nil {
			t.Fatal(err)
		}
	}
	m, err := c.Metadata(ctx, "a", "none")
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Topics["a"]; len(got.Partitions) != 4 || got.Err != nil || got.ID == [16]byte{} {
		t.Errorf("topic a: %+v", got)
	}
	if got := m.Topics["none"].Err; !errors.Is(got, ErrUnknownTopic) {
		t.Errorf("topic none: %v, want ErrUnknownTopic", got)
	}
	if len(m.Brokers) != 3 || m.ID == "" {
		t.Errorf("cluster: %+v", m)
	}
	if err := c.CreateTopics(ctx, []TopicSpec{{Name: "default", Partitions: -1, Replication: -1}}); err != nil {
		t.Errorf("with the broker's default partitions: %v", err)
	}
	if err := c.DeleteTopics(ctx, "default"); err != nil {
		t.Fatal(err)
	}
	configs, err := c.TopicConfigs(ctx, "a")
	if err != nil || configs["a"]["cleanup.policy"] != "compact" {
		t.Errorf("configs %v, %v", configs, err)
	}
	if all, err := c.Metadata(ctx); err != nil || len(all.Topics) != 1 {
		t.Errorf("all topics: %v, %v: was one created by asking?", all.Topics, err)
	}
	if err := c.DeleteTopics(ctx, "a", "none"); err != nil {
		t.Fatal(err)
	}
	if m, err = c.Metadata(ctx, "a"); err != nil || !errors.Is(m.Topics["a"].Err, ErrUnknownTopic) {
		t.Errorf("after deletion: %v, %v", m.Topics["a"], err)
	}
	fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.CreateTopics}, Topic: "refused", Err: kerr.PolicyViolation})
	bad := TopicSpec{Name: "refused", Partitions: 1, Replication: -1}
	if err := c.CreateTopics(ctx, []TopicSpec{bad}); !errors.Is(err, Error(44)) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("refused topic: %v", err)
	}
}

func TestOffsetsAndDeleteRecords(t *testing.T) {
	t.Parallel()
	_, c := cluster(t)
	ctx := within(t)
	createTopic(t, c, "a", 5)
	tps := make([]TopicPartition, 5)
	for p := range tps {
		tps[p] = TopicPartition{"a", int32(p)}
		write(t, c, tps[p], strings.Split(strings.Repeat("x", p+1), "")...)
	}
	if err := c.DeleteRecords(ctx, map[TopicPartition]int64{tps[2]: 2, tps[4]: 1}); err != nil {
		t.Fatal(err)
	}
	for _, at := range []struct {
		at   OffsetAt
		want [5]int64
	}{{Earliest, [5]int64{0, 0, 2, 0, 1}}, {Latest, [5]int64{1, 2, 3, 4, 5}}, {LastStable, [5]int64{1, 2, 3, 4, 5}}} {
		got, err := c.Offsets(ctx, tps, at.at)
		if err != nil {
			t.Fatal(err)
		}
		for p, tp := range tps {
			if got[tp] != at.want[p] {
				t.Errorf("offset %d of %v: %d, want %d", at.at, tp, got[tp], at.want[p])
			}
		}
	}
	if _, err := c.Offsets(ctx, []TopicPartition{{"none", 0}}, Latest); !errors.Is(err, ErrUnknownTopic) {
		t.Errorf("offsets of no topic: %v", err)
	}
}

func TestOffsetsAsksEachLeaderOnce(t *testing.T) {
	fake, c := cluster(t)
	createTopic(t, c, "a", 30)
	asked := 0
	fake.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
		asked++
		return nil, nil, false
	})
	tps := make([]TopicPartition, 30)
	for p := range tps {
		tps[p] = TopicPartition{"a", int32(p)}
	}
	if _, err := c.Offsets(within(t), tps, Latest); err != nil {
		t.Fatal(err)
	}
	if asked > 3 {
		t.Errorf("%d requests for 3 leaders", asked)
	}
}

func TestCommittedOffsets(t *testing.T) {
	fake, c := cluster(t)
	ctx := within(t)
	createTopic(t, c, "a", 2)
	commit := GroupCommit{Group: "g", Generation: -1, Offsets: map[TopicPartition]OffsetCommit{{"a", 0}: {7, "seq 3"}}}
	if err := c.CommitOffsets(ctx, commit); err != nil {
		t.Fatal(err)
	}
	fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Group: "g", Err: kerr.UnstableOffsetCommit, Count: 2})
	got, err := c.CommittedOffsets(ctx, "g", []TopicPartition{{"a", 0}, {"a", 1}})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Committed{7, -1, "seq 3"}); got[TopicPartition{"a", 0}] != want {
		t.Errorf("got %+v, want %+v", got[TopicPartition{"a", 0}], want)
	}
	if got[TopicPartition{"a", 1}].Offset != -1 {
		t.Errorf("nothing committed: got %+v", got[TopicPartition{"a", 1}])
	}
	if err := c.DeleteGroup(ctx, "g"); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteGroup(ctx, "g"); !errors.Is(err, ErrGroupNotFound) {
		t.Errorf("deleting a group twice: %v", err)
	}
}

func TestDecidingPartitionCode(t *testing.T) {
	for _, tt := range []struct {
		codes []int16
		want  error
	}{
		{[]int16{0, 0}, nil},
		{[]int16{55, 3, 55}, ErrUnknownTopic},
		{[]int16{3, 55}, ErrUnknownTopic},
		{[]int16{51, 29, 3}, Error(29)},
	} {
		e := encoder{flex: true}
		e.array(1)
		e.string("a")
		e.array(len(tt.codes))
		for p, code := range tt.codes {
			e.int32(int32(p))
			e.int16(code)
			e.end()
		}
		e.end()
		e.end()
		if err := decodePartitionCodes(&decoder{b: e.b, flex: true}); !errors.Is(err, tt.want) {
			t.Errorf("%v: %v, want %v", tt.codes, err, tt.want)
		}
	}
}

func TestRetriable(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{Error(51), true},
		{ErrNotLeader, true},
		{ErrIllegalGeneration, false},
		{ErrProducerFenced, false},
		{&ConnError{Err: io.EOF}, true},
		{context.Canceled, false},
		{errors.New("anything"), false},
		{Error(9999), false},
	} {
		if got := Retriable(tt.err); got != tt.want {
			t.Errorf("Retriable(%v) = %v", tt.err, got)
		}
	}
	if got := ErrUnstableOffset.Name(); got != "UNSTABLE_OFFSET_COMMIT" {
		t.Errorf("name %s", got)
	}
	if got := Error(120).Name(); got != "TRANSACTION_ABORTABLE" {
		t.Errorf("name %s", got)
	}
}

func TestClosedClient(t *testing.T) {
	_, c := cluster(t)
	if err := c.Ping(within(t)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Ping(within(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("ping after close: %v", err)
	}
}
