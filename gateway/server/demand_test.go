package server

import (
	"context"
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/view/read"
)

// demands notes what operations demand, as their resolvers see it.
type demands struct {
	mu  sync.Mutex // guards got
	got []*read.Demand
}

func (d *demands) note(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.got = append(d.got, read.DemandOf(ctx))
}

// take are the demands noted since the last time.
func (d *demands) take() []*read.Demand {
	d.mu.Lock()
	defer d.mu.Unlock()
	got := d.got
	d.got = nil
	return got
}

func demanding(t *testing.T) (*rig, *demands) {
	d := &demands{}
	g := open(t, func(c *Config, _ *auth.Config) {
		c.Extensions = func(ctx context.Context) (context.Context, func() map[string]any) {
			d.note(ctx)
			return ctx, func() map[string]any { return nil }
		}
		c.Ending = func(ctx context.Context) (context.Context, func() error) {
			d.note(ctx)
			return ctx, func() error { return nil }
		}
	})
	return g, d
}

var position = read.Position{Incarnation: [16]byte{1}, Partition: 2, Seq: 3}

func TestReadDirective(t *testing.T) {
	g, d := demanding(t)
	token := read.EncodePositions([]read.Position{position})
	for _, c := range []struct {
		name, query, variables string
		want                   *read.Demand
	}{
		{"none", `{hello}`, ``, nil},
		{"nothing said", `query @read {hello}`, ``, &read.Demand{}},
		{"all as literals", `query @read(maxAge: "1m30s", from: ACTIVE, atLeast: "` + token + `", complete: true) {hello}`, ``,
			&read.Demand{MaxAge: 90_000, ActiveOnly: true, AtLeast: []read.Position{position}, Complete: true}},
		{"all as variables", `query($a: Duration, $f: ReadFrom, $t: String, $c: Boolean) @read(maxAge: $a, from: $f, atLeast: $t, complete: $c) {hello}`,
			`{"a": "5s", "f": "ACTIVE", "t": "` + token + `", "c": true}`,
			&read.Demand{MaxAge: 5000, ActiveOnly: true, AtLeast: []read.Position{position}, Complete: true}},
		{"variables of null, or not given", `query($a: Duration, $f: ReadFrom, $t: String) @read(maxAge: $a, from: $f, atLeast: $t, complete: false) {hello}`,
			`{"a": null, "t": null}`, &read.Demand{}},
		{"a default", `query($a: Duration = "2s") @read(maxAge: $a, from: ANY) {hello}`, `{}`, &read.Demand{MaxAge: 2000}},
		{"one of several", `query A @read(from: ACTIVE) {hello} query B @read(complete: true) {hello}`, ``, &read.Demand{Complete: true}},
	} {
		body := map[string]any{"query": c.query}
		if c.variables != "" {
			body["variables"] = json.RawMessage(c.variables)
		}
		if strings.Contains(c.query, "query B") {
			body["operationName"] = "B"
		}
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if r := g.post(string(b), nil); r.code(t) != "" {
			t.Errorf("%s: %s", c.name, r.body)
		}
		if got := d.take(); len(got) != 1 || !reflect.DeepEqual(got[0], c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestReadDirectiveByEachTransport(t *testing.T) {
	g, d := demanding(t)
	want := read.Demand{MaxAge: 1000}
	check := func(name string, n int) {
		t.Helper()
		got := d.take()
		if len(got) < n {
			t.Errorf("%s: %d demands, want %d", name, len(got), n)
		}
		for _, x := range got {
			if x == nil || x.MaxAge != want.MaxAge {
				t.Errorf("%s: got %+v", name, x)
			}
		}
	}
	get := "/graphql?query=" + url.QueryEscape(`query @read(maxAge: "1s") {hello}`)
	if r := g.do("GET", get, "", map[string]string{"GraphQL-Require-Preflight": "1"}); r.code(t) != "" {
		t.Fatal(r.body)
	}
	check("GET", 1)
	const ticks = `subscription @read(maxAge: "1s") {ticks(n: 2)}`
	e := g.subscribe(ticks, nil)
	for range 2 {
		e.next()
	}
	check("SSE", 3) // its start and each event
	k := g.dial(nil)
	k.init(nil)
	k.start("1", ticks)
	for range 2 {
		k.expect("next", "1")
	}
	check("websocket", 3)
}

// What is wrong is told with its place; a field of the same name is none of it.
func TestReadDirectiveRefusals(t *testing.T) {
	g, d := demanding(t)
	for _, c := range []struct {
		name, query, variables, code, message string
		line, column                          int
	}{
		{"no duration", "query\n  @read(maxAge: \"soon\") {hello}", `{}`, CodeBadInput, `maxAge of @read: "soon" is no Duration`, 2, 9},
		{"no time", `query @read(maxAge: "0s") {hello}`, `{}`, CodeBadInput, "must be positive", 1, 13},
		{"a number", `query @read(maxAge: 5) {hello}`, `{}`, CodeBadInput, "write it as", 1, 13},
		{"no token", `query($t: String) @read(atLeast: $t) {hello}`, `{"t": "x"}`, CodeBadInput, "atLeast of @read: not a freshness token", 1, 25},
		{"an empty token", `query @read(atLeast: "") {hello}`, `{}`, CodeBadInput, "not a freshness token", 1, 13},
		{"an unknown value, by variable", `query($f: ReadFrom) @read(from: $f) {hello}`, `{"f": "STANDBY"}`, CodeBadInput, "STANDBY", 0, 0},
		{"an unknown value", `query @read(from: STANDBY) {hello}`, `{}`, CodeValidation, "STANDBY", 1, 19},
		{"an unknown argument", `query @read(age: "1s") {hello}`, `{}`, CodeValidation, "age", 0, 0},
		{"twice", `query @read @read {hello}`, `{}`, CodeValidation, "read", 0, 0},
		{"on a field", `{hello @read}`, `{}`, CodeValidation, "read", 0, 0},
		{"on a mutation", `mutation @read {touch}`, `{}`, CodeValidation, "read", 0, 0},
	} {
		b, err := json.Marshal(map[string]any{"query": c.query, "variables": json.RawMessage(c.variables)})
		if err != nil {
			t.Fatal(err)
		}
		r := g.post(string(b), map[string]string{"Accept": acceptResponse})
		var got struct {
			Errors []struct {
				Message   string
				Locations []struct{ Line, Column int }
			}
		}
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || len(got.Errors) == 0 {
			t.Errorf("%s: %v %s", c.name, err, r.body)
			continue
		}
		if r.status != 400 || r.code(t) != c.code || !strings.Contains(got.Errors[0].Message, c.message) {
			t.Errorf("%s: %d %s", c.name, r.status, r.body)
		}
		if at := got.Errors[0].Locations; c.line > 0 && (len(at) != 1 || at[0].Line != c.line || at[0].Column != c.column) {
			t.Errorf("%s: at %v, want %d:%d", c.name, at, c.line, c.column)
		}
	}
	if got := d.take(); len(got) != 0 {
		t.Errorf("%d were executed", len(got))
	}
}

// The errors that answers may have, with all that helps a client to go on.
func TestReadErrors(t *testing.T) {
	missing := read.MissingPartitions{{Partition: 3, Reason: "restoring"}}
	for _, c := range []struct {
		err  *read.Error
		want string
	}{
		{&read.Error{Code: read.Restoring, Progress: &read.Progress{Done: 5, Total: 9, Rate: 2, ETA: 2e9}},
			`{"code":"VIEW_RESTORING","done":5,"etaMs":2000,"rate":2,"retryAfterMs":2000,"total":9}`},
		{read.Errorf(read.Stale, "the state is 2m old"), `{"code":"STALE","retryAfterMs":1000}`},
		{read.Errorf(read.CircuitOpen, ""), `{"code":"CIRCUIT_OPEN","retryAfterMs":1000}`},
		{&read.Error{Code: read.Incomplete, Cause: missing}, `{"code":"VIEW_INCOMPLETE","missing":[{"partition":3,"reason":"restoring"}],"retryAfterMs":1000}`},
	} {
		_, ext := explainRead(c.err)
		if got, err := json.Marshal(ext); err != nil || string(got) != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
