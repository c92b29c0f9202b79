package server

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDecodeRequest(t *testing.T) {
	got, err := decodeRequest([]byte(" {\"query\" : \"{a \\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\\ud83d}\", \"operationName\":\"Q\"," +
		`"variables":{"n":9007199254740993,"f":-1.50e+2,"l":[1,"x",null,true,false,{}],"":[]},"extensions":{"e":{}},"other":[{"x":1}]}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &request{
		query: "{a \"\\/\b\f\n\r\té😀\ufffd}", operationName: "Q",
		variables: map[string]any{
			"n": json.Number("9007199254740993"), "f": json.Number("-1.50e+2"), "": []any{},
			"l": []any{json.Number("1"), "x", nil, true, false, map[string]any{}},
		},
		extensions: map[string]any{"e": map[string]any{}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v\nwant %#v", got, want)
	}
	got, err = decodeRequest([]byte(`{"query":"{a}","operationName":null,"variables":null,"extensions":null}`))
	if err != nil || !reflect.DeepEqual(got, &request{query: "{a}"}) {
		t.Errorf("nulls: %#v, %v", got, err)
	}
}

func TestDecodeRequestRefuses(t *testing.T) {
	for _, in := range []string{
		"", " ", "null", `"x"`, "[]", "{", `{"query"}`, `{"query":}`, `{"query":"a",}`, `{"query":"a"} x`, `{"query":"a"`, `{query:"a"}`,
		`{"query":1}`, `{"query":null}`, `{"query":""}`, `{}`, `{"query":"a","operationName":1}`, `{"query":"a","variables":"x"}`,
		`{"query":"a","extensions":[]}`, "{\"query\":\"a\nb\"}", `{"query":"\x"}`, `{"query":"\u12g4"}`, `{"query":"\u12`, `{"query":"\`,
		`{"query":"a","v":01}`, `{"query":"a","v":1.}`, `{"query":"a","v":1e}`, `{"query":"a","v":-}`, `{"query":"a","v":+1}`, `{"query":"a","v":nul}`,
		`{"query":"a","v":NaN}`, `{"query":"a","v":[1,]}`, `{"query":"a","v":[1 2]}`, `{"query":"a","v":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}",
		"{\"query\":\"\xff\"}", "\ufeff{\"query\":\"a\"}",
	} {
		if q, err := decodeRequest([]byte(in)); err == nil {
			t.Errorf("%s: %#v", in, q)
		}
	}
}

// FuzzDecode compares with encoding/json, whose answer is right wherever it is
// as strict.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"query":"{a}","variables":{"a":[1,2.5,-0,1e9,"\ud83d\ude00\ud800x"]}}`, `{"a":{"b":[{},[],null,true,false]}}`, `{"a":"\ud800\u0041"}`, ` { } `,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeObject(b)
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		var want any
		wrong := dec.Decode(&want)
		if wrong == nil {
			if _, more := dec.Token(); more != io.EOF {
				return // json.Decoder reads one value of several
			}
		}
		m, object := want.(map[string]any)
		valid := wrong == nil && (object || want == nil) && utf8.Valid(b)
		switch {
		case err == nil && !valid:
			t.Fatalf("taken: %q as %#v", b, got)
		case err != nil && valid && !strings.Contains(err.Error(), "deeper"):
			t.Fatalf("refused: %q: %v", b, err)
		case err == nil && !reflect.DeepEqual(got, m):
			t.Fatalf("%q: got %#v, want %#v", b, got, m)
		}
		_, _ = decodeRequest(b) // must not panic
	})
}

func TestNegotiate(t *testing.T) {
	for in, want := range map[string]accepted{
		"":                                  {single: plainJSON},
		"*/*":                               {single: plainJSON},
		"application/*":                     {single: plainJSON},
		"application/json":                  {single: plainJSON},
		"Application/JSON; charset=UTF-8":   {single: plainJSON},
		"application/graphql-response+json": {single: responseJSON},
		"application/graphql-response+json; charset=utf-8, application/json; charset=utf-8": {single: responseJSON},
		"application/json, application/graphql-response+json":                               {single: plainJSON},
		"application/json;q=0.5, application/graphql-response+json;q=0.9":                   {single: responseJSON},
		"application/graphql-response+json;q=0, */*;q=0.1":                                  {single: plainJSON},
		"text/event-stream":                   {events: true},
		"text/event-stream, application/json": {single: plainJSON, events: true},
		"text/html":                           {},
		"application/json; charset=utf-16":    {},
		"application/json;q=x":                {},
	} {
		if got := negotiate([]string{in}); got != want {
			t.Errorf("%q: got %+v, want %+v", in, got, want)
		}
	}
	if got := negotiate(nil); got.single != plainJSON {
		t.Errorf("none: %+v", got)
	}
}
