package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// directive is @read as the schema that is served has it; the zero value: it has
// none.
type directive struct {
	atLeast, maxAge string // the arguments' types
}

// findDirective asks an instance for its directives.
func findDirective(ctx context.Context, c *http.Client, in *instance) (directive, error) {
	const query = `{ __schema { directives { name args { name type { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } }`
	a := post(ctx, c, in.http, body(query, nil), 5*time.Second)
	if a.err != nil {
		return directive{}, fmt.Errorf("ask %s for its schema: %w", in.name, a.err)
	}
	var r struct {
		Schema struct {
			Directives []struct {
				Name string
				Args []struct {
					Name string
					Type typeRef
				}
			}
		} `json:"__schema"`
	}
	if err := json.Unmarshal(a.data, &r); err != nil {
		return directive{}, fmt.Errorf("the schema of %s: %w", in.name, err)
	}
	var d directive
	for _, x := range r.Schema.Directives {
		for _, arg := range x.Args {
			switch {
			case x.Name == "read" && arg.Name == "atLeast":
				d.atLeast = arg.Type.String()
			case x.Name == "read" && arg.Name == "maxAge":
				d.maxAge = arg.Type.String()
			}
		}
	}
	return d, nil
}

type typeRef struct {
	Kind, Name string
	OfType     *typeRef
}

func (t *typeRef) String() string {
	switch {
	case t == nil:
		return ""
	case t.Kind == "NON_NULL":
		return t.OfType.String() + "!"
	case t.Kind == "LIST":
		return "[" + t.OfType.String() + "]"
	}
	return t.Name
}

// place is a partition of an incarnation.
type place struct {
	incarnation [16]byte
	partition   int32
}

// tokens are the newest positions that a client has seen.
type tokens map[place]uint64

// take remembers a token's positions.
func (t tokens) take(token string) error {
	positions, err := read.DecodeToken(token)
	if err != nil {
		return err
	}
	for _, p := range positions {
		at := place{p.Incarnation, p.Partition}
		t[at] = max(t[at], p.Seq)
	}
	return nil
}

// behind says where a token is older than what is known.
func (t tokens) behind(token string) (string, error) {
	positions, err := read.DecodeToken(token)
	if err != nil {
		return "", err
	}
	for _, p := range positions {
		if want := t[place{p.Incarnation, p.Partition}]; p.Seq < want {
			return fmt.Sprintf("partition %d answered at seq %d, demanded was %d", p.Partition, p.Seq, want), nil
		}
	}
	return "", nil
}

// text is a token of all that is known; "": nothing is.
func (t tokens) text() string {
	if len(t) == 0 {
		return ""
	}
	parts := make([]read.Part, 0, len(t))
	for at, seq := range t {
		parts = append(parts, read.Part{Partition: at.partition, Incarnation: at.incarnation, Seq: seq})
	}
	return read.EncodeToken(parts)
}

// demand is what an operation asks beyond its fields.
type demand struct {
	kind   string // query or subscription
	token  string
	maxAge time.Duration // 0: none
}

// operation is a document and its variables.
func (d directive) operation(selection string, want demand) (string, map[string]any) {
	var params, args []string
	vars := map[string]any{}
	if d.atLeast != "" && want.token != "" {
		params, args = append(params, "$token: "+d.atLeast), append(args, "atLeast: $token")
		vars["token"] = want.token
		if strings.HasPrefix(d.atLeast, "[") {
			vars["token"] = []string{want.token}
		}
	}
	if d.maxAge != "" && want.maxAge > 0 {
		params, args = append(params, "$maxAge: "+d.maxAge), append(args, "maxAge: $maxAge")
		vars["maxAge"] = want.maxAge.String()
	}
	if len(args) == 0 {
		return want.kind + " { " + selection + " }", vars
	}
	return fmt.Sprintf("%s(%s) @read(%s) { %s }", want.kind, strings.Join(params, ", "), strings.Join(args, ", "), selection), vars
}
