package view

import (
	"testing"
)

// Vectors of the Java client, and what other rules would give.
func TestFC19PartitionVectors(t *testing.T) {
	text := func(s string) []byte { return []byte(s) }
	long := func(n int64) []byte { return AppendPartitionBytes(nil, LongKey, []Value{OfInt(n)}) }
	short := func(n int64) []byte { return AppendPartitionBytes(nil, IntKey, []Value{OfInt(n)}) }
	for _, v := range []struct {
		key     []byte
		n, want int32
	}{
		{text("100:48069"), 12, 9},
		{text("fd7af248-ce5c-46a5-93d7-1c0c9005b99d"), 32, 26},
		{text("TT0124"), 15, 10},
		{text("wu"), 10, 0},
		{text("f562ac3b-2224-4e25-a0ab-56094e10c239"), 10, 5},
		{text("Zürich"), 12, 1},
		{text(""), 12, 9},
		{long(0), 12, 11}, {long(42), 12, 4}, {long(-1), 12, 5},
		{short(0), 12, 4}, {short(42), 12, 0},
	} {
		if got := Murmur2.Of(v.key, v.n); got != v.want {
			t.Errorf("%q among %d: partition %d, want %d", v.key, v.n, got, v.want)
		}
	}
	for _, v := range []struct {
		key     string
		n, want int32
	}{{"100:48069", 12, 6}, {"fd7af248-ce5c-46a5-93d7-1c0c9005b99d", 32, 23}, {"TT0124", 15, 9}} {
		if got := CRC32.Of([]byte(v.key), v.n); got != v.want {
			t.Errorf("CRC-32 of %q among %d: partition %d, want %d", v.key, v.n, got, v.want)
		}
	}
}

// Every partitioner stays within the partitions, and a key reads back as written.
func FuzzPartition(f *testing.F) {
	f.Add([]byte("TT0124"), int64(-1), int32(15))
	f.Fuzz(func(t *testing.T, key []byte, id int64, n int32) {
		if n <= 0 {
			return
		}
		for _, p := range []Partitioner{Murmur2, CRC32, FNV1A} {
			if got := p.Of(key, n); got < 0 || got >= n {
				t.Fatalf("%s of %q among %d: %d", p, key, n, got)
			}
		}
		want := OfInt(id)
		got, err := ParsePartitionBytes(AppendPartitionBytes(nil, LongKey, []Value{want}), LongKey, Long)
		if err != nil || got != want {
			t.Fatalf("%d reads back as %s, %v", id, got, err)
		}
		for _, k := range []KeyFormat{TextKey, IntKey, LongKey} {
			for _, typ := range []Type{String, ID, Int, Long, Boolean, DateTime} {
				_, _ = ParsePartitionBytes(key, k, typ) // no panic
			}
		}
	})
}
