package broker

import (
	"fmt"
	"sync"
	"time"
)

// Isolation says which records a reader sees; the value is the wire's.
type Isolation int8

// The isolations.
const (
	ReadUncommitted Isolation = 0
	ReadCommitted   Isolation = 1
)

// Chunk is one answer for one partition: records from Start on, or none, or an
// error. It is for one goroutine at a time.
type Chunk struct {
	TopicPartition
	Start         int64     // the position asked for
	HighWatermark int64     // end offset as of At, where Sure
	LastStable    int64     // end offset for a read-committed reader as of At
	LogStart      int64     // first offset that is still there
	At            time.Time // when the broker's answer arrived
	// Sure: the end offset is no less than any that was told before. A leader just
	// elected may not know yet how far the one before had got: records that were
	// acknowledged then seem not to be there. (KIP-207)
	Sure bool
	// Err is the partition's error, typed by Error: ErrOffsetOutOfRange,
	// ErrUnknownTopic, ErrUnknownTopicID for a topic deleted and created anew,
	// or any other that retrying does not cure. There are no records then.
	Err error
	// Holes, known after Each: offsets from Start on are missing, as compaction
	// takes them out. What is read then may be torn: a record may be there and one
	// of its transaction gone.
	Holes bool

	committed bool
	aborted   []abortedTxn
	set       []byte // the record set as it came
	buffers   *bufferPool
	held      [][]byte // decompressed batches that records point into
}

// abortedTxn is an aborted transaction that overlaps an answer.
type abortedTxn struct {
	producer int64
	first    int64 // its first offset
}

// Empty tells that the chunk brings no batch, not even one to skip.
func (c *Chunk) Empty() bool { return len(c.set) == 0 }

// Size is the number of bytes the chunk holds, as they came over the wire.
func (c *Chunk) Size() int { return len(c.set) }

// Each calls fn with the data records from Start on, in order of offset. Control
// records, and with ReadCommitted those of aborted transactions, are skipped.
// next is the position after the chunk: it moves past markers, aborted records
// and offsets that compaction removed, so it reaches the end of any log. After
// an error of fn, next is that record's offset; after ErrCorrupt, where the bad
// batch begins.
func (c *Chunk) Each(fn func(*Record) error) (next int64, err error) {
	if c.Err != nil {
		return c.Start, c.Err
	}
	next = c.Start
	filter := abortFilter{pending: c.aborted, on: c.committed}
	visit := func(r *Record) error {
		if r.Offset < c.Start {
			return nil
		}
		next = r.Offset
		return fn(r)
	}
	whole := c.Start // where a log without holes goes on
	for set := c.set; len(set) > 0; {
		b, rest, ok, err := nextBatch(set)
		if err != nil {
			return next, fmt.Errorf("%v: %w", c.TopicPartition, err)
		}
		if !ok {
			break
		}
		set = rest
		skip := filter.skips(&b)
		if b.next() <= c.Start {
			continue
		}
		c.Holes = c.Holes || b.base > whole || b.count != b.lastDelta+1
		whole = b.next()
		if !skip {
			if err := c.batch(&b, visit); err != nil {
				return next, fmt.Errorf("%v: %w", c.TopicPartition, err)
			}
		}
		next = b.next()
	}
	return next, nil
}

// batch visits the records of one batch, decompressed where it must be.
func (c *Chunk) batch(b *batch, visit func(*Record) error) error {
	records := b.records
	if b.codec() != None {
		buf, err := c.buffers.decompress(b.codec(), b.records)
		if err != nil {
			return fmt.Errorf("batch at offset %d: %w", b.base, err)
		}
		c.held = append(c.held, buf)
		records = buf
	}
	return b.each(records, visit)
}

// Release gives the memory back. The chunk and its records are not to be used
// afterwards. Releasing twice does nothing.
func (c *Chunk) Release() {
	if c.buffers == nil {
		return
	}
	c.buffers.put(c.set)
	for _, b := range c.held {
		c.buffers.put(b)
	}
	c.set, c.held, c.buffers = nil, nil, nil
}

// abortFilter follows the transactions of one answer. A producer's abort begins
// at the offset the broker named and ends with its marker, or, where the marker
// was compacted away, when the producer shows a newer epoch.
type abortFilter struct {
	on      bool
	pending []abortedTxn // by first offset, not yet reached
	open    []openAbort
}

type openAbort struct {
	producer int64
	epoch    int16 // of its first batch; -1 until one was seen
}

// skips tells whether the batch holds nothing for the reader.
func (f *abortFilter) skips(b *batch) bool {
	if f.on {
		for len(f.pending) > 0 && f.pending[0].first < b.next() {
			f.open = append(f.open, openAbort{f.pending[0].producer, -1})
			f.pending = f.pending[1:]
		}
	}
	if b.control() {
		if aborted, ok := b.marker(); ok && aborted {
			f.end(b.producer.id)
		}
		return true
	}
	if !f.on || !b.transactional() {
		return false
	}
	for i := range f.open {
		o := &f.open[i]
		if o.producer != b.producer.id {
			continue
		}
		if o.epoch < 0 {
			o.epoch = b.producer.epoch
		}
		if o.epoch == b.producer.epoch {
			return true
		}
		f.end(b.producer.id)
		return false
	}
	return false
}

func (f *abortFilter) end(producer int64) {
	for i := range f.open {
		if f.open[i].producer == producer {
			f.open = append(f.open[:i], f.open[i+1:]...)
			return
		}
	}
}

// bufferPool recycles the memory of chunks. It belongs to a fetcher.
type bufferPool struct {
	buffers       sync.Pool // of *[]byte
	decompressors sync.Pool // of *decompressor
}

// maxPooled keeps rare giants from staying in the pool.
const maxPooled = 8 << 20

func (p *bufferPool) get(n int) []byte {
	if b, ok := p.buffers.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:0]
	}
	return make([]byte, 0, n)
}

func (p *bufferPool) put(b []byte) {
	if cap(b) > 0 && cap(b) <= maxPooled {
		p.buffers.Put(&b)
	}
}

func (p *bufferPool) decompress(codec Codec, src []byte) ([]byte, error) {
	d, ok := p.decompressors.Get().(*decompressor)
	if !ok {
		d = new(decompressor)
	}
	defer p.decompressors.Put(d)
	return d.decompress(p.get(4*len(src)), codec, src)
}
