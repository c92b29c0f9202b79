package broker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

var codecs = []Codec{None, Gzip, Snappy, LZ4, Zstd}

// copied is a record with its own bytes.
type copied struct {
	offset, timestamp int64
	key, value        []byte
	headers           []Header
}

func copyRecord(r *Record) copied {
	c := copied{r.Offset, r.Timestamp, clone(r.Key), clone(r.Value), nil}
	for name, value := range r.Headers() {
		c.headers = append(c.headers, Header{name, clone(value)})
	}
	return c
}

// clone keeps nil and empty apart.
func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

func (c copied) String() string {
	s := fmt.Sprintf("%d@%d %#v=%#v", c.offset, c.timestamp, c.key, c.value)
	for _, h := range c.headers {
		s += fmt.Sprintf(" %s:%#v", h.Key, h.Value)
	}
	return s
}

func encodeAt(t testing.TB, b *BatchBuilder, base int64) []byte {
	t.Helper()
	p, err := b.encode(nil, new(compressor))
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint64(p, uint64(base))
	return p
}

func chunkOf(set []byte, start int64) *Chunk {
	return &Chunk{Start: start, set: append([]byte(nil), set...), buffers: new(bufferPool), committed: true}
}

func TestBatchRoundTrip(t *testing.T) {
	for _, codec := range codecs {
		t.Run(codec.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(codec)))
			b := NewBatchBuilder(codec)
			var set []byte
			var want []copied
			base := int64(5)
			for _, n := range []int{1, 2, 700} {
				b.Reset()
				for i := range n {
					w := copied{offset: base + int64(i), timestamp: rng.Int64N(1 << 41), key: fill(rng), value: fill(rng)}
					for range rng.IntN(3) {
						w.headers = append(w.headers, Header{string(fill(rng)), fill(rng)})
					}
					b.Append(w.timestamp, w.key, w.value, w.headers)
					want = append(want, w)
				}
				set = append(set, encodeAt(t, b, base)...)
				base += int64(n)
			}
			var got []copied
			chunk := chunkOf(append(set, set[:30]...), 0) // cut within a batch
			next, err := chunk.Each(func(r *Record) error { got = append(got, copyRecord(r)); return nil })
			if err != nil || next != base {
				t.Fatalf("next %d, %v; want %d", next, err, base)
			}
			if len(got) != len(want) {
				t.Fatalf("%d records, want %d", len(got), len(want))
			}
			for i := range want {
				if got[i].String() != want[i].String() {
					t.Fatalf("record %d:\n got %v\nwant %v", i, got[i], want[i])
				}
			}
		})
	}
}

// fill makes nil, empty, short and compressible bytes.
func fill(rng *rand.Rand) []byte {
	switch rng.IntN(5) {
	case 0:
		return nil
	case 1:
		return []byte{}
	case 2:
		return bytes.Repeat([]byte{'a', byte(rng.Int())}, rng.IntN(500))
	}
	p := make([]byte, rng.IntN(40))
	for i := range p {
		p[i] = byte(rng.Int())
	}
	return p
}

func TestLargeBatches(t *testing.T) {
	value := []byte(strings.Repeat("abc", 100_000)) // several LZ4 blocks
	for _, codec := range codecs {
		b := NewBatchBuilder(codec)
		for range 3 {
			b.Append(0, nil, value, nil)
		}
		n := 0
		_, err := chunkOf(encodeAt(t, b, 0), 0).Each(func(r *Record) error {
			if bytes.Equal(r.Value, value) {
				n++
			}
			return nil
		})
		if err != nil || n != 3 {
			t.Errorf("%v: %d records, %v", codec, n, err)
		}
	}
}

func TestRecordBytesStayUntilRelease(t *testing.T) {
	set := encodeAt(t, values(LZ4, "one", "one"), 0)
	set = append(set, encodeAt(t, values(LZ4, "two", "two"), 2)...)
	chunk := chunkOf(set, 0)
	var kept [][]byte
	if _, err := chunk.Each(func(r *Record) error { kept = append(kept, r.Value); return nil }); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s", kept); got != "[one one two two]" {
		t.Errorf("got %s", got)
	}
	chunk.Release()
	chunk.Release()
}

func TestEachStartsAndStops(t *testing.T) {
	set := encodeAt(t, values(None, "a", "b", "c", "d"), 10)
	stop := errors.New("stop")
	var got []string
	next, err := chunkOf(set, 11).Each(func(r *Record) error {
		if got = append(got, string(r.Value)); len(got) == 2 {
			return stop
		}
		return nil
	})
	if fmt.Sprint(got) != "[b c]" || next != 12 || !errors.Is(err, stop) {
		t.Errorf("read %v, next %d, %v", got, next, err)
	}
}

func TestHeaderLastCounts(t *testing.T) {
	b := NewBatchBuilder(None)
	b.Append(0, nil, nil, []Header{{"a", []byte("1")}, {"b", nil}, {"a", []byte("2")}, {"", []byte{}}})
	_, err := chunkOf(encodeAt(t, b, 0), 0).Each(func(r *Record) error {
		if v, ok := r.Header("a"); string(v) != "2" || !ok {
			t.Errorf("a: %s %v", v, ok)
		}
		if v, ok := r.Header("b"); v != nil || !ok {
			t.Errorf("b: %v %v, want null", v, ok)
		}
		if v, ok := r.Header(""); v == nil || len(v) != 0 || !ok {
			t.Errorf("empty name: %v %v, want empty", v, ok)
		}
		if _, ok := r.Header("c"); ok {
			t.Error("found a header that is not there")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCorruptBatches(t *testing.T) {
	good := encodeAt(t, values(LZ4, "a", "b"), 3)
	fix := func(p []byte) []byte {
		binary.BigEndian.PutUint32(p[atCRC:], crc32.Checksum(p[atAttributes:], castagnoli))
		return p
	}
	for name, breakIt := range map[string]func(p []byte) []byte{
		"checksum":       func(p []byte) []byte { p[len(p)-1] ^= 1; return p },
		"old format":     func(p []byte) []byte { p[atMagic] = 1; return p },
		"negative size":  func(p []byte) []byte { binary.BigEndian.PutUint32(p[atLength:], math.MaxUint32); return p },
		"unknown codec":  func(p []byte) []byte { p[atAttributes+1] = 7; return fix(p) },
		"codec mismatch": func(p []byte) []byte { p[atAttributes+1] = byte(Zstd); return fix(p) },
		"record count":   func(p []byte) []byte { binary.BigEndian.PutUint32(p[atCount:], 1<<30); return fix(p) },
		"negative delta": func(p []byte) []byte { binary.BigEndian.PutUint32(p[atLastDelta:], math.MaxUint32); return fix(p) },
	} {
		t.Run(name, func(t *testing.T) {
			next, err := chunkOf(breakIt(append([]byte(nil), good...)), 3).Each(func(*Record) error { return nil })
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("next %d, %v; want ErrCorrupt", next, err)
			}
		})
	}
}

// A few bytes that claim to be a lot must not allocate a lot.
func TestDecompressionBombs(t *testing.T) {
	t.Parallel()
	zeros := make([]byte, maxBatchBytes+1<<20)
	for _, codec := range codecs[1:] {
		p, err := new(compressor).compress(nil, codec, zeros)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := new(decompressor).decompress(nil, codec, p); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v: %v, want ErrCorrupt", codec, err)
		}
	}
}

func TestXerialSnappy(t *testing.T) {
	var block compressor
	one, _ := block.compress(nil, Snappy, []byte("hello "))
	two, _ := block.compress(nil, Snappy, []byte("world"))
	framed := append([]byte(xerialMagic), 0, 0, 0, 1, 0, 0, 0, 1)
	for _, b := range [][]byte{one, two} {
		framed = binary.BigEndian.AppendUint32(framed, uint32(len(b)))
		framed = append(framed, b...)
	}
	got, err := new(decompressor).decompress(nil, Snappy, framed)
	if err != nil || string(got) != "hello world" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestSequenceWraps(t *testing.T) {
	if got := addSequence(math.MaxInt32-1, 3); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
}

// The record lengths that Append computes are those of what it writes.
func TestVarintLen(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 8191, 8192, math.MaxInt64, math.MinInt64} {
		if got, want := varintLen(v), len(binary.AppendVarint(nil, v)); got != want {
			t.Errorf("varintLen(%d) = %d, want %d", v, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, codec := range codecs {
		b := values(codec, "one", "", "three")
		b.Append(7, nil, nil, []Header{{"h", nil}, {"h", []byte("x")}})
		f.Add(encodeAt(f, b, 3), int64(4), true)
	}
	f.Fuzz(func(t *testing.T, set []byte, start int64, fix bool) {
		if start < 0 {
			return
		}
		set = append([]byte(nil), set...)
		if fix { // else the checksum keeps most inputs out
			for p := set; len(p) > atRecords; {
				n := int(int32(binary.BigEndian.Uint32(p[atLength:]))) + atLeaderEpoch
				if n < atRecords || n > len(p) {
					break
				}
				p[atMagic] = 2
				binary.BigEndian.PutUint32(p[atCRC:], crc32.Checksum(p[atAttributes:n], castagnoli))
				p = p[n:]
			}
		}
		chunk := chunkOf(set, start)
		chunk.aborted = []abortedTxn{{1, 0}}
		next, err := chunk.Each(func(r *Record) error {
			if r.Offset < start {
				t.Fatalf("offset %d below start %d", r.Offset, start)
			}
			for range r.Headers() {
				r.Header("h")
			}
			return nil
		})
		if next < start || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatalf("next %d from %d, %v", next, start, err)
		}
		chunk.Release()
	})
}

func BenchmarkEncode(b *testing.B) {
	for _, codec := range codecs {
		b.Run(codec.String(), func(b *testing.B) {
			builder, comp := NewBatchBuilder(codec), new(compressor)
			var out []byte
			b.ReportAllocs()
			for b.Loop() {
				builder.Reset()
				fillBench(builder)
				var err error
				if out, err = builder.encode(out[:0], comp); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchRecords), "ns/record")
			b.ReportMetric(float64(len(out))/benchRecords, "B/record")
		})
	}
}

const benchRecords = 1000

func fillBench(builder *BatchBuilder) {
	value := []byte(`{"carrier":"WN","flight":"1234","origin":"PHX","destination":"LAX","delay":12,"distance":370}`)
	key := []byte("2001-01-01:PHX")
	for i := range benchRecords {
		value[len(value)-2] = byte('0' + i%10)
		key[len(key)-1] = byte('A' + i%26)
		builder.Append(978307200000+int64(i)*60000, key, value, nil)
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, codec := range codecs {
		b.Run(codec.String(), func(b *testing.B) {
			builder := NewBatchBuilder(codec)
			fillBench(builder)
			set, err := builder.encode(nil, new(compressor))
			if err != nil {
				b.Fatal(err)
			}
			buffers := new(bufferPool)
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				chunk := Chunk{set: set, buffers: buffers}
				if _, err := chunk.Each(func(r *Record) error { n += len(r.Value); return nil }); err != nil {
					b.Fatal(err)
				}
				chunk.set = nil // shared by the iterations, not to be pooled
				chunk.Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchRecords), "ns/record")
		})
	}
}

// A builder that takes another's records in is the same as one that was given all
// of them.
func TestExtendIsAppend(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		var a, b, all BatchBuilder
		for i := range rng.IntN(300) {
			at, value := int64(1_000_000+rng.IntN(5000)), make([]byte, rng.IntN(100))
			var headers []Header
			if rng.IntN(3) == 0 {
				headers = []Header{{Key: "h", Value: value}}
			}
			to := &a
			if i > 100 {
				to = &b
			}
			to.Append(at, []byte{byte(i)}, value, headers)
			all.Append(at, []byte{byte(i)}, value, headers)
		}
		if a.n == 0 {
			continue
		}
		a.extend(&b)
		if a.n != all.n || a.first != all.first || a.maxTime != all.maxTime || !bytes.Equal(a.records, all.records) {
			t.Fatalf("%d records are not the %d that they were made of", a.n, all.n)
		}
	}
}
