package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// freshness is what an answer says of one of its fields.
type freshness struct {
	AsOf    *time.Time `json:"asOf"`
	Lag     int64      `json:"lag"`
	Standby bool       `json:"standby"`
	Partial bool       `json:"partial"`
	Missing []struct {
		Partition int    `json:"partition"`
		Reason    string `json:"reason"`
	} `json:"missing"`
	Token string `json:"token"`
}

// asOf is in milliseconds; 0: unknown.
func (f freshness) asOf() int64 {
	if f.AsOf == nil {
		return 0
	}
	return f.AsOf.UnixMilli()
}

// outdated says whether what is missing is so for its age alone.
func (f freshness) outdated() bool {
	for _, m := range f.Missing {
		if !strings.HasPrefix(m.Reason, "stale") {
			return false
		}
	}
	return f.Partial
}

// answer is what came back for an operation, or one event of a subscription.
type answer struct {
	status  int
	headers map[string]string
	text    string
	data    json.RawMessage
	views   map[string]freshness // by the field's place
	code    string               // of the first error
	err     error                // there is no good answer
}

// body is a request's.
func body(query string, vars map[string]any) []byte {
	b, err := json.Marshal(map[string]any{"query": query, "variables": vars})
	if err != nil {
		panic(err) // texts and numbers alone
	}
	return b
}

// post asks and reads the answer.
func post(ctx context.Context, c *http.Client, addr string, request []byte, within time.Duration) answer {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/graphql", bytes.NewReader(request))
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{status: resp.StatusCode, text: string(text), err: err}
	}
	a := parse(text)
	a.status = resp.StatusCode
	a.headers = map[string]string{}
	for k, v := range resp.Header {
		a.headers[k] = v[0]
	}
	return a
}

// parse reads a GraphQL response; any error in it makes it no good answer.
func parse(text []byte) answer {
	a := answer{text: string(text)}
	var r struct {
		Data   json.RawMessage
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
		Extensions struct{ Views map[string]freshness }
	}
	if err := json.Unmarshal(text, &r); err != nil {
		a.err = fmt.Errorf("not a GraphQL answer: %w", err)
		return a
	}
	a.data, a.views = r.Data, r.Extensions.Views
	if len(r.Errors) > 0 {
		a.code = r.Errors[0].Extensions.Code
		a.err = fmt.Errorf("%s: %s", a.code, r.Errors[0].Message)
	}
	return a
}
