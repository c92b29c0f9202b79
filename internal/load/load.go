// Package load writes JSON lines into a topic: the toolbox's load command and
// the demo use it. A line is a record's value as it stands.
package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
)

// Batch limits: as many records, or bytes, or so long after the first.
const (
	batchRecords = 1000
	batchBytes   = 256 << 10
)

// Record is one record to be written.
type Record struct {
	Partition int32 // −1: by the key, or in turn without one
	Key       []byte
	Value     []byte
}

// Writer writes records to one topic, in order within a partition. It is for
// one goroutine.
type Writer struct {
	producer   *broker.Producer
	topic      string
	partitions int32
	turn       int32
	batches    map[int32]*broker.BatchBuilder
	acks       sync.WaitGroup

	mu      sync.Mutex // guards the following
	err     error
	written int64
}

// NewWriter makes a writer of a topic with that many partitions. The producer
// must be running.
func NewWriter(p *broker.Producer, topic string, partitions int32) *Writer {
	return &Writer{producer: p, topic: topic, partitions: partitions, batches: make(map[int32]*broker.BatchBuilder)}
}

// Write takes one record; it is on its way when its batch is full or at Flush.
func (w *Writer) Write(ctx context.Context, r Record) error {
	p := r.Partition
	switch {
	case p >= 0:
	case r.Key != nil:
		p = view.Murmur2.Of(r.Key, w.partitions)
	default:
		p = w.turn
		w.turn = (w.turn + 1) % w.partitions
	}
	b := w.batches[p]
	if b == nil {
		b = broker.NewBatchBuilder(broker.LZ4)
		w.batches[p] = b
	}
	b.Append(time.Now().UnixMilli(), r.Key, r.Value, nil)
	if b.Len() >= batchRecords || b.Size() >= batchBytes {
		return w.send(ctx, p)
	}
	return nil
}

func (w *Writer) send(ctx context.Context, p int32) error {
	b := w.batches[p]
	if b == nil || b.Len() == 0 {
		return nil
	}
	delete(w.batches, p)
	n := int64(b.Len())
	w.acks.Add(1)
	err := w.producer.Produce(ctx, broker.TopicPartition{Topic: w.topic, Partition: p}, b, func(_ int64, err error) {
		w.mu.Lock()
		if err == nil {
			w.written += n
		} else if w.err == nil {
			w.err = err
		}
		w.mu.Unlock()
		w.acks.Done()
	})
	if err != nil {
		w.acks.Done()
	}
	return err
}

// Flush sends what is left and waits until all is acknowledged.
func (w *Writer) Flush(ctx context.Context) error {
	for p := range w.batches {
		if err := w.send(ctx, p); err != nil {
			return err
		}
	}
	w.acks.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return fmt.Errorf("write to topic %s: %w", w.topic, w.err)
	}
	return nil
}

// Written is how many records are acknowledged.
func (w *Writer) Written() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written
}

// maxLine bounds a line, in bytes.
const maxLine = 1 << 20

// Lines calls each with every line of r that is not empty, and its number from
// 1. A line that is no JSON object is an error naming the line.
func Lines(r io.Reader, each func(n int, line []byte) error) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), maxLine)
	n := 0
	for s.Scan() {
		n++
		line := bytes.TrimSpace(s.Bytes())
		if len(line) == 0 {
			continue
		}
		if line[0] != '{' || !json.Valid(line) {
			return fmt.Errorf("line %d is no JSON object", n)
		}
		if err := each(n, line); err != nil {
			return err
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d is longer than %d bytes", n+1, maxLine)
	}
	return s.Err()
}

// KeyOf takes a member of a JSON object as a Kafka key: a text as it stands,
// a number as its digits.
func KeyOf(line []byte, field string) ([]byte, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil {
		return nil, err
	}
	raw, ok := object[field]
	if !ok || string(raw) == "null" {
		return nil, fmt.Errorf("no field %q for the key", field)
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []byte(text), nil
	}
	if raw[0] == '{' || raw[0] == '[' {
		return nil, fmt.Errorf("field %q is no text or number", field)
	}
	return raw, nil
}
