package broker

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// batch is a decoded batch header; records shares the input's memory.
type batch struct {
	base        int64
	lastDelta   int32
	attributes  uint16
	firstTime   int64
	maxTime     int64
	producer    producer
	sequence    int32
	count       int32
	records     []byte
	wholeLength int
}

func (b *batch) next() int64         { return b.base + int64(b.lastDelta) + 1 }
func (b *batch) codec() Codec        { return Codec(b.attributes & codecMask) }
func (b *batch) control() bool       { return b.attributes&attrControl != 0 }
func (b *batch) transactional() bool { return b.attributes&attrTransactional != 0 }

// nextBatch takes the first batch off a record set. ok is false where nothing
// but the beginning of a batch is left, which is how brokers cut at a byte
// limit. Sizes are checked before use and the checksum before the contents.
func nextBatch(p []byte) (b batch, rest []byte, ok bool, err error) {
	if len(p) < atMagic+1 {
		return b, nil, false, nil
	}
	be := binary.BigEndian
	b.base = int64(be.Uint64(p))
	if p[atMagic] != 2 {
		return b, nil, false, fmt.Errorf("%w: record batch at offset %d has format %d, want 2", ErrCorrupt, b.base, p[atMagic])
	}
	length := int(int32(be.Uint32(p[atLength:])))
	if length < atRecords-atLeaderEpoch {
		return b, nil, false, fmt.Errorf("%w: record batch at offset %d is %d bytes long", ErrCorrupt, b.base, length)
	}
	whole := length + atLeaderEpoch
	if len(p) < whole {
		return b, nil, false, nil
	}
	q := p[:whole:whole]
	if crc32.Checksum(q[atAttributes:], castagnoli) != be.Uint32(q[atCRC:]) {
		return b, nil, false, fmt.Errorf("%w: checksum of the record batch at offset %d", ErrCorrupt, b.base)
	}
	b.attributes = be.Uint16(q[atAttributes:])
	b.lastDelta = int32(be.Uint32(q[atLastDelta:]))
	b.firstTime = int64(be.Uint64(q[atFirstTime:]))
	b.maxTime = int64(be.Uint64(q[atMaxTime:]))
	b.producer = producer{id: int64(be.Uint64(q[atProducerID:])), epoch: int16(be.Uint16(q[atEpoch:]))}
	b.sequence = int32(be.Uint32(q[atSequence:]))
	b.count = int32(be.Uint32(q[atCount:]))
	b.records = q[atRecords:]
	b.wholeLength = whole
	if b.lastDelta < 0 || b.count < 0 || b.base < 0 || b.base+int64(b.lastDelta) < b.base {
		return b, nil, false, fmt.Errorf("%w: record batch at offset %d has %d records up to +%d", ErrCorrupt, b.base, b.count, b.lastDelta)
	}
	return b, p[whole:], true, nil
}

// each decodes records, the batch's records after decompression. The record
// passed to fn is reused.
func (b *batch) each(records []byte, fn func(*Record) error) error {
	var r Record
	for range b.count {
		body, rest, ok := cutBytes(records)
		if !ok || !b.record(body, &r) {
			return fmt.Errorf("%w: records of the batch at offset %d", ErrCorrupt, b.base)
		}
		records = rest
		if err := fn(&r); err != nil {
			return err
		}
	}
	return nil
}

// record decodes one record's body into r.
func (b *batch) record(p []byte, r *Record) bool {
	if len(p) == 0 {
		return false
	}
	timeDelta, p, ok := cutVarint(p[1:]) // after the attributes
	if !ok {
		return false
	}
	offsetDelta, p, ok := cutVarint(p)
	if !ok || offsetDelta < 0 || offsetDelta > int64(b.lastDelta) {
		return false
	}
	if r.Key, p, ok = cutBytes(p); !ok {
		return false
	}
	if r.Value, p, ok = cutBytes(p); !ok {
		return false
	}
	headers, p, ok := cutVarint(p)
	if !ok || headers < 0 || headers > int64(len(p)) {
		return false
	}
	r.Offset, r.Timestamp = b.base+offsetDelta, b.firstTime+timeDelta
	if b.attributes&attrLogAppendTime != 0 {
		r.Timestamp = b.maxTime
	}
	r.headers, r.nheaders = p, int(headers)
	for range headers {
		if _, _, p, ok = cutHeader(p); !ok {
			return false
		}
	}
	return true
}

// marker tells what a control batch marks: the end of its producer's
// transaction, committed or not. Other control records are not markers.
func (b *batch) marker() (aborted, ok bool) {
	errFound := b.each(b.records, func(r *Record) error {
		if len(r.Key) >= 4 {
			kind := binary.BigEndian.Uint16(r.Key[2:])
			aborted, ok = kind == 0, kind <= 1
		}
		return nil
	})
	return aborted, ok && errFound == nil
}
