package broker

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"
)

func TestWireRoundTrip(t *testing.T) {
	for _, flex := range []bool{false, true} {
		e := encoder{flex: flex}
		e.bool(true)
		e.int16(math.MinInt16)
		e.int64(math.MaxInt64)
		e.string("text")
		e.nullable("")
		e.bytes([]byte{1, 2})
		e.int32s([]int32{-1, 7})
		e.array(-1)
		e.end()
		d := decoder{b: e.b, flex: flex}
		if !d.bool() || d.int16() != math.MinInt16 || d.int64() != math.MaxInt64 || d.string() != "text" || d.string() != "" {
			t.Errorf("flexible %v: scalars differ", flex)
		}
		if p := d.bytes(); !bytes.Equal(p, []byte{1, 2}) {
			t.Errorf("flexible %v: bytes %v", flex, p)
		}
		if list := d.int32s(); len(list) != 2 || list[0] != -1 || list[1] != 7 {
			t.Errorf("flexible %v: list %v", flex, list)
		}
		if n := d.array(); n != 0 {
			t.Errorf("flexible %v: null array of %d", flex, n)
		}
		if d.end(); d.err != nil || len(d.b) != 0 {
			t.Errorf("flexible %v: %d bytes left, %v", flex, len(d.b), d.err)
		}
		if d.int8(); !errors.Is(d.err, ErrCorrupt) {
			t.Errorf("flexible %v: past the end: %v", flex, d.err)
		}
	}
}

func TestReadFrameGrowsAsBytesArrive(t *testing.T) {
	if _, err := readFrame(bytes.NewReader(make([]byte, 10)), nil, maxResponse); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want an unexpected end", err)
	}
	want := bytes.Repeat([]byte("0123456789"), 400_000)
	for _, buf := range [][]byte{nil, make([]byte, 5), make([]byte, 0, 8<<20)} {
		got, err := readFrame(bytes.NewReader(want), buf, len(want))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("buffer of %d: %d bytes, %v", cap(buf), len(got), err)
		}
	}
}

// Answers are decoded without a panic, whatever they hold.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 2, 0, 0, 0, 1, 2, 'h', 0, 0, 0, 1, 0, 0, 0}, true)
	f.Add([]byte{0, 0, 0, 1, 0, 1, 'a', 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, false)
	f.Fuzz(func(t *testing.T, p []byte, flex bool) {
		d := func() *decoder { return &decoder{b: p, flex: flex} }
		_ = decodeCluster(d())
		_ = decodeProduce(d())
		_ = decodeGroup(d())
		_ = decodeConfigs(d())
		if _, err := decodeFetch(d()); err == nil && len(p) < 10 {
			t.Errorf("a fetch answer in %d bytes", len(p))
		}
		if err := decodePartitionCodes(d()); err == nil && len(p) == 0 {
			t.Error("codes in no bytes")
		}
		if _, _, err := decodeJoin(d()); err == nil && len(p) < 10 {
			t.Errorf("a join answer in %d bytes", len(p))
		}
	})
}
