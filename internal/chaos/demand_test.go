package chaos

import (
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

func token(positions ...read.Part) string { return read.EncodeToken(positions) }

func TestTokens(t *testing.T) {
	a, b := [16]byte{1}, [16]byte{2}
	known := tokens{}
	if known.text() != "" {
		t.Error("nothing known has a token")
	}
	for _, s := range []string{
		token(read.Part{Incarnation: a, Partition: 1, Seq: 5}, read.Part{Incarnation: a, Partition: 2, Seq: 9}),
		token(read.Part{Incarnation: a, Partition: 1, Seq: 3}, read.Part{Incarnation: b, Partition: 1, Seq: 1}),
	} {
		if err := known.take(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		token string
		want  bool
	}{
		{token(read.Part{Incarnation: a, Partition: 1, Seq: 5}), false},
		{token(read.Part{Incarnation: a, Partition: 1, Seq: 4}), true},
		{token(read.Part{Incarnation: a, Partition: 3, Seq: 0}), false},
		{token(read.Part{Incarnation: b, Partition: 1, Seq: 0}), true},
		{known.text(), false},
	} {
		behind, err := known.behind(c.token)
		if err != nil || (behind != "") != c.want {
			t.Errorf("%s: behind %q, %v, want %t", c.token, behind, err, c.want)
		}
	}
	if err := known.take("?"); err == nil {
		t.Error("what is no token was taken")
	}
}

func TestOperation(t *testing.T) {
	whole := directive{atLeast: "String", maxAge: "Duration"}
	for _, c := range []struct {
		name string
		d    directive
		want demand
		text string
		vars int
	}{
		{"nothing demanded", whole, demand{kind: "query"}, "query { x }", 0},
		{"no directive", directive{}, demand{kind: "query", token: "T", maxAge: time.Second}, "query { x }", 0},
		{"a token", whole, demand{kind: "subscription", token: "T"}, "subscription($token: String) @read(atLeast: $token) { x }", 1},
		{"both", whole, demand{kind: "query", token: "T", maxAge: time.Second}, "query($token: String, $maxAge: Duration) @read(atLeast: $token, maxAge: $maxAge) { x }", 2},
		{"a list", directive{atLeast: "[String!]"}, demand{kind: "query", token: "T"}, "query($token: [String!]) @read(atLeast: $token) { x }", 1},
	} {
		text, vars := c.d.operation("x", c.want)
		if text != c.text || len(vars) != c.vars {
			t.Errorf("%s: %s with %v", c.name, text, vars)
		}
	}
}

func TestParse(t *testing.T) {
	a := parse([]byte(`{"data":{"n":3},"extensions":{"views":{"n":{"asOf":"2001-01-01T00:00:00.500Z","lag":1,"partial":true,"token":"T"}}}}`))
	if n, err := field[int64](&a, "n"); a.err != nil || err != nil || n != 3 {
		t.Errorf("%d, %v, %v", n, a.err, err)
	}
	if f := a.views["n"]; f.asOf() != 978307200500 || !f.Partial || f.Token != "T" {
		t.Errorf("%+v", f)
	}
	if _, err := field[int64](&a, "m"); err == nil {
		t.Error("a field that is not there was read")
	}
	a = parse([]byte(`{"errors":[{"message":"no","extensions":{"code":"TIMEOUT"}}],"data":{"n":null}}`))
	if a.err == nil || a.code != "TIMEOUT" {
		t.Errorf("%v, %q", a.err, a.code)
	}
	if a = parse([]byte("<html>")); a.err == nil {
		t.Error("a page was an answer")
	}
}
