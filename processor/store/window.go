package store

import (
	"encoding/binary"
	"math"
)

const (
	// startSize is the length of the window start at the end of a key.
	startSize = 8

	// noFloor is the floor of a store none of whose segments was dropped.
	noFloor = math.MinInt64

	signBit = 1 << 63
)

// AppendStart appends a window start, in ms since the epoch, as the keys of
// windowed stores end with it: 8 bytes big-endian with the sign bit flipped,
// so that bytes order as the numbers do, also before 1970.
func AppendStart(dst []byte, start int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(start)^signBit)
}

// Start returns the window start at the end of a windowed store's key, in ms
// since the epoch. The key must have at least 8 bytes.
func Start(key []byte) int64 {
	return int64(binary.BigEndian.Uint64(key[len(key)-startSize:]) ^ signBit)
}

// floorDiv is the quotient rounded down: Go's own rounds towards zero and
// would put -1 and 1 into one segment.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// segment returns the number of the segment that holds key; 0 for a store
// that is not windowed.
func (s Spec) segment(key []byte) int64 {
	if s.Segment == 0 {
		return 0
	}
	return floorDiv(Start(key), s.Segment)
}

// holds tells whether key can be a key of this store at all.
func (s Spec) holds(key []byte) bool {
	return len(key) <= MaxKeySize && (s.Segment == 0 || len(key) >= startSize)
}
