package view

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/shopspring/decimal"
	"github.com/tinylib/msgp/msgp"
)

// rowVersion is the format of a stored row: the first byte, before the map.
const rowVersion = 1

// ErrRowVersion is a row written by a newer version.
var ErrRowVersion = errors.New("row of an unknown format version")

// AppendCells encodes a row of a view: a version byte and a MessagePack map
// from column name to cell, so that a column may come or go and old rows still
// read. Cells are in the order of the view's columns; only aggregates are kept.
func (v *View) AppendCells(b []byte, cells []Cell) []byte {
	b = append(b, rowVersion)
	n := uint32(0)
	for i := range v.Columns {
		if v.Columns[i].Role == AggRole {
			n++
		}
	}
	b = msgp.AppendMapHeader(b, n)
	for i := range v.Columns {
		if c := &v.Columns[i]; c.Role == AggRole {
			b = msgp.AppendString(b, c.Name)
			b = appendCell(b, c.Agg.Fn, &cells[i])
		}
	}
	return b
}

// appendCell: a count is a number, an empty cell null, anything else an array.
func appendCell(b []byte, fn Fn, c *Cell) []byte {
	switch {
	case fn == Count:
		return msgp.AppendInt64(b, c.N)
	case c.N == 0:
		return msgp.AppendNil(b)
	case fn == Quantile:
		b = msgp.AppendArrayHeader(b, 2)
		b = msgp.AppendInt64(b, c.N)
		var enc []byte
		c.Sketch.Encode(&enc, false)
		return msgp.AppendBytes(b, enc)
	case fn == First || fn == Last:
		b = msgp.AppendArrayHeader(b, 5)
		b = msgp.AppendInt64(b, c.N)
		b = AppendValue(b, c.V)
		b = msgp.AppendInt64(b, c.At.Time)
		b = msgp.AppendInt32(b, c.At.Partition)
		return msgp.AppendInt64(b, c.At.Offset)
	}
	b = msgp.AppendArrayHeader(b, 2)
	b = msgp.AppendInt64(b, c.N)
	return AppendValue(b, c.V)
}

// DecodeCells reads a row into cells, one place a column of the view; columns
// that the row does not have become empty, those unknown are skipped. The cells
// share nothing with b.
func (v *View) DecodeCells(cells []Cell, b []byte) error {
	clear(cells)
	return v.eachColumn(b, func(i int, b []byte) ([]byte, error) {
		if v.Columns[i].Role != AggRole {
			return msgp.Skip(b)
		}
		return decodeCell(b, &v.Columns[i].Agg, &cells[i])
	})
}

func decodeCell(b []byte, a *Agg, c *Cell) ([]byte, error) {
	if a.Fn == Count {
		var err error
		c.N, b, err = msgp.ReadInt64Bytes(b)
		return b, err
	}
	if msgp.IsNil(b) {
		return msgp.ReadNilBytes(b)
	}
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		return b, err
	}
	if want := cellFields(a.Fn); n != want {
		return b, fmt.Errorf("%s of %d fields, not %d", a.Fn, n, want)
	}
	if c.N, b, err = msgp.ReadInt64Bytes(b); err != nil {
		return b, err
	}
	if c.N <= 0 {
		return b, fmt.Errorf("%s over %d values", a.Fn, c.N)
	}
	if a.Fn == Quantile {
		return decodeSketch(b, c)
	}
	if c.V, b, err = ReadValue(b, a.Type.Kind()); err != nil || n == 2 {
		return b, err
	}
	if c.At.Time, b, err = msgp.ReadInt64Bytes(b); err != nil {
		return b, err
	}
	if c.At.Partition, b, err = msgp.ReadInt32Bytes(b); err != nil {
		return b, err
	}
	c.At.Offset, b, err = msgp.ReadInt64Bytes(b)
	return b, err
}

func cellFields(fn Fn) uint32 {
	if fn == First || fn == Last {
		return 5
	}
	return 2
}

func decodeSketch(b []byte, c *Cell) ([]byte, error) {
	enc, b, err := msgp.ReadBytesZC(b)
	if err != nil {
		return b, err
	}
	c.Sketch, err = ddsketch.DecodeDDSketch(enc, store.SparseStoreConstructor, nil)
	return b, err
}

// AppendFields encodes a row of a table: the values of its FieldRole columns.
func (v *View) AppendFields(b []byte, values []Value) []byte {
	b = append(b, rowVersion)
	n := uint32(0)
	for i := range v.Columns {
		if v.Columns[i].Role == FieldRole {
			n++
		}
	}
	b = msgp.AppendMapHeader(b, n)
	for i := range v.Columns {
		if c := &v.Columns[i]; c.Role == FieldRole {
			b = msgp.AppendString(b, c.Name)
			b = AppendValue(b, values[i])
		}
	}
	return b
}

// DecodeFields reads a table's row into values, one place a column; places of
// other roles become null.
func (v *View) DecodeFields(values []Value, b []byte) error {
	clear(values)
	return v.eachColumn(b, func(i int, b []byte) (_ []byte, err error) {
		values[i], b, err = ReadValue(b, v.Columns[i].Type.Kind())
		return b, err
	})
}

// eachColumn walks a row's map; read is called for the columns the view has.
func (v *View) eachColumn(b []byte, read func(i int, b []byte) ([]byte, error)) error {
	if len(b) == 0 || b[0] != rowVersion {
		return ErrRowVersion
	}
	n, b, err := msgp.ReadMapHeaderBytes(b[1:])
	if err != nil {
		return fmt.Errorf("row: %w", err)
	}
	next := 0
	for ; n > 0; n-- {
		var name []byte
		if name, b, err = msgp.ReadStringZC(b); err != nil {
			return fmt.Errorf("row: %w", err)
		}
		i := v.columnAfter(next, name)
		if i < 0 {
			b, err = msgp.Skip(b)
		} else {
			b, err = read(i, b)
			next = i + 1
		}
		if err != nil {
			return fmt.Errorf("row, column %s: %w", name, err)
		}
	}
	return nil
}

// columnAfter finds a column by name, trying first those from next on: rows
// are written in the order of the columns.
func (v *View) columnAfter(next int, name []byte) int {
	for i := next; i < len(v.Columns); i++ {
		if v.Columns[i].Name == string(name) {
			return i
		}
	}
	for i := 0; i < next && i < len(v.Columns); i++ {
		if v.Columns[i].Name == string(name) {
			return i
		}
	}
	return -1
}

// AppendValue encodes one value as MessagePack: times and durations as
// integers, a Decimal as a text.
func AppendValue(b []byte, v Value) []byte {
	switch v.kind {
	case BoolKind:
		return msgp.AppendBool(b, v.n != 0)
	case IntKind, TimeKind, DurationKind:
		return msgp.AppendInt64(b, v.n)
	case FloatKind:
		return msgp.AppendFloat64(b, v.Float())
	case StringKind:
		return msgp.AppendString(b, v.s)
	case DecimalKind:
		return msgp.AppendString(b, v.d.String())
	}
	return msgp.AppendNil(b)
}

// maxStoredDigits bounds a Decimal that was stored: sums have more digits than
// what is added, but they have no exponent.
const maxStoredDigits = 4096

func readDecimal(s string) (Value, error) {
	if len(s) > maxStoredDigits || strings.ContainsAny(s, "eE") {
		return Null, errors.New("a Decimal of another form")
	}
	d, err := decimal.NewFromString(s)
	if err != nil {
		return Null, fmt.Errorf("a Decimal: %w", err)
	}
	return OfDecimal(d), nil
}

// ReadValue reads a value of the kind, or null, and returns the bytes after
// it. It shares nothing with b.
func ReadValue(b []byte, k Kind) (Value, []byte, error) {
	if msgp.IsNil(b) {
		b, err := msgp.ReadNilBytes(b)
		return Null, b, err
	}
	switch k {
	case BoolKind:
		x, b, err := msgp.ReadBoolBytes(b)
		return OfBool(x), b, err
	case IntKind, TimeKind, DurationKind:
		n, b, err := msgp.ReadInt64Bytes(b)
		return Value{kind: k, n: n}, b, err
	case FloatKind:
		f, b, err := msgp.ReadFloat64Bytes(b)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return Null, b, errors.New("a Float that is not finite")
		}
		return OfFloat(f), b, err
	case StringKind:
		s, b, err := msgp.ReadStringBytes(b)
		return OfString(s), b, err
	case DecimalKind:
		s, b, err := msgp.ReadStringBytes(b)
		if err != nil {
			return Null, b, err
		}
		d, err := readDecimal(s)
		return d, b, err
	}
	return Null, b, fmt.Errorf("a value of kind %d", k)
}
