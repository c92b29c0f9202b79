package server

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHTTPAudits replays the audits of GraphQL over HTTP: what a server MUST do
// (ids as graphql-http's auditor names them), and the SHOULD that decide about
// statuses and media types.
func TestHTTPAudits(t *testing.T) {
	g := open(t, nil)
	const (
		plain    = "application/json"
		response = "application/graphql-response+json"
	)
	type want struct {
		status  int // 0: 2xx
		media   string
		data    string // "": no data entry
		hasErrs bool
	}
	ok := func(media string) want { return want{200, media, `{"__typename":"Query"}`, false} }
	typename := `{"query":"{ __typename }"`
	tests := []struct {
		id, contentType, accept, body string
		want                          want
	}{
		// MUST
		{"4655 accepts application/json", plain, plain, typename + "}", ok(plain)},
		{"82A3 answers in UTF-8", plain, plain, typename + "}", ok(plain)},
		{"BF61 takes UTF-8", plain + "; charset=utf-8", plain, typename + "}", ok(plain)},
		{"78D5 assumes UTF-8", plain, plain, `{"query":"query($t: String!){say(text:$t)}","variables":{"t":"žluť"}}`, want{200, plain, `{"say":"žluť"}`, false}},
		{"2C94 takes POST", plain, plain, typename + "}", ok(plain)},
		{"03D4 takes application/json", plain, plain, typename + "}", ok(plain)},
		{"13EE takes a text as query", plain, plain, typename + "}", ok(plain)},
		{"B8B3 takes a text as operationName", plain, plain, `{"operationName":"Query","query":"query Query { __typename }"}`, ok(plain)},
		{"0220 takes null as variables", plain, plain, typename + `,"variables":null}`, ok(plain)},
		{"0221 takes null as operationName", plain, plain, typename + `,"operationName":null}`, ok(plain)},
		{"0222 takes null as extensions", plain, plain, typename + `,"extensions":null}`, ok(plain)},
		{"28B9 takes a map as variables", plain, plain, `{"query":"query Type($name: String!) { __type(name: $name) { name } }","variables":{"name":"Item"}}`, want{200, plain, `{"__type":{"name":"Item"}}`, false}},
		{"1B7A takes a map as extensions", plain, plain, typename + `,"extensions":{"some":"value"}}`, ok(plain)},
		// SHOULD
		{"22EB accepts application/graphql-response+json", plain, response, typename + "}", ok(response)},
		{"47DE takes */* for application/json", plain, "*/*", typename + "}", ok(plain)},
		{"80D8 assumes application/json", plain, "", typename + "}", ok(plain)},
		{"9ABE refuses a POST without content type", "", plain, typename + "}", want{415, plain, "", true}},
		{"34A2 takes a text as query", plain, response, typename + "}", ok(response)},
		{"8161 takes a text as operationName", plain, response, `{"operationName":"Query","query":"query Query { __typename }"}`, ok(response)},
		{"94B0 takes null as variables", plain, response, typename + `,"variables":null}`, ok(response)},
		{"428F takes a map as extensions", plain, response, typename + `,"extensions":{"some":"value"}}`, ok(response)},
		{"572B parse failure", plain, plain, `{"query":"{"}`, want{200, plain, "", true}},
		{"865D parse failure", plain, response, `{"query":"{"}`, want{400, response, "", true}},
		{"FDE2 validation failure", plain, plain, `{"query":"{ 8f31403dfe404bccbb0e835f2629c6a7 }"}`, want{200, plain, "", true}},
		{"51FE validation failure", plain, response, `{"query":"{ nope }"}`, want{400, response, "", true}},
		{"7B9B coercion failure", plain, plain, `{"query":"query($n: Long!){echo(n:$n)}","variables":{"n":null}}`, want{200, plain, "", true}},
		{"86EE coercion failure", plain, response, `{"query":"query($n: Long!){echo(n:$n)}","variables":{"n":null}}`, want{400, response, "", true}},
		// MAY, as decided: 400 for what is no well-formed request, whatever is accepted
		{"A5BF no body", plain, plain, "", want{400, plain, "", true}},
		{"BCF8 not JSON", plain, plain, "{ not JSON }", want{400, plain, "", true}},
		{"423L no query", plain, plain, `{"notquery":"{ __typename }"}`, want{400, plain, "", true}},
		{"LKJ0 query is no text", plain, plain, `{"query":{"obj":"ect"}}`, want{400, plain, "", true}},
		{"6C00 operationName is no text", plain, plain, typename + `,"operationName":["array"]}`, want{400, plain, "", true}},
		{"4760 variables is no map", plain, plain, typename + `,"variables":7}`, want{400, plain, "", true}},
		{"58B0 extensions is no map", plain, plain, typename + `,"extensions":"string"}`, want{400, plain, "", true}},
	}
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			h := map[string]string{}
			if tt.contentType != "" {
				h["Content-Type"] = tt.contentType
			}
			if tt.accept != "" {
				h["Accept"] = tt.accept
			}
			r := g.do("POST", "/graphql", tt.body, h)
			if r.status != tt.want.status {
				t.Errorf("status %d, want %d: %s", r.status, tt.want.status, r.body)
			}
			if got := r.header.Get("Content-Type"); got != tt.want.media+"; charset=utf-8" {
				t.Errorf("Content-Type %q", got)
			}
			if !utf8.ValidString(r.body) {
				t.Error("not UTF-8")
			}
			var m map[string]json.RawMessage
			if err := json.Unmarshal([]byte(r.body), &m); err != nil {
				t.Fatalf("%v: %s", err, r.body)
			}
			if got := string(m["data"]); got != tt.want.data {
				t.Errorf("data %q, want %q", got, tt.want.data)
			}
			if (m["errors"] != nil) != tt.want.hasErrs {
				t.Errorf("errors %s", m["errors"])
			}
			if strings.Contains(r.body, "8f31403dfe404bcc") && tt.want.status == 400 {
				t.Errorf("echoes the request: %s", r.body)
			}
		})
	}
}
