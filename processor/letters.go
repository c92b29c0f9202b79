package processor

import (
	"strconv"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
)

// maxBatch bounds a batch in bytes before compression, well below what a broker
// takes; one record may be larger.
const maxBatch = 512 << 10

// maxLetter bounds the key and value of a dead letter in bytes: a record that
// some other topic takes may be too large for this one.
const maxLetter = maxMessageBytes / 2

// letters are records that could not be processed, on their way to the dead
// letters in batches of bounded size. The zero value is empty. It is for one
// goroutine.
type letters struct {
	batches []*broker.BatchBuilder
	bytes   int
}

// add puts a record aside, with where it was, for what it was bad and why.
func (x *letters) add(in broker.TopicPartition, r *broker.Record, what string, reason error) {
	headers := []broker.Header{
		{Key: "topic", Value: []byte(in.Topic)},
		{Key: "partition", Value: strconv.AppendInt(nil, int64(in.Partition), 10)},
		{Key: "offset", Value: strconv.AppendInt(nil, r.Offset, 10)},
		{Key: "view", Value: []byte(what)},
		{Key: "reason", Value: []byte(clip(reason.Error(), 500))},
	}
	key, value := r.Key, r.Value
	if n := len(key) + len(value); n > maxLetter {
		key, value = nil, nil
		headers = append(headers, broker.Header{Key: "omitted", Value: strconv.AppendInt(nil, int64(n), 10)})
	}
	size := len(key) + len(value)
	b := x.last()
	if b == nil || b.Len() > 0 && b.Size()+size > maxBatch {
		b = broker.NewBatchBuilder(broker.LZ4)
		x.batches = append(x.batches, b)
	}
	b.Append(time.Now().UnixMilli(), key, value, headers)
	x.bytes += size
}

func (x *letters) last() *broker.BatchBuilder {
	if len(x.batches) == 0 {
		return nil
	}
	return x.batches[len(x.batches)-1]
}

func (x *letters) empty() bool { return len(x.batches) == 0 }

// take hands over what there is; there is nothing afterwards.
func (x *letters) take() []*broker.BatchBuilder {
	batches := x.batches
	*x = letters{}
	return batches
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}
