package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// acks collects what done is called with.
type acks struct {
	mu    sync.Mutex
	bases []int64
	errs  []error
}

func (a *acks) done(base int64, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.errs = append(a.errs, err)
		return
	}
	a.bases = append(a.bases, base)
}

func (a *acks) counts() (acked, failed int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.bases), len(a.errs)
}

func (a *acks) wait(t testing.TB, acked, failed int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d acks and %d failures", acked, failed), func() bool {
		x, y := a.counts()
		return x == acked && y == failed
	})
}

func TestProducerLosesAnswersWithoutDuplicates(t *testing.T) {
	fake, c, net := lossyCluster(t)
	createTopic(t, c, "a", 3)
	p := c.NewProducer(ProducerConfig{Logger: testLogger(t)})
	background(t, p.Run)
	const each = 30
	var a acks
	var want [3][]string
	for i := range each {
		if i%5 == 0 {
			net.loseNext(protocol.Produce, 1)
		}
		if i%7 == 0 {
			if err := fake.MoveTopicPartition("a", 0, int32(i%3)); err != nil {
				t.Fatal(err)
			}
		}
		for part := range want {
			v := fmt.Sprint(i)
			want[part] = append(want[part], v)
			if err := p.Produce(within(t), TopicPartition{"a", int32(part)}, values(LZ4, v), a.done); err != nil {
				t.Fatal(err)
			}
		}
		if i%3 == 0 {
			a.wait(t, 3*(i+1), 0)
		}
	}
	a.wait(t, 3*each, 0)
	if net.losses() < 3 {
		t.Errorf("only %d answers were lost", net.losses())
	}
	for part, list := range want {
		r, _ := read(t, c, ReadCommitted, TopicPartition{"a", int32(part)}, 0)
		r.want(t, each, fmt.Sprint(list))
	}
}

func TestProducerGivesUpOnAPartitionAlone(t *testing.T) {
	for _, code := range []*kerr.Error{kerr.NotEnoughReplicas, kerr.OutOfOrderSequenceNumber, kerr.UnknownProducerID, kerr.InvalidProducerEpoch} {
		t.Run(code.Message, func(t *testing.T) {
			fake, c := cluster(t)
			createTopic(t, c, "a", 2)
			p := c.NewProducer(ProducerConfig{DeliveryTimeout: 300 * time.Millisecond})
			background(t, p.Run)
			var bad, good acks
			h := fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "a", Partitions: []int32{0}, Err: code, Count: -1})
			for i := range 3 {
				for part, a := range []*acks{&bad, &good} {
					if err := p.Produce(within(t), TopicPartition{"a", int32(part)}, values(LZ4, fmt.Sprint(i)), a.done); err != nil {
						t.Fatal(err)
					}
				}
			}
			bad.wait(t, 0, 3)
			good.wait(t, 3, 0)
			for _, err := range bad.errs {
				if !errors.Is(err, ErrGaveUp) {
					t.Errorf("got %v, want ErrGaveUp", err)
				}
			}
			h.Remove()
			for part, a := range []*acks{&bad, &good} { // with the new producer id
				if err := p.Produce(within(t), TopicPartition{"a", int32(part)}, values(LZ4, "again"), a.done); err != nil {
					t.Fatal(err)
				}
			}
			bad.wait(t, 1, 3)
			good.wait(t, 4, 0)
			r, _ := read(t, c, ReadCommitted, TopicPartition{"a", 1}, 0)
			r.want(t, 4, "[0 1 2 again]")
		})
	}
}

func TestProducerQueueIsBoundedAndClosed(t *testing.T) {
	fake, c := cluster(t)
	createTopic(t, c, "a", 1)
	tp := TopicPartition{"a", 0}
	p := c.NewProducer(ProducerConfig{QueueBytes: 400, Linger: time.Millisecond})
	stop := background(t, p.Run)
	h := fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "a", Err: kerr.NotEnoughReplicas, Count: -1})
	var a acks
	queued := 0
	ctx, cancel := context.WithTimeout(within(t), 100*time.Millisecond)
	defer cancel()
	var err error
	for err == nil && queued < 100 {
		if err = p.Produce(ctx, tp, values(None, "x"), a.done); err == nil {
			queued++
		}
	}
	if !errors.Is(err, context.DeadlineExceeded) || queued == 0 || queued > 6 {
		t.Fatalf("queued %d, then %v", queued, err)
	}
	h.Remove()
	a.wait(t, queued, 0)
	fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "a", Err: kerr.NotEnoughReplicas, Count: -1})
	if err := p.Produce(within(t), tp, values(None, "left"), a.done); err != nil {
		t.Fatal(err)
	}
	stop()
	a.wait(t, queued, 1)
	if !errors.Is(a.errs[0], ErrClosed) {
		t.Errorf("got %v, want ErrClosed", a.errs[0])
	}
	if err := p.Produce(within(t), tp, values(None, "late"), a.done); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// What is produced while a broker takes its time goes together, each part told
// where it is.
func TestProducerSendsWhatWaitsTogether(t *testing.T) {
	fake, c := cluster(t)
	createTopic(t, c, "a", 1)
	p := c.NewProducer(ProducerConfig{Logger: testLogger(t)})
	var requests atomic.Int32
	fake.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		requests.Add(1)
		time.Sleep(20 * time.Millisecond)
		return nil, nil, false
	})
	background(t, p.Run)
	tp := TopicPartition{Topic: "a"}
	const parts = 200
	var mu sync.Mutex
	bases := make([]int64, parts)
	var a acks
	for i := range parts {
		b := NewBatchBuilder(LZ4)
		for j := range 3 {
			b.Append(int64(i), nil, fmt.Append(nil, i, " ", j), nil)
		}
		err := p.Produce(t.Context(), tp, b, func(base int64, err error) {
			mu.Lock()
			bases[i] = base
			mu.Unlock()
			a.done(base, err)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	a.wait(t, parts, 0)
	if n := requests.Load(); n > parts/10 {
		t.Errorf("%d requests for %d parts", n, parts)
	}
	for i, base := range bases {
		if base != int64(3*i) {
			t.Fatalf("part %d is at offset %d, want %d", i, base, 3*i)
		}
	}
}
