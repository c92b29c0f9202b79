package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/auth"
)

func TestLongNumbersStayExact(t *testing.T) {
	g := open(t, nil)
	for _, n := range []string{"9007199254740993", "9007199254740992", "-9223372036854775808"} {
		r := g.post(`{"query":"query($n: Long!){echo(n:$n)}","variables":{"n":`+n+`}}`, nil)
		if want := `{"data":{"echo":` + n + `}}`; r.body != want {
			t.Errorf("variable: got %s, want %s", r.body, want)
		}
		r = g.query("{echo(n:" + n + ")}")
		if want := `{"data":{"echo":` + n + `}}`; r.body != want {
			t.Errorf("literal: got %s, want %s", r.body, want)
		}
	}
}

func TestAliasesAndFragments(t *testing.T) {
	g := open(t, nil)
	const q = `query Q($skip: Boolean!) {
  ...A @skip(if: $skip)
  x: minutes(page: "x", from: "2024-01-01T10:00:00Z", to: "2024-01-01T10:02:00Z") { ...F  t: s }
  x1: minutes(page: "x", from: "2024-01-01T10:01:00Z", to: "2024-01-01T10:02:00Z") { s }
  y: minutes(page: "y", from: "2024-01-01T10:00:00Z", to: "2024-01-01T10:01:00Z") { ...F @include(if: false)  s }
}
fragment A on Query { x: minutes(page: "x", from: "2024-01-01T10:00:00Z", to: "2024-01-01T10:02:00Z") { n } }
fragment F on HitMinute { s  total: s  ... on HitMinute { start } }`
	send := func(q string, variables string) reply {
		b, err := json.Marshal(map[string]any{"query": q, "variables": json.RawMessage(variables)})
		if err != nil {
			t.Fatal(err)
		}
		return g.post(string(b), nil)
	}
	rest := `"x1":[{"s":42}],"y":[{"s":64}]}}`
	if r := send(q, `{"skip":true}`); r.body != `{"data":{"x":[{"s":5,"total":5,"start":"2024-01-01T10:00:00Z","t":5},`+
		`{"s":42,"total":42,"start":"2024-01-01T10:01:00Z","t":42}],`+rest {
		t.Errorf("skip: %s", r.body)
	}
	if r := send(q, `{"skip":false}`); r.body != `{"data":{"x":[{"n":2,"s":5,"total":5,"start":"2024-01-01T10:00:00Z","t":5},`+
		`{"n":3,"s":42,"total":42,"start":"2024-01-01T10:01:00Z","t":42}],`+rest {
		t.Errorf("no skip: %s", r.body)
	}
	before := g.res.Minutes.Load()
	r := send(`query($s: Boolean!) { x: minutes(page: "x") @skip(if: $s) { s } }`, `{"s":true}`)
	if r.body != `{"data":{}}` || g.res.Minutes.Load() != before {
		t.Errorf("all skipped: %s, %d reads", r.body, g.res.Minutes.Load()-before)
	}
	for _, q := range []string{
		`{ a: minutes(page: "x") { s }  a: minutes(page: "y") { s } }`,
		`query($s: Boolean! = true) { a: minutes(page: "x") @skip(if: $s) { s }  a: minutes(page: "y") @include(if: $s) { s } }`,
	} {
		if r := g.query(q); r.code(t) != CodeValidation {
			t.Errorf("%s: %s", q, r.body)
		}
	}
}

func TestRefusalsAreJSON(t *testing.T) {
	g := open(t, func(c *Config, a *auth.Config) {
		c.Limits.Body = 1000
		a.AnonymousScopes = nil
	})
	good := "Bearer " + token(t, "ann", time.Minute)
	with := func(h ...string) map[string]string {
		m := map[string]string{"Content-Type": "application/json", "Authorization": good}
		for i := 0; i < len(h); i += 2 {
			m[h[i]] = h[i+1]
		}
		return m
	}
	long := asBody("{hello}" + strings.Repeat(" ", 1000))
	tests := []struct {
		name, method, body string
		header             map[string]string
		status             int
		code, key, value   string
	}{
		{name: "too large", method: "POST", body: long, header: with(), status: 413, code: CodeLimit},
		{name: "PUT", method: "PUT", body: "{}", header: with(), status: 405, code: CodeBadInput, key: "Allow", value: "GET, POST, OPTIONS"},
		{name: "no content type", method: "POST", body: "{}", header: with("Content-Type", ""), status: 415, code: CodeBadInput},
		{name: "form", method: "POST", body: "{}", header: with("Content-Type", "text/plain"), status: 415, code: CodeBadInput},
		{name: "charset", method: "POST", body: "{}", header: with("Content-Type", "application/json; charset=utf-16"), status: 415, code: CodeBadInput},
		{name: "accept", method: "POST", body: "{}", header: with("Accept", "text/html"), status: 406, code: CodeBadInput},
		{name: "accept nothing", method: "POST", body: "{}", header: with("Accept", "application/json;q=0"), status: 406, code: CodeBadInput},
		{name: "not JSON", method: "POST", body: `{"query": SECRET}`, header: with(), status: 400, code: CodeBadInput},
		{name: "batch", method: "POST", body: `[{"query":"SECRET"}]`, header: with(), status: 400, code: CodeBadInput},
		{name: "no query", method: "POST", body: `{"variables":{"SECRET":1}}`, header: with(), status: 400, code: CodeBadInput},
		{name: "bad UTF-8", method: "POST", body: "{\"query\":\"SECRET\xff\"}", header: with(), status: 400, code: CodeBadInput},
		{name: "variables", method: "POST", body: `{"query":"SECRET","variables":[1]}`, header: with(), status: 400, code: CodeBadInput},
		{name: "no token", method: "POST", body: "{}", header: map[string]string{"Content-Type": "application/json"}, status: 401, code: CodeUnauthenticated, key: "WWW-Authenticate", value: `Bearer realm="streamgauge"`},
		{name: "junk token", method: "POST", body: "{}", header: with("Authorization", "Bearer x.y.z"), status: 401, code: CodeUnauthenticated},
		{name: "no bearer", method: "POST", body: "{}", header: with("Authorization", "Basic YTpi"), status: 401, code: CodeUnauthenticated},
		{name: "ended token", method: "POST", body: "{}", header: with("Authorization", "Bearer "+token(t, "ann", -time.Hour)), status: 401, code: CodeUnauthenticated},
		{name: "GET without a token", method: "GET", status: 401, code: CodeUnauthenticated},
		{name: "subscription", method: "POST", body: asBody("subscription{ticks(n:1)}"), header: with(), status: 406, code: CodeBadInput},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := g.do(tt.method, "/graphql", tt.body, tt.header)
			if r.status != tt.status || r.code(t) != tt.code {
				t.Errorf("got %d %s: %s", r.status, r.code(t), r.body)
			}
			if got := r.header.Get("Content-Type"); got != "application/json; charset=utf-8" {
				t.Errorf("Content-Type %q", got)
			}
			if tt.key != "" && r.header.Get(tt.key) != tt.value {
				t.Errorf("%s: %q", tt.key, r.header.Get(tt.key))
			}
			if strings.Contains(r.body, "SECRET") {
				t.Errorf("the body is echoed: %s", r.body)
			}
		})
	}
	t.Run("too large, chunked", func(t *testing.T) {
		req, err := http.NewRequest("POST", g.url+"/graphql", io.MultiReader(strings.NewReader(long)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", good)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != 413 || codeOf(t, string(b)) != CodeLimit {
			t.Errorf("got %d %s, %v", resp.StatusCode, b, err)
		}
	})
}

func TestRates(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) {
		c.Limits.AnonymousRate, c.Limits.AnonymousBurst = 0.5, 2
		c.Limits.Rate, c.Limits.Burst = 0.5, 1
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}
	})
	send := func(h ...string) reply {
		m := map[string]string{}
		for i := 0; i < len(h); i += 2 {
			m[h[i]] = h[i+1]
		}
		return g.post(asBody("{hello}"), m)
	}
	for i, want := range []int{200, 200, 429, 429, 429} { // refused ones take nothing
		if r := send("X-Forwarded-For", "8.8.8.8, 10.1.1.1"); r.status != want {
			t.Fatalf("request %d: %d %s", i, r.status, r.body)
		} else if want == 429 && (r.code(t) != CodeRateLimited || r.header.Get("Retry-After") != "2" || !strings.Contains(r.body, "retryAfterMs")) {
			t.Errorf("got %v %s", r.header, r.body)
		}
	}
	if r := send("X-Forwarded-For", "6.6.6.6, 8.8.8.8"); r.status != 429 {
		t.Errorf("a forged address: %d", r.status)
	}
	if r := send("X-Forwarded-For", "9.9.9.9"); r.status != 200 {
		t.Errorf("another address: %d", r.status)
	}
	ann := "Bearer " + token(t, "ann", time.Minute)
	if r := send("Authorization", ann); r.status != 200 {
		t.Errorf("a subject's first: %d", r.status)
	}
	if r := send("Authorization", ann, "X-Forwarded-For", "7.7.7.7"); r.status != 429 {
		t.Errorf("a subject's second, from elsewhere: %d", r.status)
	}
	for i, want := range []int{401, 401, 429} {
		if r := send("Authorization", "Bearer junk", "X-Forwarded-For", "5.5.5.5"); r.status != want {
			t.Errorf("junk token %d: %d", i, r.status)
		}
	}
}

func TestCodes(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) { c.Limits.Time = 50 * time.Millisecond })
	tests := []struct{ kind, code, more string }{
		{"unknown", CodeInternal, ""},
		{"panic", CodeInternal, ""},
		{"coded", "CLOSED", "not today"},
		{"unauthenticated", CodeUnauthenticated, ""},
		{"deadline", CodeTimeout, "retryAfterMs"},
		{"internal_error", CodeInternal, ""},
		{"not_the_owner", CodeUnavailable, `"retryAfterMs":1000`},
		{"restoring", CodeRestoring, `"done":10,"etaMs":1500,"retryAfterMs":1500,"total":40`},
		{"rebalancing", CodeUnavailable, "retryAfterMs"},
		{"stale", CodeStale, "told"},
		{"incomplete", CodeIncomplete, "told"},
		{"unknown_store", CodeInternal, ""},
		{"forbidden", CodeForbidden, `"message":"forbidden"`},
		{"timeout", CodeTimeout, "told"},
		{"circuit_open", CodeCircuitOpen, "retryAfterMs"},
		{"unavailable", CodeUnavailable, "told"},
		{"bad_input", CodeBadInput, "told"},
		{"limit_exceeded", CodeLimit, "told"},
	}
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			r := g.query(`{hello fail(kind:"` + tt.kind + `")}`)
			if r.status != 200 || r.code(t) != tt.code || !strings.Contains(r.body, tt.more) {
				t.Errorf("got %d %s", r.status, r.body)
			}
			if !strings.Contains(r.body, `"data":{"hello":"world","fail":null}`) || !strings.Contains(r.body, `"path":["fail"]`) {
				t.Errorf("got %s", r.body)
			}
			if strings.Contains(r.body, "secret") || strings.Contains(r.body, "10.0.0.7") {
				t.Errorf("the cause is told: %s", r.body)
			}
			if tt.code == CodeInternal && !strings.Contains(r.body, `"message":"internal error"`) {
				t.Errorf("got %s", r.body)
			}
			if tt.code == CodeForbidden && strings.Contains(r.body, "told") {
				t.Errorf("denial tells more: %s", r.body)
			}
		})
	}
	for _, want := range []string{"secret: 10.0.0.7:9092", "secret panic", "testgraph.failure"} {
		if !strings.Contains(g.log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

func TestDocumentErrors(t *testing.T) {
	g := open(t, nil)
	tests := []struct{ name, body, code string }{
		{"parse", asBody("{hello"), CodeParse},
		{"empty", asBody("# nothing"), CodeValidation},
		{"no such field", asBody("{helo}"), CodeValidation},
		{"no such argument", asBody(`{hello(x:1)}`), CodeValidation},
		{"several operations", asBody("query A{hello} query B{hello}"), CodeValidation},
		{"no such operation", `{"query":"query A{hello}","operationName":"B"}`, CodeValidation},
		{"variable missing", `{"query":"query($n: Long!){echo(n:$n)}"}`, CodeBadInput},
		{"variable null", `{"query":"query($n: Long!){echo(n:$n)}","variables":{"n":null}}`, CodeBadInput},
		{"variable of another type", `{"query":"query($t: String!){say(text:$t)}","variables":{"t":true}}`, CodeBadInput},
		{"variable in a scalar of ours", `{"query":"query($n: Long!){echo(n:$n)}","variables":{"n":"x"}}`, CodeBadInput},
		{"variable beyond the scalar", `{"query":"query($n: Long!){echo(n:$n)}","variables":{"n":9223372036854775808}}`, CodeBadInput},
		{"literal in a scalar of ours", asBody(`{echo(n:"x")}`), CodeBadInput},
		{"enum", `{"query":"query($c: Choice!){pick(by:$c)}","variables":{"c":"NONE"}}`, CodeBadInput},
		{"input object", `{"query":"query($f: [Filter!]){pick(by:LAST,in:$f)}","variables":{"f":[{"text":"a"}]}}`, CodeBadInput},
		{"defer", asBody("{... @defer {hello}}"), CodeValidation},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := g.post(tt.body, nil)
			if r.status != 200 || r.code(t) != tt.code {
				t.Errorf("got %d %s", r.status, r.body)
			}
			if strings.Contains(r.body, "Did you mean") {
				t.Errorf("suggests: %s", r.body)
			}
		})
	}
	if r := g.query("{hel}" + strings.Repeat("# x\n", 3)); strings.Contains(r.body, "hello") {
		t.Errorf("suggests: %s", r.body)
	}
	if r := g.post(`{"query":"query($f: [Filter!]){pick(by:LAST,in:$f)}","variables":{"f":{"n":1}}}`, nil); r.body != `{"data":{"pick":"LAST of 1"}}` {
		t.Errorf("a list of one: %s", r.body)
	}
}

func TestScopes(t *testing.T) {
	g := open(t, func(_ *Config, a *auth.Config) { a.AnonymousScopes = []string{"open:read"} })
	ask := func(scope, token string) reply {
		h := map[string]string{}
		if token != "" {
			h["Authorization"] = "Bearer " + token
		}
		return g.post(asBody(`{needs(scope:"`+scope+`")}`), h)
	}
	ann := token(t, "ann", time.Minute, "flights:read")
	if r := ask("flights:read", ann); r.body != `{"data":{"needs":"ann"}}` {
		t.Errorf("got %s", r.body)
	}
	if r := ask("other:read", ann); r.code(t) != CodeForbidden || strings.Contains(r.body, "other") {
		t.Errorf("got %s", r.body)
	}
	if r := ask("open:read", ""); r.body != `{"data":{"needs":""}}` {
		t.Errorf("anonymous: %s", r.body)
	}
	if r := ask("flights:read", ""); r.code(t) != CodeForbidden {
		t.Errorf("anonymous: %s", r.body)
	}
	off := open(t, func(_ *Config, a *auth.Config) { *a = auth.Config{Off: true} })
	if r := off.post(asBody(`{needs(scope:"any")}`), map[string]string{"Authorization": "Bearer junk"}); r.body != `{"data":{"needs":""}}` {
		t.Errorf("off: %s", r.body)
	}
}

func TestGet(t *testing.T) {
	g := open(t, nil)
	get := func(params url.Values, h ...string) reply {
		m := map[string]string{}
		for i := 0; i < len(h); i += 2 {
			m[h[i]] = h[i+1]
		}
		return g.do("GET", "/graphql?"+params.Encode(), "", m)
	}
	hello := url.Values{"query": {"{hello}"}}
	for _, h := range [][]string{
		{"GraphQL-Require-Preflight", "1"}, {"X-Apollo-Operation-Name", "Q"}, {"Content-Type", "application/json"},
		{"Authorization", "Bearer " + token(t, "ann", time.Minute)},
	} {
		if r := get(hello, h...); r.status != 200 || r.body != `{"data":{"hello":"world"}}` {
			t.Errorf("%v: %d %s", h, r.status, r.body)
		}
	}
	for _, h := range [][]string{nil, {"Accept", "application/graphql-response+json"}, {"Content-Type", "text/plain"}} {
		if r := get(hello, h...); r.status != 400 || r.code(t) != CodeBadInput {
			t.Errorf("%v: %d %s", h, r.status, r.body)
		}
	}
	v := url.Values{"query": {"query($n: Long!){echo(n:$n)}"}, "variables": {`{"n":9007199254740993}`}}
	if r := get(v, "GraphQL-Require-Preflight", "1"); r.body != `{"data":{"echo":9007199254740993}}` {
		t.Errorf("variables: %s", r.body)
	}
	v.Set("variables", `{"n":`)
	if r := get(v, "GraphQL-Require-Preflight", "1"); r.status != 400 {
		t.Errorf("broken variables: %d %s", r.status, r.body)
	}
	for _, q := range []string{"mutation{touch}", "subscription{ticks(n:1)}"} {
		for _, h := range [][]string{nil, {"GraphQL-Require-Preflight", "1"}, {"Accept", "text/event-stream"}} {
			if r := get(url.Values{"query": {q}}, h...); r.status != 405 || r.header.Get("Allow") != "POST" {
				t.Errorf("%s %v: %d %s", q, h, r.status, r.body)
			}
		}
	}
	if g.res.Started.Load() != 0 {
		t.Error("a subscription was started")
	}
	if r := get(nil); r.status != 400 || r.code(t) != CodeBadInput {
		t.Errorf("no query: %d %s", r.status, r.body)
	}
}
