package broker

import (
	"encoding/binary"
	"iter"
)

// Header is a header of a record to be written. A nil value is null.
type Header struct {
	Key   string
	Value []byte
}

// Record is a record that was read. Its bytes belong to the Chunk it came from
// and are valid until that is released; the Record itself is valid within the
// call it was passed to. A nil key or value is null, an empty one is not nil.
type Record struct {
	Offset     int64
	Timestamp  int64 // milliseconds since the epoch
	Key, Value []byte

	headers  []byte // undecoded, checked
	nheaders int
}

// Headers iterates over the headers in the order they were written, decoding
// them on the way. A null value is nil, an empty one is not.
func (r *Record) Headers() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		p := r.headers
		for range r.nheaders {
			var name, value []byte
			name, value, p, _ = cutHeader(p)
			if !yield(string(name), value) {
				return
			}
		}
	}
}

// Header finds a header by name without allocating; of several with the same
// name the last one counts.
func (r *Record) Header(name string) (value []byte, ok bool) {
	p := r.headers
	for range r.nheaders {
		var n, v []byte
		n, v, p, _ = cutHeader(p)
		if string(n) == name {
			value, ok = v, true
		}
	}
	return value, ok
}

// cutHeader takes one header off p.
func cutHeader(p []byte) (name, value, rest []byte, ok bool) {
	name, p, ok = cutBytes(p)
	if !ok || name == nil {
		return nil, nil, nil, false
	}
	value, p, ok = cutBytes(p)
	return name, value, p, ok
}

// cutBytes takes a varint length and as many bytes off p; length -1 is nil.
func cutBytes(p []byte) (b, rest []byte, ok bool) {
	n, p, ok := cutVarint(p)
	if !ok || n < -1 || n > int64(len(p)) {
		return nil, nil, false
	}
	if n < 0 {
		return nil, p, true
	}
	return p[:n:n], p[n:], true
}

// cutVarint takes a zigzag varint off p. Most are one byte long.
func cutVarint(p []byte) (v int64, rest []byte, ok bool) {
	if len(p) > 0 && p[0] < 0x80 {
		u := p[0]
		return int64(u>>1) ^ -int64(u&1), p[1:], true
	}
	v, n := binary.Varint(p)
	if n <= 0 {
		return 0, nil, false
	}
	return v, p[n:], true
}
