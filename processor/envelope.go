package processor

import (
	"errors"
	"fmt"

	"github.com/streamgauge/streamgauge/view"
	"github.com/tinylib/msgp/msgp"
)

// A value of a repartition topic is an envelope: a format version, a kind, and
// either one record of the source with its origin, or a mark.
const (
	envelopeVersion = 1
	kindRecord      = 'r'
	kindMark        = 'm'
)

var errEnvelope = errors.New("not an envelope of ours")

// origin says which record of the source an envelope carries. A downstream task
// drops what lies below the next (offset, index) of its source partition.
type origin struct {
	Partition int32
	Offset    int64
	Index     int64 // among the elements of one record
	Event     int64 // ms
}

// appendRecord encodes a source record: its origin, and by name the fields that
// the views downstream need.
func appendRecord(b []byte, o origin, fields []view.Field, carry []int, values []view.Value) []byte {
	b = append(b, envelopeVersion, kindRecord)
	b = msgp.AppendInt32(b, o.Partition)
	b = msgp.AppendInt64(b, o.Offset)
	b = msgp.AppendInt64(b, o.Index)
	b = msgp.AppendInt64(b, o.Event)
	b = msgp.AppendMapHeader(b, uint32(len(carry)))
	for _, i := range carry {
		b = msgp.AppendString(b, fields[i].Name)
		b = view.AppendValue(b, values[i])
	}
	return b
}

// envelopeKind is kindRecord or kindMark.
func envelopeKind(b []byte) (byte, error) {
	if len(b) < 2 || b[0] != envelopeVersion || (b[1] != kindRecord && b[1] != kindMark) {
		return 0, errEnvelope
	}
	return b[1], nil
}

// readOrigin reads the origin of a record's envelope and returns what follows.
func readOrigin(b []byte) (o origin, rest []byte, err error) {
	b = b[2:]
	if o.Partition, b, err = msgp.ReadInt32Bytes(b); err != nil {
		return o, b, err
	}
	for _, p := range [...]*int64{&o.Offset, &o.Index, &o.Event} {
		if *p, b, err = msgp.ReadInt64Bytes(b); err != nil {
			return o, b, err
		}
	}
	return o, b, nil
}

// readFields reads the carried fields into values, a place a field of the
// source; fields that the envelope lacks become null.
func readFields(values []view.Value, fields []view.Field, b []byte) error {
	clear(values)
	n, b, err := msgp.ReadMapHeaderBytes(b)
	if err != nil {
		return err
	}
	next := 0
	for ; n > 0; n-- {
		var name []byte
		if name, b, err = msgp.ReadStringZC(b); err != nil {
			return err
		}
		i := fieldAfter(fields, next, name)
		if i < 0 {
			b, err = msgp.Skip(b)
		} else {
			values[i], b, err = view.ReadValue(b, fields[i].Type.Kind())
			next = i + 1
		}
		if err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
	}
	return nil
}

func fieldAfter(fields []view.Field, next int, name []byte) int {
	for k := range fields {
		i := (next + k) % len(fields)
		if fields[i].Name == string(name) {
			return i
		}
	}
	return -1
}

// mark tells a repartition partition how far the source partitions of one
// instance have come; it comes in order with the records that it speaks of.
type mark struct {
	Wall    int64 // ms
	Sources []sourceMark
}

type sourceMark struct {
	Partition int32
	Next      int64 // everything below was sent before this mark
	End       int64 // end offset at the last answer of a fetch
	Event     int64 // greatest event time below Next; noTime: none known
	CaughtUp  int64 // ms: when Next had reached a known end; 0: never
	Idle      bool  // at the end, and nothing new for idleAfter
}

func (m *mark) encode() []byte {
	b := []byte{envelopeVersion, kindMark}
	b = msgp.AppendInt64(b, m.Wall)
	b = msgp.AppendArrayHeader(b, uint32(len(m.Sources)))
	for _, s := range m.Sources {
		b = msgp.AppendArrayHeader(b, 6)
		b = msgp.AppendInt32(b, s.Partition)
		for _, n := range [...]int64{s.Next, s.End, s.Event, s.CaughtUp} {
			b = msgp.AppendInt64(b, n)
		}
		b = msgp.AppendBool(b, s.Idle)
	}
	return b
}

func decodeMark(b []byte) (*mark, error) {
	m := &mark{}
	var err error
	if m.Wall, b, err = msgp.ReadInt64Bytes(b[2:]); err != nil {
		return nil, err
	}
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil || n > maxUpstream {
		return nil, errors.Join(err, checkCount(n))
	}
	for ; n > 0; n-- {
		var s sourceMark
		var k uint32
		if k, b, err = msgp.ReadArrayHeaderBytes(b); err != nil || k != 6 {
			return nil, errors.Join(err, errEnvelope)
		}
		if s.Partition, b, err = msgp.ReadInt32Bytes(b); err != nil {
			return nil, err
		}
		for _, p := range [...]*int64{&s.Next, &s.End, &s.Event, &s.CaughtUp} {
			if *p, b, err = msgp.ReadInt64Bytes(b); err != nil {
				return nil, err
			}
		}
		if s.Idle, b, err = msgp.ReadBoolBytes(b); err != nil {
			return nil, err
		}
		m.Sources = append(m.Sources, s)
	}
	return m, nil
}
