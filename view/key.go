package view

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxKey is the longest encoded store key in bytes (bbolt's limit), a window's
// start included.
const MaxKey = 32 << 10

// StartSize is the length of the window start at the end of a windowed key.
const StartSize = 8

const (
	tagNull  = 0x00
	tagValue = 0x01
	textEnd  = 0x00
	textNUL  = 0xff // after a 00 that is part of the text
)

var errTuple = errors.New("malformed key")

// ErrKeyTooLong is a key whose encoding exceeds MaxKey.
var ErrKeyTooLong = errors.New("key too long")

// Keyable says whether a type may be a key column: its encoding is ordered.
func (t Type) Keyable() bool {
	switch t {
	case String, ID, Int, Long, Boolean, DateTime, Duration:
		return true
	}
	return false
}

// AppendKey encodes one key column so that bytes compare as the values do: a
// tag, then integers and times as 8 bytes big-endian with the sign flipped,
// texts with 00 written as 00 FF and ended by 00.
func AppendKey(b []byte, v Value) []byte {
	switch v.kind {
	case NullKind:
		return append(b, tagNull)
	case StringKind:
		b = AppendTextPrefix(b, v.s)
		return append(b, textEnd)
	}
	return AppendStart(append(b, tagValue), v.n)
}

// AppendKeys encodes several columns, in order.
func AppendKeys(b []byte, values []Value) []byte {
	for _, v := range values {
		b = AppendKey(b, v)
	}
	return b
}

// AppendTextPrefix encodes a text without its end: what the keys of all texts
// that begin with s begin with.
func AppendTextPrefix(b []byte, s string) []byte {
	b = append(b, tagValue)
	for {
		i := strings.IndexByte(s, 0)
		if i < 0 {
			return append(b, s...)
		}
		b = append(b, s[:i]...)
		b = append(b, 0, textNUL)
		s = s[i+1:]
	}
}

// AppendStart encodes a time in 8 ordered bytes, as a windowed key ends.
func AppendStart(b []byte, ms int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(ms)^(1<<63))
}

// SplitStart cuts the window start off a windowed key.
func SplitStart(key []byte) (tuple []byte, start int64, err error) {
	n := len(key) - StartSize
	if n < 0 {
		return nil, 0, errTuple
	}
	return key[:n:n], int64(binary.BigEndian.Uint64(key[n:]) ^ (1 << 63)), nil
}

// DecodeKeys reads the columns of a tuple into dst, which has one place a type.
// The values share nothing with b.
func DecodeKeys(dst []Value, types []Type, b []byte) error {
	for i, t := range types {
		v, rest, err := decodeKey(t, b)
		if err != nil {
			return err
		}
		dst[i], b = v, rest
	}
	if len(b) != 0 {
		return errTuple
	}
	return nil
}

func decodeKey(t Type, b []byte) (Value, []byte, error) {
	switch {
	case len(b) > 0 && b[0] == tagNull:
		return Null, b[1:], nil
	case len(b) == 0 || b[0] != tagValue:
		return Null, nil, errTuple
	}
	b = b[1:]
	if t.Kind() == StringKind {
		return decodeText(b)
	}
	if len(b) < 8 {
		return Null, nil, errTuple
	}
	n := int64(binary.BigEndian.Uint64(b) ^ (1 << 63))
	return Value{kind: t.Kind(), n: n}, b[8:], nil
}

func decodeText(b []byte) (Value, []byte, error) {
	var text []byte
	for i := 0; i < len(b); i++ {
		if b[i] != 0 {
			continue
		}
		if i+1 < len(b) && b[i+1] == textNUL {
			text = append(text, b[:i+1]...)
			b, i = b[i+2:], -1
			continue
		}
		if text == nil {
			return OfString(string(b[:i])), b[i+1:], nil
		}
		return OfString(string(append(text, b[:i]...))), b[i+1:], nil
	}
	return Null, nil, errTuple
}

// PrefixEnd is the first key after all those that begin with prefix; nil when
// there is none.
func PrefixEnd(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			end := append([]byte(nil), prefix[:i+1]...)
			end[i]++
			return end
		}
	}
	return nil
}

// PrefixRange is the range of keys whose leading columns have these values. The
// end of a text is also how a text begins that goes on with a NUL (00 FF), so
// after a text the range is less than everything with that prefix.
func PrefixRange(values []Value) (from, to []byte) {
	if len(values) == 0 {
		return nil, nil
	}
	from = AppendKeys(nil, values)
	if values[len(values)-1].kind == StringKind {
		return from, append(from[:len(from):len(from)], textNUL)
	}
	return from, PrefixEnd(from)
}

// CheckKey says whether an encoded store key fits, naming length and limit.
func CheckKey(n int) error {
	if n > MaxKey {
		return fmt.Errorf("%w: %d bytes encoded, the limit is %d", ErrKeyTooLong, n, MaxKey)
	}
	return nil
}

// Identity is a row's identity as a text: its key columns, and its bounds when
// it has any. Distinct rows have distinct identities.
func Identity(keys []Value, windowed bool, start, end int64) string {
	var b []byte
	for i, v := range keys {
		if i > 0 {
			b = append(b, '|')
		}
		b = appendIdentity(b, v)
	}
	if windowed {
		b = append(b, '|')
		b = AppendTime(b, start)
		b = append(b, '/')
		b = AppendTime(b, end)
	}
	return string(b)
}

func appendIdentity(b []byte, v Value) []byte {
	switch v.kind {
	case NullKind:
		return append(b, '\\', '0')
	case StringKind:
		for i := 0; i < len(v.s); i++ {
			if c := v.s[i]; c == '|' || c == '\\' {
				b = append(b, '\\')
			}
			b = append(b, v.s[i])
		}
		return b
	}
	return strconv.AppendInt(b, v.n, 10)
}
