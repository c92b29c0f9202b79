package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/auth"
)

// bomb is a document whose fragments each spread the next n times: tiny to send,
// n to the power of depth fields to execute.
func bomb(n, depth int) string {
	var b strings.Builder
	b.WriteString("{list{...F0}}")
	for i := range depth {
		fmt.Fprintf(&b, " fragment F%d on Item{%s}", i, strings.Repeat(fmt.Sprintf("child{...F%d} ", i+1), n))
	}
	fmt.Fprintf(&b, " fragment F%d on Item{n}", depth)
	return b.String()
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestBombs: nothing large is executed, and nothing takes long to refuse.
func TestBombs(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) { c.Limits.AnonymousRate = -1 })
	bound := 50 * time.Millisecond
	if raceDetector {
		bound *= 30
	}
	tests := []struct{ name, query, code string }{
		{"tokens", "{" + strings.Repeat("hello ", 20_000) + "}", CodeLimit},
		{"tokens of braces", strings.Repeat("{hello ", 5_000), CodeLimit},
		{"nested lists", "{pick(by:" + strings.Repeat("[", 1500), CodeLimit},
		{"depth", "{list{" + strings.Repeat("child{", 15) + "n" + strings.Repeat("}", 15) + "}}", CodeLimit},
		{"depth in a fragment", "{list{child{...F}}} fragment F on Item{" + strings.Repeat("child{", 13) + "n" + strings.Repeat("}", 14), CodeLimit},
		{"aliases", "{list{" + numbered(31, "a%d:n ") + "}}", CodeLimit},
		{"aliases in a fragment", "{list{...F} l:list{...F}} fragment F on Item{" + numbered(15, "a%d:n ") + "}", CodeLimit},
		{"root fields", "{" + strings.Repeat("hello ", 21) + "}", CodeLimit},
		{"root fields in a fragment", "{...F} fragment F on Query{" + strings.Repeat("hello ", 21) + "}", CodeLimit},
		{"repeated field", "{list{" + strings.Repeat("n ", 1900) + "}}", CodeLimit},
		{"repeated field, just allowed", "{list{" + strings.Repeat("n ", 101) + "}}", ""},
		{"repeated field with arguments, just allowed", "{list{" + strings.Repeat("items(first:1){n} ", 101) + "}}", ""},
		{"repeated object", "{list{" + strings.Repeat("child{n text} ", 330) + "}}", CodeLimit},
		{"repeated objects, just allowed", "{list{" + strings.Repeat("child{n text} ", 101) + "}}", ""},
		{"repeated in inline fragments", "{list{" + strings.Repeat("...{n text}", 300) + "}}", CodeLimit},
		{"repeated objects in inline fragments", "{list{" + strings.Repeat("...{child{n}}", 250) + "}}", CodeLimit},
		{"wide fragments against each other", "{list{" + numbered(24, "...F%d ") + "}} " + numbered(24, "fragment F%d on Item{n text child{n text child{n text child{n text child{n text}}}} items{n text child{n text child{n text}}}} "), ""},
		{"200 fields in a fragment", "{a:list{...F} b:list{...F} c:list{...F} d:list{...F} e:list{...F} f:list{...F}} fragment F on Item{" + strings.Repeat("n ", 200) + "}", CodeLimit},
		{"fragments", "{list{n}} " + numbered(101, "fragment F%d on Item{n} "), CodeLimit},
		{"spreads", "{list{" + strings.Repeat("...F ", 101) + "}} fragment F on Item{n}", CodeLimit},
		{"many fragments against each other", "{list{" + numbered(90, "...F%d ") + "}} " + numbered(90, "fragment F%d on Item{n text child{n text}} "), ""},
		{"exponential fragments", bomb(10, 13), CodeLimit},
		{"exponential fragments, narrow", bomb(2, 90), CodeLimit},
		{"a cycle", "{list{...A}} fragment A on Item{...B} fragment B on Item{child{...A}}", CodeValidation},
		{"a cycle on itself", "{list{...A}} fragment A on Item{...A ...A ...A}", CodeValidation},
		{"an unused cycle", "{hello} fragment A on Item{child{...A} items{...A}}", CodeValidation},
		{"directives", "{hello" + strings.Repeat("@skip(if:false)", 6) + "}", CodeLimit},
		{"directives of a variable", "query($a:Int" + strings.Repeat("@x", 900) + "){hello}", CodeValidation},
		{"operations", numbered(11, "query Q%d{hello} "), CodeLimit},
		{"variables", "query(" + numbered(480, "$v%d:Int ") + "){hello}", CodeValidation},
		{"arguments", "{hello(" + numbered(600, "a%d:1 ") + ")}", CodeValidation},
		{"the same argument", "{echo(" + strings.Repeat("n:1 ", 600) + ")}", CodeValidation},
		{"unknown fields", "{list{" + strings.Repeat("nope ", 101) + "}}", CodeValidation},
		{"unknown fields, all different", "{list{" + numbered(990, "nope%d ") + "}}", CodeValidation},
		{"values in a list", "{pick(by:LAST,in:[" + strings.Repeat("{n:1}", 390) + "])}", ""},
		{"complexity", "{list(first:1000){items(first:1000){n}}}", CodeLimit},
		{"complexity in fragments", "{list(first:1000){...F}} fragment F on Item{items(first:1000){n}}", CodeLimit},
		{"a long text", `{say(text:"` + strings.Repeat("x", 200_000) + `")}`, ""},
		{"a long block text", `{say(text:"""` + strings.Repeat("x\n ", 60_000) + `""")}`, ""},
		{"a long comment", "{hello} #" + strings.Repeat("x", 200_000), ""},
		{"comments", "{hello}" + strings.Repeat("#\n", 100_000), CodeLimit},
		{"a long name", "{" + strings.Repeat("x", 200_000) + "}", CodeValidation},
		{"introspection", introspection, ""},
		{"deep introspection", "{__schema{types{" + strings.Repeat("ofType{", 25) + "name" + strings.Repeat("}", 28), CodeLimit},
		{"wide introspection", "{__schema{types{fields{type{fields{type{fields{type{fields{name}}}}}}}}}}", CodeValidation},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := asBody(tt.query)
			var r reply
			took := time.Hour
			for range 5 { // the best of a few, on a machine with others at work
				start := time.Now()
				r = g.post(body, nil)
				if took = min(took, time.Since(start)); took < bound {
					break
				}
			}
			if got := r.code(t); got != tt.code {
				t.Errorf("got %q, want %q: %.300s", got, tt.code, r.body)
			}
			if tt.code != "" && len(r.body) > 8<<10 {
				t.Errorf("a refusal of %d bytes", len(r.body))
			}
			if took > bound {
				t.Errorf("took %v, at most %v", took, bound)
			}
		})
	}
}

func TestComplexityOfVariables(t *testing.T) {
	g := open(t, nil)
	for first, code := range map[string]string{"100": "", "10000": CodeLimit} {
		r := g.post(`{"query":"query($f: Int!){list(first:$f){items{n}}}","variables":{"f":`+first+`}}`, nil)
		if r.code(t) != code {
			t.Errorf("first %s: %.200s", first, r.body)
		}
	}
}

// TestDeepVariables: variables are bounded as documents are.
func TestDeepVariables(t *testing.T) {
	g := open(t, nil)
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	r := g.post(`{"query":"query($f: [Filter!]){pick(by:LAST,in:$f)}","variables":{"f":`+deep+`}}`, nil)
	if r.status != 400 || r.code(t) != CodeBadInput {
		t.Errorf("got %d %.200s", r.status, r.body)
	}
	r = g.post(`{"query":"query($c: Choice!){pick(by:$c)}","variables":{"c":"`+strings.Repeat("X", 100_000)+`"}}`, nil)
	if r.code(t) != CodeBadInput || len(r.body) > 2000 {
		t.Errorf("got %d bytes: %.200s", len(r.body), r.body)
	}
}

func TestLimitsMayBeOff(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) {
		c.Limits = Limits{Tokens: -1, Depth: -1, Aliases: -1, RootFields: -1, Fields: -1, Complexity: -1, Body: -1, Documents: -1}
	})
	for _, q := range []string{
		"{" + numbered(400, "a%d:hello ") + "}", "{list(first:1){" + strings.Repeat("child{", 30) + "n" + strings.Repeat("}", 32),
	} {
		if r := g.query(q); r.code(t) != "" {
			t.Errorf("got %.200s", r.body)
		}
	}
}

func TestIntrospectionOff(t *testing.T) {
	g := open(t, func(c *Config, _ *auth.Config) { c.NoIntrospection = true })
	for _, q := range []string{introspection, `{__type(name:"Item"){name}}`, "{...F} fragment F on Query{__schema{queryType{name}}}"} {
		if r := g.query(q); r.code(t) != CodeValidation || strings.Contains(r.body, `"data"`) {
			t.Errorf("got %s", r.body)
		}
	}
	if r := g.query("{__typename hello}"); r.body != `{"data":{"__typename":"Query","hello":"world"}}` {
		t.Errorf("got %s", r.body)
	}
}

func TestDocumentCacheIsBounded(t *testing.T) {
	d, err := newDocuments(3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		d.add(fmt.Sprint(i), &document{})
	}
	if d.get("1") != nil || d.get("4") == nil || d.bytes != 3 {
		t.Errorf("%d bytes kept", d.bytes)
	}
	d, err = newDocuments(1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		d.add(fmt.Sprintf("%*d", maxDocumentBytes/16, i), &document{})
		d.add(fmt.Sprintf("%*d", maxDocumentBytes/16, i), &document{})
	}
	if d.bytes > maxDocumentBytes || d.lru.Len() != 16 {
		t.Errorf("%d documents of %d bytes kept", d.lru.Len(), d.bytes)
	}
}

// introspection is what GraphiQL asks: 14 deep.
const introspection = `query IntrospectionQuery{__schema{queryType{name}mutationType{name}subscriptionType{name}types{...FullType}
directives{name description locations args{...InputValue}}}}
fragment FullType on __Type{kind name description fields(includeDeprecated:true){name description args{...InputValue}type{...TypeRef}
isDeprecated deprecationReason}inputFields{...InputValue}interfaces{...TypeRef}enumValues(includeDeprecated:true){name description
isDeprecated deprecationReason}possibleTypes{...TypeRef}}
fragment InputValue on __InputValue{name description type{...TypeRef}defaultValue}
fragment TypeRef on __Type{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name ofType{kind name
ofType{kind name ofType{kind name ofType{kind name ofType{kind name}}}}}}}}}}`
