package view

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseNumber(t *testing.T) {
	tests := []struct {
		text string
		t    Type
		want string // "" is an error
	}{
		{"1", Long, "1"}, {"1.0", Long, "1"}, {"1e3", Long, "1000"}, {"1.5", Long, ""}, {"1e400", Long, ""},
		{"9223372036854775807", Long, "9223372036854775807"}, {"9223372036854775808", Long, ""}, {"-9223372036854775808", Long, "-9223372036854775808"},
		{"2147483648", Int, ""}, {"-2147483648", Int, "-2147483648"},
		{"9007199254740993", Long, "9007199254740993"},
		{"-0.0", Float, "0"}, {"1e400", Float, ""}, {"1e-7", Float, "1e-07"}, {"0.1", Float, "0.1"},
		{"0.99999999999999999", Decimal, `"0.99999999999999999"`}, {"10.000", Decimal, `"10"`}, {"1e401", Decimal, ""},
		{strings.Repeat("9", 400), Decimal, `"` + strings.Repeat("9", 400) + `"`}, {strings.Repeat("9", 401), Decimal, ""},
		{"1517873969000", DateTime, `"2018-02-05T23:39:29Z"`}, {"-1", DateTime, `"1969-12-31T23:59:59.999Z"`},
		{"-0.5", DateTime, `"1969-12-31T23:59:59.999Z"`}, {"253402300799999", DateTime, `"9999-12-31T23:59:59.999Z"`}, {"253402300800000", DateTime, ""},
		{"-9223372036854775808", DateTime, ""}, {"1517873969000000", DateTime, ""},
		{"7", String, ""}, {"7", Boolean, ""}, {"7", ID, `"7"`}, {"7.0", ID, ""}, {"60000", Duration, `"1m"`},
	}
	for _, test := range tests {
		v, err := ParseNumber(test.text, test.t)
		if got := string(v.AppendJSON(nil)); err == nil && got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%.40s as %s: %s, %v; want %q", test.text, test.t, got, err, test.want)
		}
	}
}

func TestParseText(t *testing.T) {
	tests := []struct {
		text string
		t    Type
		want string
	}{
		{"x", String, `"x"`}, {"\xff", String, ""}, {"null", String, `"null"`}, {"42", Long, "42"}, {"1e3", Long, "1000"}, {"0x10", Long, ""}, {"", Long, ""},
		{" 1", Long, ""}, {"+1", Long, ""}, {"0.2", Decimal, `"0.2"`}, {"NaN", Float, ""}, {"NaN", Decimal, ""}, {".5", Decimal, ""}, {"1.", Decimal, ""}, {"1_000", Long, ""},
		{"2018-02-05T23:39:31Z", DateTime, `"2018-02-05T23:39:31Z"`}, {"2018-02-05T23:39:31.9999+01:00", DateTime, `"2018-02-05T22:39:31.999Z"`},
		{"1969-12-31T23:59:59.9999Z", DateTime, `"1969-12-31T23:59:59.999Z"`}, {"0000-01-01T00:00:00+01:00", DateTime, ""}, {"2018-02-30T00:00:00Z", DateTime, ""},
		{"1517873971000", DateTime, `"2018-02-05T23:39:31Z"`}, {"90s", Duration, `"1m30s"`}, {"true", Boolean, ""},
	}
	for _, test := range tests {
		v, err := ParseText(test.text, test.t)
		if got := string(v.AppendJSON(nil)); err == nil && got != test.want || (err != nil) != (test.want == "") {
			t.Errorf("%q as %s: %s, %v; want %q", test.text, test.t, got, err, test.want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]int64{
		"0s": 0, "500ms": 500, "90s": 90_000, "1h30m": 5_400_000, "7d": 7 * day, "2w": 14 * day, "36500d": 36500 * day,
		"": -1, "1": -1, "s": -1, "-1s": -1, "1.5h": -1, "1m1h": -1, "1m1m": -1, "1y": -1, "99999999999999w": -1, " 1s": -1,
	} {
		got, err := ParseDuration(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	f.Add("1h30m")
	f.Fuzz(func(t *testing.T, text string) {
		ms, err := ParseDuration(text)
		if err != nil {
			return
		}
		again, err := ParseDuration(FormatDuration(ms))
		if ms < 0 || err != nil || again != ms {
			t.Fatalf("%q is %d, written %s, which is %d, %v", text, ms, FormatDuration(ms), again, err)
		}
	})
}

// FuzzJSON checks that whatever a value holds is valid JSON on one line, and that
// texts come back.
func FuzzJSON(f *testing.F) {
	f.Add("a\u2028\n\"\\\x00\xff", 1e-7, int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, s string, x float64, n int64) {
		for _, v := range []Value{OfString(s), OfFloat(x), OfInt(n), OfTime(n), OfDuration(n), OfBool(n > 0), Null} {
			b := v.AppendJSON(nil)
			if !json.Valid(b) || strings.ContainsAny(string(b), "\n\r\u2028\u2029") || !utf8.Valid(b) {
				t.Fatalf("%#v is written %q", v, b)
			}
		}
		var back string
		if err := json.Unmarshal(OfString(s).AppendJSON(nil), &back); err != nil || utf8.ValidString(s) && back != s {
			t.Fatalf("%q comes back as %q, %v", s, back, err)
		}
		var number float64
		if v := OfFloat(x); !v.IsNull() {
			if err := json.Unmarshal(v.AppendJSON(nil), &number); err != nil || number != x {
				t.Fatalf("%v comes back as %v, %v", x, number, err)
			}
		}
	})
}

// FuzzParse takes any text as any type: no panic, and what is taken can be
// written and compared.
func FuzzParse(f *testing.F) {
	f.Add("1e400")
	f.Add("2018-02-05T23:39:31Z")
	f.Fuzz(func(t *testing.T, text string) {
		for typ := String; typ <= Duration; typ++ {
			for _, parse := range []func(string, Type) (Value, error){ParseText, ParseNumber} {
				v, err := parse(text, typ)
				if err != nil {
					continue
				}
				if b := v.AppendJSON(nil); !json.Valid(b) {
					t.Fatalf("%q as %s is written %q", text, typ, b)
				}
				if Compare(v, v) != 0 {
					t.Fatalf("%q as %s is not itself", text, typ)
				}
			}
		}
	})
}
