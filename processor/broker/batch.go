package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/bits"
)

// Layout of a record batch, format v2 (KIP-98), byte positions from its start:
//
//	0 base offset      8 length of what follows   12 leader epoch
//	16 magic (2)       17 CRC-32C of 21..end      21 attributes
//	23 last offset delta   27 first timestamp     35 max timestamp
//	43 producer id     51 producer epoch          53 base sequence
//	57 record count    61 records
const (
	atLength      = 8
	atLeaderEpoch = 12
	atMagic       = 16
	atCRC         = 17
	atAttributes  = 21
	atLastDelta   = 23
	atFirstTime   = 27
	atMaxTime     = 35
	atProducerID  = 43
	atEpoch       = 51
	atSequence    = 53
	atCount       = 57
	atRecords     = 61
)

// Attributes of a batch.
const (
	codecMask         = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
)

// BatchBuilder collects records for one batch, in Kafka's own form, without an
// allocation per record. The zero value compresses with None. It is for one
// goroutine; Produce and Commit leave it as it is, to be reset and filled again.
type BatchBuilder struct {
	codec          Codec
	records        []byte
	n              int32
	first, maxTime int64
}

// NewBatchBuilder returns an empty builder. LZ4 is the sensible codec: close to
// half the bytes of none at little more work.
func NewBatchBuilder(codec Codec) *BatchBuilder { return &BatchBuilder{codec: codec} }

// Len is the number of records.
func (b *BatchBuilder) Len() int { return int(b.n) }

// Size is the batch's size in bytes before compression. Brokers refuse batches
// over max.message.bytes (1 MiB by default) after compression.
func (b *BatchBuilder) Size() int { return atRecords + len(b.records) }

// Reset empties the builder and keeps its memory.
func (b *BatchBuilder) Reset() {
	b.records, b.n, b.first, b.maxTime = b.records[:0], 0, 0, 0
}

// Append copies a record into the batch. The timestamp is in milliseconds since
// the epoch and is written as it is, 0 included. A nil key or value is null.
func (b *BatchBuilder) Append(timestamp int64, key, value []byte, headers []Header) {
	if b.n == 0 {
		b.first, b.maxTime = timestamp, timestamp
	}
	b.maxTime = max(b.maxTime, timestamp)
	timeDelta := timestamp - b.first

	size := 1 + varintLen(timeDelta) + varintLen(int64(b.n)) +
		bytesLen(key) + bytesLen(value) + varintLen(int64(len(headers)))
	for _, h := range headers {
		size += varintLen(int64(len(h.Key))) + len(h.Key) + bytesLen(h.Value)
	}
	p := binary.AppendVarint(b.records, int64(size))
	p = append(p, 0) // attributes: none are defined
	p = binary.AppendVarint(p, timeDelta)
	p = binary.AppendVarint(p, int64(b.n))
	p = appendBytes(p, key)
	p = appendBytes(p, value)
	p = binary.AppendVarint(p, int64(len(headers)))
	for _, h := range headers {
		p = binary.AppendVarint(p, int64(len(h.Key)))
		p = append(p, h.Key...)
		p = appendBytes(p, h.Value)
	}
	b.records = p
	b.n++
}

// clone is a builder of its own with the same records.
func (b *BatchBuilder) clone() *BatchBuilder {
	c := *b
	c.records = append(make([]byte, 0, len(b.records)), b.records...)
	return &c
}

// extend appends the records of another builder. Of each, the deltas to the first
// of the batch are written anew.
func (b *BatchBuilder) extend(o *BatchBuilder) {
	rest := o.records
	for range o.n {
		var body []byte
		body, rest, _ = cutBytes(rest)
		timeDelta, k := binary.Varint(body[1:])
		body = body[1+k:]
		_, k = binary.Varint(body) // its place in the other
		body = body[k:]
		timestamp := o.first + timeDelta
		timeDelta = timestamp - b.first
		size := 1 + varintLen(timeDelta) + varintLen(int64(b.n)) + len(body)
		p := binary.AppendVarint(b.records, int64(size))
		p = append(p, 0)
		p = binary.AppendVarint(p, timeDelta)
		p = binary.AppendVarint(p, int64(b.n))
		b.records = append(p, body...)
		b.maxTime = max(b.maxTime, timestamp)
		b.n++
	}
}

func appendBytes(p, v []byte) []byte {
	if v == nil {
		return append(p, 1) // varint -1
	}
	return append(binary.AppendVarint(p, int64(len(v))), v...)
}

func bytesLen(v []byte) int {
	if v == nil {
		return 1
	}
	return varintLen(int64(len(v))) + len(v)
}

// varintLen is the length of v as a zigzag varint.
func varintLen(v int64) int {
	zigzag := uint64(v)<<1 ^ uint64(v>>63)
	return (bits.Len64(zigzag|1) + 6) / 7
}

var errEmptyBatch = errors.New("broker: a batch without records")

// encode appends the batch to dst, without producer: stamp adds that.
func (b *BatchBuilder) encode(dst []byte, c *compressor) ([]byte, error) {
	if b.n == 0 {
		return nil, errEmptyBatch
	}
	start := len(dst)
	dst = append(dst, make([]byte, atRecords)...)
	codec := b.codec
	if codec != None {
		compressed, err := c.compress(dst, codec, b.records)
		if err != nil {
			return nil, fmt.Errorf("compressing a batch: %w", err)
		}
		if len(compressed)-len(dst) < len(b.records) {
			dst = compressed
		} else {
			codec = None
		}
	}
	if codec == None {
		dst = append(dst, b.records...)
	}
	p := dst[start:]
	if len(p) > math.MaxInt32 {
		return nil, fmt.Errorf("broker: a batch of %d bytes", len(p))
	}
	be := binary.BigEndian
	be.PutUint32(p[atLength:], uint32(len(p)-atLeaderEpoch))
	be.PutUint32(p[atLeaderEpoch:], math.MaxUint32) // -1: the broker fills it in
	p[atMagic] = 2
	be.PutUint16(p[atAttributes:], uint16(codec))
	be.PutUint32(p[atLastDelta:], uint32(b.n-1))
	be.PutUint64(p[atFirstTime:], uint64(b.first))
	be.PutUint64(p[atMaxTime:], uint64(b.maxTime))
	be.PutUint32(p[atCount:], uint32(b.n))
	stamp(p, producer{id: -1, epoch: -1}, -1, false)
	return dst, nil
}

// producer is an identity given by InitProducerID.
type producer struct {
	id    int64
	epoch int16
}

// stamp writes who sends an encoded batch, and its checksum.
func stamp(p []byte, by producer, sequence int32, transactional bool) {
	be := binary.BigEndian
	attributes := be.Uint16(p[atAttributes:]) &^ attrTransactional
	if transactional {
		attributes |= attrTransactional
	}
	be.PutUint16(p[atAttributes:], attributes)
	be.PutUint64(p[atProducerID:], uint64(by.id))
	be.PutUint16(p[atEpoch:], uint16(by.epoch))
	be.PutUint32(p[atSequence:], uint32(sequence))
	be.PutUint32(p[atCRC:], crc32.Checksum(p[atAttributes:], castagnoli))
}

// castagnoli is the table of CRC-32C; the standard library computes it once and
// uses the processor's instruction where there is one.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// addSequence advances a base sequence by n records; it wraps to 0 after the
// largest int32, as brokers expect.
func addSequence(sequence, n int32) int32 {
	return int32((int64(sequence) + int64(n)) & math.MaxInt32)
}
