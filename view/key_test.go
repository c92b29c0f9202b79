package view

import (
	"bytes"
	"cmp"
	"slices"
	"testing"
)

var keyTypes = []Type{String, Long, String}

// tuple makes a key of a text, a number and a text, any of them null.
func tuple(a string, n int64, b string, nulls uint8) []Value {
	values := []Value{OfString(a), OfInt(n), OfString(b)}
	for i := range values {
		if nulls&(1<<i) != 0 {
			values[i] = Null
		}
	}
	return values
}

func compareTuples(a, b []Value) int { return slices.CompareFunc(a, b, Compare) }

// FuzzKeys checks that encoded keys compare as the tuples do, read back, and lie
// in the ranges of their prefixes and of no others.
func FuzzKeys(f *testing.F) {
	f.Add("x", int64(-1), "", uint8(0), "x\x00", int64(0), "y", uint8(2))
	f.Add("", int64(0), "\x00\xff", uint8(1), "\xff", int64(1)<<62, "\x00", uint8(4))
	f.Fuzz(func(t *testing.T, a1 string, n1 int64, b1 string, nulls1 uint8, a2 string, n2 int64, b2 string, nulls2 uint8) {
		x, y := tuple(a1, n1, b1, nulls1), tuple(a2, n2, b2, nulls2)
		kx, ky := AppendKeys(nil, x), AppendKeys(nil, y)
		if got, want := bytes.Compare(kx, ky), compareTuples(x, y); got != want {
			t.Fatalf("%v and %v: bytes compare %d, tuples %d", x, y, got, want)
		}
		back := make([]Value, len(keyTypes))
		if err := DecodeKeys(back, keyTypes, kx); err != nil || compareTuples(back, x) != 0 {
			t.Fatalf("%v reads back as %v, %v", x, back, err)
		}
		for n := range x {
			from, to := PrefixRange(x[:n+1])
			in := bytes.Compare(ky, from) >= 0 && (to == nil || bytes.Compare(ky, to) < 0)
			if want := compareTuples(x[:n+1], y[:n+1]) == 0; in != want {
				t.Fatalf("%v in the range of %v: %t, want %t", y, x[:n+1], in, want)
			}
		}
		if got := cmp.Compare(string(AppendStart(nil, n1)), string(AppendStart(nil, n2))); got != cmp.Compare(n1, n2) {
			t.Fatalf("starts %d and %d compare %d", n1, n2, got)
		}
		if Identity(x, false, 0, 0) == Identity(y, false, 0, 0) && compareTuples(x, y) != 0 {
			t.Fatalf("%v and %v have one identity", x, y)
		}
	})
}

// FuzzDecodeKeys reads arbitrary bytes: an error, or what encodes to them again.
func FuzzDecodeKeys(f *testing.F) {
	f.Add(AppendKeys(nil, tuple("a\x00b", 7, "", 0)))
	f.Fuzz(func(t *testing.T, b []byte) {
		values := make([]Value, len(keyTypes))
		if DecodeKeys(values, keyTypes, b) != nil {
			return
		}
		if again := AppendKeys(nil, values); !bytes.Equal(again, b) {
			t.Fatalf("%x decodes to %v, which encodes to %x", b, values, again)
		}
	})
}

func TestPrefixEnd(t *testing.T) {
	for in, want := range map[string]string{"a": "b", "a\xff": "b", "\xff\xff": "", "": ""} {
		if got := PrefixEnd([]byte(in)); string(got) != want || (want == "") != (got == nil) {
			t.Errorf("end of %q is %q, want %q", in, got, want)
		}
	}
}

func TestCheckKey(t *testing.T) {
	if err := CheckKey(MaxKey); err != nil {
		t.Error(err)
	}
	if err := CheckKey(MaxKey + 1); err == nil || err.Error() != "key too long: 32769 bytes encoded, the limit is 32768" {
		t.Error(err)
	}
}
