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
	"regexp"
	"strconv"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
)

// A batch leaves with so many records, or bytes, or so long after its first.
const (
	batchRecords = 1000
	batchBytes   = 256 << 10
	linger       = 200 * time.Millisecond
)

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

// CheckTopic says what is wrong with the name of a topic, by Kafka's rule
// (org.apache.kafka.common.internals.Topic).
func CheckTopic(name string) error {
	if !topicName.MatchString(name) || name == "." || name == ".." {
		return fmt.Errorf("%.60q is no name of a topic; allowed: letters, digits, '.', '_' and '-', up to 249", name)
	}
	return nil
}

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
	acks       sync.WaitGroup

	sending sync.Mutex // guards batches; held while one is handed over, for their order
	batches map[int32]*broker.BatchBuilder

	mu      sync.Mutex // guards the following; taken after sending
	err     error      // the first
	written int64
}

// NewWriter makes a writer of a topic with that many partitions. The producer
// must be running.
func NewWriter(p *broker.Producer, topic string, partitions int32) *Writer {
	return &Writer{producer: p, topic: topic, partitions: partitions, batches: make(map[int32]*broker.BatchBuilder)}
}

// Write takes one record; it is on its way when its batch is full, at Flush, or
// 200 ms after the first of its batch, as long as ctx lives. It fails if an
// earlier record did.
func (w *Writer) Write(ctx context.Context, r Record) error {
	if err := w.failed(); err != nil {
		return err
	}
	p := r.Partition
	switch {
	case p >= 0:
	case r.Key != nil:
		p = view.Murmur2.Of(r.Key, w.partitions)
	default:
		p = w.turn
		w.turn = (w.turn + 1) % w.partitions
	}
	w.sending.Lock()
	defer w.sending.Unlock()
	b := w.batches[p]
	if b == nil {
		b = broker.NewBatchBuilder(broker.LZ4)
		w.batches[p] = b
		time.AfterFunc(linger, func() { w.lingered(ctx, p, b) })
	}
	b.Append(time.Now().UnixMilli(), r.Key, r.Value, nil)
	if b.Len() >= batchRecords || b.Size() >= batchBytes {
		return w.send(ctx, p)
	}
	return nil
}

// lingered sends a batch that has not become full in time.
func (w *Writer) lingered(ctx context.Context, p int32, b *broker.BatchBuilder) {
	w.sending.Lock()
	defer w.sending.Unlock()
	if w.batches[p] != b {
		return
	}
	if err := w.send(ctx, p); err != nil {
		w.note(err)
	}
}

// note keeps the first error.
func (w *Writer) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

func (w *Writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return fmt.Errorf("write to topic %s: %w", w.topic, w.err)
	}
	return nil
}

// send hands over the batch of a partition; the caller holds sending.
func (w *Writer) send(ctx context.Context, p int32) error {
	b := w.batches[p]
	if b == nil || b.Len() == 0 {
		return nil
	}
	delete(w.batches, p)
	n := int64(b.Len())
	w.acks.Add(1)
	err := w.producer.Produce(ctx, broker.TopicPartition{Topic: w.topic, Partition: p}, b, func(_ int64, err error) {
		defer w.acks.Done()
		if err != nil {
			w.note(err)
			return
		}
		w.mu.Lock()
		w.written += n
		w.mu.Unlock()
	})
	if err != nil {
		w.acks.Done()
	}
	return err
}

// Flush sends what is left and waits until all is acknowledged.
func (w *Writer) Flush(ctx context.Context) error {
	if err := w.sendAll(ctx); err != nil {
		return err
	}
	w.acks.Wait() // no batch is left that could add to it meanwhile
	return w.failed()
}

func (w *Writer) sendAll(ctx context.Context) error {
	w.sending.Lock()
	defer w.sending.Unlock()
	for p := range w.batches {
		if err := w.send(ctx, p); err != nil {
			return err
		}
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
// a number as its digits. Text that is not valid Unicode is an error: decoding
// would make equal keys of different ones.
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
		if !utf8.Valid(raw) || loneSurrogate(raw) {
			return nil, fmt.Errorf("field %q is not valid Unicode", field)
		}
		return []byte(text), nil
	}
	if raw[0] == '{' || raw[0] == '[' {
		return nil, fmt.Errorf("field %q is no text or number", field)
	}
	return raw, nil
}

// loneSurrogate says whether a JSON text has half of a surrogate pair in its
// \u escapes.
func loneSurrogate(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // what is escaped
		if raw[i] != 'u' || !utf16.IsSurrogate(hex4(raw[i+1:])) {
			continue
		}
		rest := raw[i+5:]
		if !bytes.HasPrefix(rest, []byte(`\u`)) || utf16.DecodeRune(hex4(raw[i+1:]), hex4(rest[2:])) == utf8.RuneError {
			return true
		}
		i += 10 // the other half, too
	}
	return false
}

// hex4 reads four digits of text that is valid JSON.
func hex4(b []byte) rune {
	n, _ := strconv.ParseUint(string(b[:4]), 16, 32)
	return rune(n)
}
