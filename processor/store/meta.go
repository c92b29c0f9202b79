package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
)

// formatVersion is the version of the file's layout and of the encodings in
// this file. A Store opens its own and refuses newer ones.
const formatVersion = 1

// Names in the file.
var (
	bucketMeta   = []byte("meta")
	bucketStores = []byte("stores")
	keyVersion   = []byte("version")
	keyState     = []byte("state")
	keyCensus    = []byte("census")
	prefixEmpty  = []byte("empty/") // then the store's name
)

func emptyRowKey(store string) []byte {
	return append(slices.Clone(prefixEmpty), store...)
}

// Position is where a follower of a changelog goes on reading.
type Position struct {
	Topic string
	ID    [16]byte // the topic's id: a recreated topic has another
	Next  int64    // the next offset to read
}

// State is what a checkpoint persists beside the rows.
type State struct {
	Record    []byte     // the encoded commit record the rows end at, opaque here
	Positions []Position // of the task's changelogs
	CaughtUp  int64      // ms of wall clock when last known to be at their ends
}

func (s State) equal(o State) bool {
	return bytes.Equal(s.Record, o.Record) && slices.Equal(s.Positions, o.Positions) && s.CaughtUp == o.CaughtUp
}

func (s State) clone() State {
	s.Record = bytes.Clone(s.Record)
	s.Positions = slices.Clone(s.Positions)
	return s
}

// appendState encodes a State: the record, the positions and the time, with
// lengths before what has one.
func appendState(b []byte, s State) []byte {
	b = appendBytes(b, s.Record)
	b = binary.AppendUvarint(b, uint64(len(s.Positions)))
	for _, p := range s.Positions {
		b = appendBytes(b, []byte(p.Topic))
		b = append(b, p.ID[:]...)
		b = binary.AppendVarint(b, p.Next)
	}
	return binary.AppendVarint(b, s.CaughtUp)
}

func decodeState(b []byte) (State, error) {
	d := decoder{rest: b}
	s := State{Record: bytes.Clone(d.bytes())}
	for n := d.count(); n > 0 && d.err == nil; n-- {
		p := Position{Topic: string(d.bytes())}
		copy(p.ID[:], d.take(uint64(len(p.ID))))
		p.Next = d.varint()
		s.Positions = append(s.Positions, p)
	}
	s.CaughtUp = d.varint()
	return s, d.end()
}

// castagnoli is the polynomial that machines compute by themselves.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal appends a checksum, which bbolt has none of, and unseal takes it off.
func seal(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func unseal(b []byte) ([]byte, error) {
	n := len(b) - crc32.Size
	if n < 0 || binary.BigEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli) {
		return nil, errors.New("wrong checksum")
	}
	return b[:n], nil
}

// tally is what is known of the live rows of a bucket without reading it.
type tally struct {
	rows  int64
	bytes int64  // of keys and values
	sum   uint64 // of the rows' checksums, whatever their order
}

func (t *tally) add(key, value []byte) {
	t.rows++
	t.bytes += int64(len(key) + len(value))
	t.sum += rowSum(key, value)
}

func (t *tally) remove(key, value []byte) {
	t.rows--
	t.bytes -= int64(len(key) + len(value))
	t.sum -= rowSum(key, value)
}

func rowSum(key, value []byte) uint64 {
	k := crc32.Checksum(key, castagnoli)
	return uint64(k)<<32 | uint64(crc32.Update(k, castagnoli, value))
}

// storeCensus is the tally of each segment of a store; a store that is not
// windowed has segment 0 alone.
type storeCensus struct {
	spec     Spec
	segments map[int64]tally
}

func (c storeCensus) total() (t tally) {
	for _, s := range c.segments {
		t.rows += s.rows
		t.bytes += s.bytes
		t.sum += s.sum
	}
	return t
}

// change replaces a row's value, nil for no row.
func (c storeCensus) change(segment int64, key, before, after []byte) {
	t, known := c.segments[segment]
	if !known && after == nil {
		return
	}
	if before != nil {
		t.remove(key, before)
	}
	if after != nil {
		t.add(key, after)
	}
	c.segments[segment] = t
}

func cloneCensus(c []storeCensus) []storeCensus {
	c = slices.Clone(c)
	for i := range c {
		c[i].segments = maps.Clone(c[i].segments)
	}
	return c
}

// appendCensus encodes the tallies, segments in order.
func appendCensus(b []byte, census []storeCensus) []byte {
	b = binary.AppendUvarint(b, uint64(len(census)))
	for _, c := range census {
		b = appendBytes(b, []byte(c.spec.Name))
		b = binary.AppendVarint(b, c.spec.Segment)
		b = binary.AppendUvarint(b, uint64(len(c.segments)))
		for _, n := range slices.Sorted(maps.Keys(c.segments)) {
			b = binary.AppendVarint(b, n)
			t := c.segments[n]
			b = binary.AppendVarint(b, t.rows)
			b = binary.AppendVarint(b, t.bytes)
			b = binary.AppendUvarint(b, t.sum)
		}
	}
	return b
}

func decodeCensus(b []byte) ([]storeCensus, error) {
	d := decoder{rest: b}
	var census []storeCensus
	for n := d.count(); n > 0 && d.err == nil; n-- {
		c := storeCensus{segments: map[int64]tally{}}
		c.spec.Name = string(d.bytes())
		c.spec.Segment = d.varint()
		for m := d.count(); m > 0 && d.err == nil; m-- {
			segment := d.varint()
			c.segments[segment] = tally{rows: d.varint(), bytes: d.varint(), sum: d.uvarint()}
		}
		census = append(census, c)
	}
	return census, d.end()
}

func appendBytes(b, v []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

var errEncoding = errors.New("encoding ends early or late")

// decoder reads the encodings above and remembers the first mistake.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail() {
	d.rest, d.err = nil, errEncoding
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads a number of elements, each at least a byte long, so that no
// encoding can ask for more memory than it has bytes.
func (d *decoder) count() uint64 {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return 0
	}
	return n
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	v := d.rest[:n]
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) bytes() []byte { return d.take(d.uvarint()) }

func (d *decoder) end() error {
	if d.err == nil && len(d.rest) > 0 {
		d.fail()
	}
	return d.err
}

// checkVersion reads the format version of a file.
func checkVersion(v []byte) error {
	if len(v) != 4 {
		return fmt.Errorf("%w: no format version", ErrCorrupt)
	}
	if got := binary.BigEndian.Uint32(v); got != formatVersion {
		return fmt.Errorf("%w: %d, this program knows %d", ErrVersion, got, formatVersion)
	}
	return nil
}
