package broker

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
)

// encoder writes the body of one request. Flexible versions (KIP-482) use
// compact lengths and tagged fields; the same calls write either form.
type encoder struct {
	b    []byte
	flex bool
}

func (e *encoder) int8(v int8)   { e.b = append(e.b, byte(v)) }
func (e *encoder) int16(v int16) { e.b = binary.BigEndian.AppendUint16(e.b, uint16(v)) }
func (e *encoder) int32(v int32) { e.b = binary.BigEndian.AppendUint32(e.b, uint32(v)) }
func (e *encoder) int64(v int64) { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }

func (e *encoder) bool(v bool) {
	if v {
		e.int8(1)
	} else {
		e.int8(0)
	}
}

func (e *encoder) string(s string) {
	if e.flex {
		e.b = binary.AppendUvarint(e.b, uint64(len(s))+1)
	} else {
		e.int16(int16(len(s)))
	}
	e.b = append(e.b, s...)
}

// nullable writes an empty string as null.
func (e *encoder) nullable(s string) {
	switch {
	case s != "":
		e.string(s)
	case e.flex:
		e.int8(0)
	default:
		e.int16(-1)
	}
}

func (e *encoder) bytes(p []byte) {
	if e.flex {
		e.b = binary.AppendUvarint(e.b, uint64(len(p))+1)
	} else {
		e.int32(int32(len(p)))
	}
	e.b = append(e.b, p...)
}

// nullableBytes writes nil as null. It is for fixed layouts alone.
func (e *encoder) nullableBytes(p []byte) {
	if p == nil {
		e.int32(-1)
		return
	}
	e.bytes(p)
}

// array writes the length of an array; -1 is null.
func (e *encoder) array(n int) {
	if e.flex {
		e.b = binary.AppendUvarint(e.b, uint64(n+1))
	} else {
		e.int32(int32(n))
	}
}

func (e *encoder) int32s(list []int32) {
	e.array(len(list))
	for _, v := range list {
		e.int32(v)
	}
}

// end closes a structure: no tagged fields.
func (e *encoder) end() {
	if e.flex {
		e.int8(0)
	}
}

// decoder reads the body of one answer. The first fault sticks in err; from
// then on every read returns zero values, so callers check once at the end.
type decoder struct {
	b     []byte
	flex  bool
	err   error
	frame []byte // all of the answer's memory
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: answer ends within %s", ErrCorrupt, what)
	}
	d.b = nil
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail("a field")
		return nil
	}
	p := d.b[:n:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) int8() int8 {
	if p := d.take(1); p != nil {
		return int8(p[0])
	}
	return 0
}

func (d *decoder) bool() bool { return d.int8() != 0 }

func (d *decoder) int16() int16 {
	if p := d.take(2); p != nil {
		return int16(binary.BigEndian.Uint16(p))
	}
	return 0
}

func (d *decoder) int32() int32 {
	if p := d.take(4); p != nil {
		return int32(binary.BigEndian.Uint32(p))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if p := d.take(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail("a length")
		return 0
	}
	d.b = d.b[n:]
	return v
}

// length reads a length, -1 for null; width is that of the fixed form.
func (d *decoder) length(width int) int {
	switch {
	case d.flex:
		v := d.uvarint()
		if v > math.MaxInt32 {
			d.fail("a length")
			return -1
		}
		return int(v) - 1
	case width == 2:
		return int(d.int16())
	default:
		return int(d.int32())
	}
}

// string reads a string; null is the empty one.
func (d *decoder) string() string {
	n := d.length(2)
	if n < 0 {
		return ""
	}
	return string(d.take(n))
}

// bytes reads bytes that share the answer's memory; null is nil.
func (d *decoder) bytes() []byte {
	n := d.length(4)
	if n < 0 {
		return nil
	}
	return d.take(n)
}

// array reads the length of an array, 0 for null. An element takes a byte at
// least, which bounds what a hostile length can make a caller allocate.
func (d *decoder) array() int {
	n := d.length(4)
	if n > len(d.b) {
		d.fail("an array")
		return 0
	}
	return max(n, 0)
}

// items iterates over the elements of an array; the body reads one. It ends early
// when a read failed, so that a length that lies costs nothing.
func (d *decoder) items() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range d.array() {
			if d.err != nil || !yield(i) {
				return
			}
		}
	}
}

func (d *decoder) int32s() []int32 {
	n := d.array()
	if n == 0 {
		return nil
	}
	list := make([]int32, 0, n)
	for range n {
		list = append(list, d.int32())
	}
	return list
}

func (d *decoder) uuid() (id [16]byte) {
	copy(id[:], d.take(16))
	return id
}

// end closes a structure and skips its tagged fields.
func (d *decoder) end() {
	if !d.flex {
		return
	}
	for n := d.uvarint(); n > 0 && d.err == nil; n-- {
		d.uvarint()
		size := d.uvarint()
		if size > uint64(len(d.b)) {
			d.fail("a tagged field")
			return
		}
		d.take(int(size))
	}
}
