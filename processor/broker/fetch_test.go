package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// script answers every fetch of partition 0 from a log of batches, as a broker
// with this high watermark would.
func script(fake *kfake.Cluster, end int64, aborted []abortedTxn, batches ...[]byte) {
	fake.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		req := r.(*kmsg.FetchRequest)
		position := req.Topics[0].Partitions[0].FetchOffset
		p := kmsg.NewFetchResponseTopicPartition()
		p.HighWatermark, p.LastStableOffset, p.LogStartOffset = end, end, 0
		p.RecordBatches = []byte{}
		for _, b := range batches {
			h, _, _, err := nextBatch(b)
			if err != nil {
				panic(err)
			}
			if h.next() > position {
				p.RecordBatches = append(p.RecordBatches, b...)
			}
		}
		for _, a := range aborted {
			p.AbortedTransactions = append(p.AbortedTransactions, kmsg.FetchResponseTopicPartitionAbortedTransaction{ProducerID: a.producer, FirstOffset: a.first})
		}
		if len(p.RecordBatches) == 0 { // the long poll
			fake.SleepControl(func() { time.Sleep(10 * time.Millisecond) })
		}
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		topic := kmsg.NewFetchResponseTopic()
		topic.TopicID = req.Topics[0].TopicID
		topic.Partitions = []kmsg.FetchResponseTopicPartition{p}
		resp.Topics = []kmsg.FetchResponseTopic{topic}
		return resp, nil, true
	})
}

// data is a transactional batch whose offsets end at last, whatever is in it.
func data(t testing.TB, base, last int64, by producer, list ...string) []byte {
	b := encodeAt(t, values(None, list...), base)
	binary.BigEndian.PutUint32(b[atLastDelta:], uint32(last-base))
	stamp(b, by, 0, by.id >= 0)
	return b
}

func marker(t testing.TB, at int64, by producer, commit byte) []byte {
	builder := NewBatchBuilder(None)
	builder.Append(0, []byte{0, 0, 0, commit}, []byte{0, 0, 0, 0, 0, 0}, nil)
	b := encodeAt(t, builder, at)
	binary.BigEndian.PutUint16(b[atAttributes:], attrControl)
	stamp(b, by, -1, true)
	return b
}

func TestFC21PositionsReachTheEnd(t *testing.T) {
	a, b := producer{1, 0}, producer{2, 0}
	for _, tt := range []struct {
		name    string
		end     int64
		aborted []abortedTxn
		batches [][]byte
		want    string
	}{
		{"tail compacted away", 8, nil, [][]byte{
			data(t, 0, 1, a, "1", "2"), marker(t, 2, a, 1), data(t, 4, 7, producer{-1, -1}, "4"),
		}, "[1 2 4]"},
		{"aborted data and its marker at the end", 5, []abortedTxn{{2, 1}}, [][]byte{
			data(t, 0, 0, a, "1"), data(t, 1, 2, b, "no", "no"), marker(t, 3, b, 0), marker(t, 4, a, 1),
		}, "[1]"},
		{"only a marker", 1, nil, [][]byte{marker(t, 0, a, 1)}, "[]"},
		{"abort ends with a newer epoch", 4, []abortedTxn{{1, 0}}, [][]byte{
			data(t, 0, 1, a, "no", "no"), data(t, 2, 2, producer{1, 1}, "yes"), marker(t, 3, producer{1, 1}, 1),
		}, "[yes]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fake, c := cluster(t)
			createTopic(t, c, "a", 1)
			script(fake, tt.end, tt.aborted, tt.batches...)
			r, _ := read(t, c, ReadCommitted, TopicPartition{"a", 0}, 0)
			r.want(t, tt.end, tt.want)
			r.mu.Lock()
			at, lag := r.last.At, r.last.HighWatermark-r.position
			r.mu.Unlock()
			if lag != 0 {
				t.Errorf("lag %d", lag)
			}
			eventually(t, "the end as of a later time", func() bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				return r.last.At.After(at) && r.last.HighWatermark == tt.end
			})
		})
	}
}

func TestFC21EverythingExpired(t *testing.T) {
	_, c := cluster(t)
	createTopic(t, c, "a", 1)
	tp := TopicPartition{"a", 0}
	write(t, c, tp, "1", "2", "3")
	if err := c.DeleteRecords(within(t), map[TopicPartition]int64{tp: 3}); err != nil {
		t.Fatal(err)
	}
	start, err := c.Offsets(within(t), []TopicPartition{tp}, Earliest)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := read(t, c, ReadCommitted, tp, start[tp])
	eventually(t, "the end", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.last.HighWatermark == 3 && r.last.LogStart == 3 && r.position == 3
	})
}

func TestEmptyIsNotNull(t *testing.T) {
	_, c := cluster(t)
	createTopic(t, c, "a", 1)
	tp := TopicPartition{"a", 0}
	b := NewBatchBuilder(LZ4)
	b.Append(0, []byte{}, []byte{}, nil)
	b.Append(0, nil, nil, nil)
	p := c.NewProducer(ProducerConfig{})
	background(t, p.Run)
	if err := p.Produce(within(t), tp, b, func(int64, error) {}); err != nil {
		t.Fatal(err)
	}
	f := c.NewFetcher(FetcherConfig{})
	got := make(chan string, 2)
	f.Add(tp, 0, func(chunk *Chunk) {
		next, err := chunk.Each(func(r *Record) error {
			got <- fmt.Sprintf("%v %v", r.Key == nil, r.Value == nil)
			return nil
		})
		chunk.Release()
		if err == nil {
			f.Resume(tp, next)
		}
	})
	background(t, f.Run)
	if first, second := <-got, <-got; first != "false false" || second != "true true" {
		t.Errorf("got %s, %s", first, second)
	}
}

func TestFetchManyPartitions(t *testing.T) {
	_, c := cluster(t)
	const n = 40
	createTopic(t, c, "a", n)
	f := c.NewFetcher(FetcherConfig{Logger: testLogger(t)})
	background(t, f.Run)
	readers := make([]*reader, n)
	for p := range readers {
		readers[p] = &reader{}
		f.Add(TopicPartition{"a", int32(p)}, 0, func(chunk *Chunk) { readers[p].take(f, chunk) })
	}
	for p := range readers {
		write(t, c, TopicPartition{"a", int32(p)}, "x", fmt.Sprint(p))
	}
	for p, r := range readers {
		r.want(t, 2, fmt.Sprintf("[x %d]", p))
	}
}

// A partition that becomes ready does not wait for the long poll of others.
func TestReadyPartitionDoesNotWaitForALongPoll(t *testing.T) {
	_, c := cluster(t, kfake.NumBrokers(1))
	createTopic(t, c, "a", 2)
	busy, idle := TopicPartition{"a", 0}, TopicPartition{"a", 1}
	f := c.NewFetcher(FetcherConfig{MaxWait: 8 * time.Second})
	background(t, f.Run)
	quiet := &reader{}
	f.Add(idle, 0, func(chunk *Chunk) { quiet.take(f, chunk) })
	eventually(t, "the long poll", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		p := f.partitions[idle]
		return p.state == asked
	})
	start := time.Now()
	r := &reader{}
	f.Add(busy, 0, func(chunk *Chunk) { r.take(f, chunk) })
	for i := range 20 {
		write(t, c, busy, fmt.Sprint(i))
		eventually(t, "the record", r.at(int64(i+1)))
	}
	if d := time.Since(start); d > 4*time.Second {
		t.Errorf("20 records took %v", d)
	}
}

func TestFetchFollowsLeaders(t *testing.T) {
	fake, c := cluster(t)
	createTopic(t, c, "a", 1)
	tp := TopicPartition{"a", 0}
	r, _ := read(t, c, ReadCommitted, tp, 0)
	for i := range 6 {
		if err := fake.MoveTopicPartition("a", 0, int32(i%3)); err != nil {
			t.Fatal(err)
		}
		write(t, c, tp, fmt.Sprint(i))
		eventually(t, "the record", r.at(int64(i+1)))
	}
	r.want(t, 6, "[0 1 2 3 4 5]")
}

func TestFetchErrors(t *testing.T) {
	t.Parallel()
	_, c := cluster(t)
	createTopic(t, c, "a", 1)
	tp := TopicPartition{"a", 0}
	write(t, c, tp, "1")
	t.Run("out of range", func(t *testing.T) {
		r, _ := read(t, c, ReadCommitted, tp, 77)
		r.want(t, 1, "[1]") // the reader starts over at 0
		if len(r.errs) != 1 || !errors.Is(r.errs[0], ErrOffsetOutOfRange) {
			t.Errorf("errors %v", r.errs)
		}
	})
	firstError := func(r *reader) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.errs) == 0 {
			return nil
		}
		return r.errs[0]
	}
	t.Run("unknown and recreated topic", func(t *testing.T) {
		unknown, _ := read(t, c, ReadCommitted, TopicPartition{"none", 0}, 0)
		old, _ := read(t, c, ReadCommitted, tp, 0)
		eventually(t, "the record", old.at(1))
		if err := c.DeleteTopics(within(t), "a"); err != nil {
			t.Fatal(err)
		}
		createTopic(t, c, "a", 1)
		eventually(t, "errors", func() bool { return firstError(unknown) != nil && firstError(old) != nil })
		if err := firstError(unknown); !errors.Is(err, ErrUnknownTopic) {
			t.Errorf("unknown topic: %v", err)
		}
		if err := firstError(old); !errors.Is(err, ErrUnknownTopicID) {
			t.Errorf("recreated topic: %v", err)
		}
	})
}

func TestRemoveEndsDeliveries(t *testing.T) {
	_, c := cluster(t)
	createTopic(t, c, "a", 1)
	tp := TopicPartition{"a", 0}
	f := c.NewFetcher(FetcherConfig{MaxWait: 20 * time.Millisecond})
	background(t, f.Run)
	for range 50 {
		var mu sync.Mutex
		removed := false
		delivered := make(chan struct{}, 1)
		f.Add(tp, 0, func(chunk *Chunk) {
			mu.Lock()
			defer mu.Unlock()
			if removed {
				t.Error("delivered after Remove returned")
			}
			chunk.Release()
			f.Resume(tp, 0)
			signal(delivered)
		})
		write(t, c, tp, "x")
		<-delivered
		f.Remove(tp)
		mu.Lock()
		removed = true
		mu.Unlock()
	}
}

func TestBrokerRestart(t *testing.T) {
	dir := t.TempDir()
	fake, c := cluster(t, kfake.DataDir(dir), kfake.NumBrokers(1))
	createTopic(t, c, "a", 1)
	tp := TopicPartition{"a", 0}
	write(t, c, tp, "before")
	r, _ := read(t, c, ReadCommitted, tp, 0)
	r.want(t, 1, "[before]")
	var port int
	if _, err := fmt.Sscanf(fake.ListenAddrs()[0], "127.0.0.1:%d", &port); err != nil {
		t.Fatal(err)
	}
	p := c.NewProducer(ProducerConfig{})
	background(t, p.Run)
	fake.Close()
	acked := make(chan error, 1)
	if err := p.Produce(within(t), tp, values(None, "after"), func(_ int64, err error) { acked <- err }); err != nil {
		t.Fatal(err)
	}
	again, err := kfake.NewCluster(kfake.DataDir(dir), kfake.NumBrokers(1), kfake.Ports(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(again.Close)
	if err := <-acked; err != nil {
		t.Fatal(err)
	}
	r.want(t, 2, "[before after]")
}

// BenchmarkFetch reads a partition over loopback, decoded, through the fetcher.
func BenchmarkFetch(b *testing.B) {
	_, c := cluster(b)
	createTopic(b, c, "a", 1)
	tp := TopicPartition{"a", 0}
	p := c.NewProducer(ProducerConfig{})
	background(b, p.Run)
	const batches = 200
	var a acks
	builder := NewBatchBuilder(LZ4)
	for range batches {
		builder.Reset()
		fillBench(builder)
		if err := p.Produce(within(b), tp, builder, a.done); err != nil {
			b.Fatal(err)
		}
	}
	a.wait(b, batches, 0)
	f := c.NewFetcher(FetcherConfig{})
	background(b, f.Run)
	for b.Loop() {
		done := make(chan struct{})
		f.Add(tp, 0, func(chunk *Chunk) {
			defer chunk.Release()
			next, err := chunk.Each(func(*Record) error { return nil })
			if err != nil {
				b.Error(err)
			}
			if next == batches*benchRecords {
				close(done)
				return
			}
			f.Resume(tp, next)
		})
		<-done
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batches*benchRecords), "ns/record")
}

// A leader just elected may not know how far the one before had got, and then does
// not tell its end: what its answers say of it is not to be relied on before.
func TestEndOfANewLeaderIsNotSureAtOnce(t *testing.T) {
	fake, c := cluster(t)
	createTopic(t, c, "a", 1)
	var knows atomic.Bool
	fake.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if knows.Load() {
			return nil, nil, false
		}
		resp := r.ResponseKind().(*kmsg.ListOffsetsResponse)
		p := kmsg.NewListOffsetsResponseTopicPartition()
		p.ErrorCode = 78 // OFFSET_NOT_AVAILABLE
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic, topic.Partitions = "a", []kmsg.ListOffsetsResponseTopicPartition{p}
		resp.Topics = []kmsg.ListOffsetsResponseTopic{topic}
		return resp, nil, true
	})
	f := c.NewFetcher(FetcherConfig{MaxWait: 20 * time.Millisecond})
	chunks := make(chan *Chunk, 1)
	tp := TopicPartition{Topic: "a"}
	f.Add(tp, 0, func(ch *Chunk) { chunks <- ch })
	background(t, f.Run)
	if ch := <-chunks; ch.Err != nil || ch.Sure {
		t.Errorf("error %v, sure %t", ch.Err, ch.Sure)
	}
	knows.Store(true)
	eventually(t, "the end is sure", func() bool {
		f.Resume(tp, 0)
		ch := <-chunks
		return ch.Sure
	})
}
