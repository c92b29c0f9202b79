package view

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"strconv"
)

// Partitioner is the rule by which a producer picks a key's partition.
type Partitioner uint8

// The partitioners in the field.
const (
	Murmur2 Partitioner = iota // the Java client's, and most others' today
	CRC32                      // librdkafka's "consistent"
	FNV1A                      // Sarama's
)

func (p Partitioner) String() string {
	return [...]string{"MURMUR2", "CRC32", "FNV1A"}[p]
}

// Of is the partition of a key among n: the broker's count, never the number
// of those assigned. n must be positive.
func (p Partitioner) Of(key []byte, n int32) int32 {
	switch p {
	case CRC32:
		return int32(crc32.ChecksumIEEE(key) % uint32(n))
	case FNV1A:
		h := fnv.New32a()
		h.Write(key)
		part := int32(h.Sum32()) % n
		if part < 0 {
			part = -part
		}
		return part
	}
	return int32(murmur2(key)&0x7fffffff) % n
}

// murmur2 is Austin Appleby's MurmurHash2, 32 bits, with the seed that Kafka's
// Java client uses.
func murmur2(key []byte) uint32 {
	const seed, m, r = 0x9747b28c, 0x5bd1e995, 24
	h := seed ^ uint32(len(key))
	for len(key) >= 4 {
		k := binary.LittleEndian.Uint32(key) * m
		k ^= k >> r
		h = h*m ^ k*m
		key = key[4:]
	}
	switch len(key) {
	case 3:
		h ^= uint32(key[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(key[1]) << 8
		fallthrough
	case 1:
		h ^= uint32(key[0])
		h *= m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}

// KeyFormat is how a producer writes a key's single column.
type KeyFormat uint8

// The key formats.
const (
	TextKey  KeyFormat = iota // UTF-8
	IntKey                    // 4 bytes big-endian
	LongKey                   // 8 bytes big-endian
	TupleKey                  // ordered tuple bytes: our own repartition of several columns
)

func (f KeyFormat) String() string {
	return [...]string{"STRING", "INT", "LONG", "tuple"}[f]
}

// AppendPartitionBytes writes the key as the producer does, for its
// partitioner. A null column of a text key has no bytes, as an empty one.
func AppendPartitionBytes(b []byte, f KeyFormat, values []Value) []byte {
	if f == TupleKey || len(values) != 1 {
		return AppendKeys(b, values)
	}
	v := values[0]
	switch f {
	case IntKey:
		return binary.BigEndian.AppendUint32(b, uint32(v.n))
	case LongKey:
		return binary.BigEndian.AppendUint64(b, uint64(v.n))
	}
	if v.kind == StringKind {
		return append(b, v.s...)
	}
	if v.kind == NullKind {
		return b
	}
	return strconv.AppendInt(b, v.n, 10)
}

// ParsePartitionBytes reads a producer's key of the format as a value of the
// type.
func ParsePartitionBytes(b []byte, f KeyFormat, t Type) (Value, error) {
	switch f {
	case IntKey:
		if len(b) != 4 {
			return Null, fmt.Errorf("key of %d bytes where an INT (4 bytes) is due", len(b))
		}
		return Convert(OfInt(int64(int32(binary.BigEndian.Uint32(b)))), t)
	case LongKey:
		if len(b) != 8 {
			return Null, fmt.Errorf("key of %d bytes where a LONG (8 bytes) is due", len(b))
		}
		return Convert(OfInt(int64(binary.BigEndian.Uint64(b))), t)
	}
	switch t {
	case Int:
		return ParseNumber(string(b), t)
	case Boolean:
		return ParseBool(string(b) == "true", t)
	}
	return ParseText(string(b), t)
}
