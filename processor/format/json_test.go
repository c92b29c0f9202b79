package format

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/streamgauge/streamgauge/view"
)

func field(name string, t view.Type, path ...string) view.Field {
	if len(path) == 0 {
		path = []string{name}
	}
	return view.Field{Name: name, Type: t, Path: view.Path{Names: path}}
}

func record(value string) *Record {
	return &Record{Value: []byte(value), Header: func(string) ([]byte, bool) { return nil, false }}
}

func TestJSONDecode(t *testing.T) {
	fields := []view.Field{
		field("s", view.String), field("n", view.Long), field("f", view.Float), field("b", view.Boolean),
		field("at", view.DateTime), field("d", view.Decimal), field("deep", view.Int, "a", "b"), field("again", view.Long, "n"),
	}
	for _, c := range []struct{ name, in, want string }{
		{"plain", `{"s":"x","n":1,"f":1.5,"b":true,"at":1000,"d":1.50,"a":{"b":7}}`, `"x" 1 1.5 true "1970-01-01T00:00:01Z" "1.5" 7 1`},
		{"absent", `{}`, `null null null null null null null null`},
		{"null", `{"s":null,"a":null}`, `null null null null null null null null`},
		{"last of a name counts", `{"n":1,"n":2,"a":{"b":1},"a":{}}`, `null 2 null null null null null 2`},
		{"FC-10 beyond 2^53", `{"n":9007199254740993}`, `null 9007199254740993 null null null null null 9007199254740993`},
		{"FC-10 integral forms", `{"n":1e3,"a":{"b":1.0}}`, `null 1000 null null null null 1 1000`},
		{"FC-10 digits in a text", `{"n":"9007199254740993"}`, `null 9007199254740993 null null null null null 9007199254740993`},
		{"FC-12 minus zero", `{"f":-0.0}`, `null null 0 null null null null null`},
		{"FC-13 exact", `{"d":0.99999999999999999}`, `null null null null null "0.99999999999999999" null null`},
		{"FC-07 floored", `{"at":"2021-04-23T09:50:46.309999Z"}`, `null null null null "2021-04-23T09:50:46.309Z" null null null`},
		{"FC-07 digits", `{"at":"1517873971000"}`, `null null null null "2018-02-05T23:39:31Z" null null null`},
		{"FC-16 NUL", `{"s":"x\u0000\n\ud83d\ude00"}`, `"x\u0000\n😀" null null null null null null null`},
		{"FC-15 the word null", `{"s":"null"}`, `"null" null null null null null null null`},
		{"others may be no Unicode", `{"x":"\ud800","s":"\ufffd"}`, `"�" null null null null null null null`},
		{"others are skipped", ` { "x" : [1,{"y":[]},"z",-0.1e-5,true] , "n" : 4 } `, `null 4 null null null null null 4`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make([]view.Value, len(fields))
			if err := NewJSON(fields, view.TextKey).Decode(got, record(c.in)); err != nil {
				t.Fatal(err)
			}
			var parts []string
			for _, v := range got {
				parts = append(parts, string(v.AppendJSON(nil)))
			}
			if s := strings.Join(parts, " "); s != c.want {
				t.Errorf("got  %s\nwant %s", s, c.want)
			}
		})
	}
}

func TestJSONRefuses(t *testing.T) {
	fields := []view.Field{
		field("n", view.Long), field("i", view.Int), field("f", view.Float), field("s", view.String),
		field("at", view.DateTime), field("d", view.Decimal), {Name: "must", Type: view.String, NonNull: true, Path: view.Path{Names: []string{"must"}}},
	}
	for _, c := range []struct{ name, in, want string }{
		{"FC-12 NaN", `{"f":NaN}`, "not JSON: unexpected 'N' at byte 5"},
		{"FC-12 range", `{"must":"","f":1e400}`, "field f: 1e400 is out of a Float's range"},
		{"FC-12 text", `{"must":"","f":"NaN"}`, `field f: text "NaN" where a Float is due`},
		{"FC-10 beyond 64 bits", `{"n":9223372036854775808}`, "field n: 9223372036854775808 is no Long: beyond 64 bits"},
		{"FC-10 fraction", `{"n":1.5}`, "field n: 1.5 is no Long: not integral"},
		{"int range", `{"i":2147483648}`, "field i: 2147483648 does not fit an Int (32 bits)"},
		{"exponent bomb", `{"d":1e999999999}`, "field d: 1e999999999 is no Decimal: exponent beyond 400"},
		{"lone high surrogate", `{"s":"BAD\ud800"}`, "field s: not valid Unicode: half of a surrogate pair"},
		{"lone low surrogate", `{"s":"\udc00BAD"}`, "field s: not valid Unicode: half of a surrogate pair"},
		{"high surrogate and a letter", `{"s":"\ud83d\u0041"}`, "field s: not valid Unicode: half of a surrogate pair"},
		{"two high surrogates", `{"s":"\ud83d\ud83d\ude00"}`, "field s: not valid Unicode: half of a surrogate pair"},
		{"digits in a text", `{"i":"7"}`, `field i: text "7" where an Int is due: the number must stand without quotes, or the field be declared Long or Decimal`},
		{"missing", `{}`, "field must: missing or null, and declared String!"},
		{"object", `{"s":{}}`, "field s: an object where a String is due"},
		{"not an object", `[1]`, "not a JSON object"},
		{"trailing", `{"must":"x"} x`, "not JSON: unexpected 'x' at byte 13 after the value"},
		{"empty", ``, "not JSON: ends early"},
		{"cut", `{"s":"a`, "not JSON: ends early"},
		{"not UTF-8", "{\"s\":\"\xc3\x28\"}", "not JSON: not UTF-8 at byte 6"},
		{"FC-26 framing", "\x00\x00\x00\x00\x07{}", "not JSON: begins like the framing of a schema registry (a zero byte and a schema id)"},
		{"deep", strings.Repeat(`{"a":`, 300), "nested deeper than 200"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := NewJSON(fields, view.TextKey).Decode(make([]view.Value, len(fields)), record(c.in))
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestFC23Headers(t *testing.T) {
	fields := []view.Field{
		{Name: "trace", Type: view.String, Path: view.Path{Origin: view.TheHeader, Names: []string{"trace"}}},
		{Name: "newkey", Type: view.String, Path: view.Path{Origin: view.TheHeader, Names: []string{"__debezium.newkey"}}},
	}
	headers := map[string][]byte{"trace": []byte("t1"), "__debezium.newkey": []byte(`{"id":9}`)}
	r := &Record{Value: []byte(`{}`), Header: func(n string) ([]byte, bool) { b, ok := headers[n]; return b, ok }}
	got := make([]view.Value, 2)
	if err := NewJSON(fields, view.TextKey).Decode(got, r); err != nil || got[0].Str() != "t1" || got[1].Str() != `{"id":9}` {
		t.Errorf("got %v, %v", got, err)
	}
	headers["trace"] = []byte{0xc3, 0x28}
	if err := NewJSON(fields, view.TextKey).Decode(got, r); err == nil || err.Error() != "field trace: header trace is not UTF-8" {
		t.Errorf("got %v", err)
	}
}

// FuzzJSON: what the decoder takes is JSON to the standard library too, and
// what that refuses the decoder refuses.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"n":1}`, `{"s":"\u00e9\\"}`, `{"a":[1,2,{"b":null}]}`, `{"n":-0.1e+7}`, `{"s":"\ud800"}`} {
		f.Add([]byte(s))
	}
	fields := []view.Field{field("s", view.String), field("x", view.Float)}
	f.Fuzz(func(t *testing.T, b []byte) {
		d := NewJSON(fields, view.TextKey)
		err := d.Decode(make([]view.Value, 2), &Record{Value: b, Header: record("").Header})
		if valid := json.Valid(b); err == nil && !valid {
			t.Fatalf("took %q, which is not JSON", b)
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	fields := []view.Field{field("date", view.DateTime), field("origin", view.String), field("destination", view.String), field("delay", view.Int), field("distance", view.Int)}
	d := NewJSON(fields, view.TextKey)
	r := record(`{"date":"2001-01-01T00:47:00Z","origin":"DTW","destination":"LAS","delay":66,"distance":1750}`)
	dst := make([]view.Value, len(fields))
	b.ReportAllocs()
	b.SetBytes(int64(len(r.Value)))
	for b.Loop() {
		if err := d.Decode(dst, r); err != nil {
			b.Fatal(err)
		}
	}
}
