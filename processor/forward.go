package processor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/schema"
)

// forwarder sends a source task's records on to repartition topics, and bad
// ones to the dead letters, through the instance's producer. It needs no
// transaction: what is sent twice is dropped downstream, by its origin.
type forwarder struct {
	sender   *broker.Sender
	targets  []*target
	letterTo broker.TopicPartition
	flights  flights

	keys  []view.Value
	key   []byte
	value []byte
}

// target is one repartition topic.
type target struct {
	*schema.Repartition
	topic   string
	batches []*broker.BatchBuilder // by partition
	dropped prometheus.Counter
}

// add encodes a record for every repartition topic of its source. One for which
// its key does not do is reported to bad, and goes on to the others.
func (f *forwarder) add(ctx context.Context, src *schema.Source, values []view.Value, o origin, bad func(error)) error {
	for _, t := range f.targets {
		if t.Source != src {
			continue
		}
		ok, err := f.keyFor(t, values)
		if err != nil {
			bad(fmt.Errorf("key of %s: %w", t.Name, err))
			continue
		}
		if !ok {
			t.dropped.Inc()
			continue
		}
		p := view.Murmur2.Of(f.key, int32(len(t.batches)))
		f.value = appendRecord(f.value[:0], o, src.Fields, t.Carry, values)
		t.batches[p].Append(time.Now().UnixMilli(), f.key, f.value, nil)
		if t.batches[p].Size() >= maxBatch {
			if err := f.send(ctx, broker.TopicPartition{Topic: t.topic, Partition: p}, &t.batches[p]); err != nil {
				return err
			}
		}
	}
	return nil
}

// keyFor computes the Kafka key of a forwarded record into f.key.
func (f *forwarder) keyFor(t *target, values []view.Value) (bool, error) {
	f.keys = f.keys[:0]
	for i, by := range t.By {
		v, err := by(values)
		if err != nil {
			return false, err
		}
		if v.IsNull() && t.Required[i] {
			return false, nil
		}
		f.keys = append(f.keys, v)
	}
	f.key = view.AppendPartitionBytes(f.key[:0], t.Format, f.keys)
	// A key too long for any store is bad here already: it must not travel.
	return true, view.CheckKey(len(view.AppendKeys(nil, f.keys)))
}

// flush sends what is left of a chunk; progress is what is true once all of it
// is acknowledged.
func (f *forwarder) flush(ctx context.Context, progress sourceProgress) error {
	for _, t := range f.targets {
		for p := range t.batches {
			if t.batches[p].Len() == 0 {
				continue
			}
			tp := broker.TopicPartition{Topic: t.topic, Partition: int32(p)}
			if err := f.send(ctx, tp, &t.batches[p]); err != nil {
				return err
			}
		}
	}
	f.flights.close(progress)
	return nil
}

// sendLetters sends the bad records of a chunk, before its flush.
func (f *forwarder) sendLetters(ctx context.Context, batches []*broker.BatchBuilder) error {
	for i := range batches {
		if err := f.send(ctx, f.letterTo, &batches[i]); err != nil {
			return err
		}
	}
	return nil
}

// send hands a batch to the producer and puts an empty one in its place.
func (f *forwarder) send(ctx context.Context, tp broker.TopicPartition, b **broker.BatchBuilder) error {
	batch := *b
	*b = broker.NewBatchBuilder(broker.LZ4)
	done := f.flights.open()
	if err := f.sender.Produce(ctx, tp, batch, func(_ int64, err error) { done(err) }); err != nil {
		done(err)
		return fmt.Errorf("forward to %s: %w", tp, err)
	}
	return nil
}

// sourceProgress is how far a source task is, all of it acknowledged.
type sourceProgress struct {
	Next     int64
	End      int64
	Event    int64 // greatest event time below Next; noTime: none known
	CaughtUp int64 // ms: when Next had reached End; 0: never
	LastNew  int64 // ms: when records last came
}

// flights follows what was sent until it is acknowledged, in order: a flight is
// the batches of one chunk. Batches are opened and flights closed by the task's
// loop; the producer's goroutine lands them.
type flights struct {
	mu     sync.Mutex
	queue  []*flight // the last is still open
	landed sourceProgress
	err    error
	signal chan struct{} // of one; something landed or failed
}

type flight struct {
	out      int // batches not acknowledged
	closed   bool
	progress sourceProgress
}

func newFlights(start sourceProgress) flights {
	return flights{queue: []*flight{{}}, landed: start, signal: make(chan struct{}, 1)}
}

// open notes a batch about to be sent and returns what is to be called once
// with its fate.
func (f *flights) open() func(error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl := f.queue[len(f.queue)-1]
	fl.out++
	return func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		fl.out--
		if err != nil && f.err == nil {
			f.err = err
		}
		f.land()
	}
}

// close ends the flight of a chunk.
func (f *flights) close(p sourceProgress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl := f.queue[len(f.queue)-1]
	fl.closed, fl.progress = true, p
	f.queue = append(f.queue, &flight{})
	f.land()
}

func (f *flights) land() {
	for f.err == nil && f.queue[0].closed && f.queue[0].out == 0 {
		f.landed = f.queue[0].progress
		f.queue = f.queue[1:]
	}
	select {
	case f.signal <- struct{}{}:
	default:
	}
}

// state is what has landed, how many chunks have not, and the first failure.
func (f *flights) state() (landed sourceProgress, out int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.landed, len(f.queue) - 1, f.err
}
