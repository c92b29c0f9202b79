package broker

import (
	"context"
	"time"
)

// queued is a batch. What is produced while it waits behind another joins it, so
// that a slow broker is sent larger batches, not more of them.
type queued struct {
	encoded                // by the first sending; nothing joins from then on
	records  *BatchBuilder // nil: encoded
	size     int           // bytes that it counts for
	fates    []fate
	deadline time.Time
	sealed   bool // it is being sent, or was
}

// fate is what is to be called for the records of one Produce.
type fate struct {
	at   int64 // place of the first among the batch's records
	done func(base int64, err error)
	from *Sender // nil: whose order does not matter
}

// Sender is one of those who share a producer, to whom order matters: once a batch
// of its was given up, nothing more of it is taken, for that would lie behind a
// gap. Safe for concurrent use.
type Sender struct {
	p    *Producer
	gone bool // guarded by Producer.mu
}

// NewSender returns a sender. It needs no end.
func (p *Producer) NewSender() *Sender { return &Sender{p: p} }

// Produce is Producer.Produce, until a batch was given up: from then on it returns
// ErrGaveUp and done is not called.
func (s *Sender) Produce(ctx context.Context, tp TopicPartition, records *BatchBuilder, done func(base int64, err error)) error {
	return s.p.produce(ctx, tp, records, fate{done: done, from: s})
}

// mergeLimit bounds a batch that others join, in bytes before compression.
const mergeLimit = 256 << 10

// join takes further records in; false when they must go by themselves.
func (b *queued) join(records *BatchBuilder, f fate) bool {
	if b.sealed || b.records.codec != records.codec || b.size+records.Size() > mergeLimit {
		return false
	}
	f.at = int64(b.records.Len())
	b.fates = append(b.fates, f)
	b.records.extend(records)
	b.size += records.Size()
	return true
}

// end tells everyone who has records in the batch.
func (b *queued) end(base int64, err error) {
	for _, f := range b.fates {
		if base < 0 {
			f.done(-1, err)
		} else {
			f.done(base+f.at, err)
		}
	}
}
