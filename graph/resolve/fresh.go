package resolve

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// Freshness is how an answer stands.
type Freshness struct {
	AsOf    *DateTime           `json:"asOf,omitempty"`
	Lag     int64               `json:"lag"`
	Standby bool                `json:"standby"`
	Partial bool                `json:"partial"`
	Missing []*MissingPartition `json:"missing"`
	Token   string              `json:"token"`
}

// MissingPartition is a partition that did not answer.
type MissingPartition struct {
	Partition int    `json:"partition"`
	Reason    string `json:"reason"`
}

// PageInfo is where a page stands among the others.
type PageInfo struct {
	HasNextPage     bool    `json:"hasNextPage"`
	HasPreviousPage bool    `json:"hasPreviousPage"`
	StartCursor     *string `json:"startCursor,omitempty"`
	EndCursor       *string `json:"endCursor,omitempty"`
}

// FreshnessOf sums up the parts of an answer.
func FreshnessOf(parts []read.Part) *Freshness {
	f := read.FreshnessOf(parts)
	out := &Freshness{Lag: f.Lag, Standby: f.Standby, Partial: f.Partial(), Missing: []*MissingPartition{}, Token: f.Token}
	if f.AsOf != 0 {
		t := DateTime(f.AsOf)
		out.AsOf = &t
	}
	for _, m := range f.Missing {
		out.Missing = append(out.Missing, &MissingPartition{Partition: int(m.Partition), Reason: m.Reason})
	}
	return out
}

// RowFreshness is the freshness of one row: its partition's.
func RowFreshness(parts []read.Part, partition int32) *Freshness {
	for i := range parts {
		if parts[i].Partition == partition {
			return FreshnessOf(parts[i : i+1])
		}
	}
	return FreshnessOf(nil)
}

// collector keeps the freshness of one operation's reads by field, for
// the extensions. Safe for concurrent use.
type collector struct {
	noting sync.Mutex // guards noted
	noted  []noted
}

// noted is a field that was read, and where its answer came from.
type noted struct {
	field *graphql.FieldContext // nil: path says it
	path  string
	parts []read.Part
}

// Collected are the operation's extensions; nil: none. views has what was noted,
// by the field's place in the response; token, of an operation with @read, what
// all of its reads have seen, and what was demanded of others.
func Collected(ctx context.Context) map[string]any {
	c := operationOf(ctx)
	if c == nil {
		return nil
	}
	c.noting.Lock()
	views := viewNotes(c.noted)
	c.noted = nil
	c.noting.Unlock()
	if s := subscriptionOf(ctx); s != nil {
		if root, parts := s.left(); root != "" {
			views = append(views, noted{path: root, parts: parts})
		}
	}
	if len(views) == 0 {
		return nil
	}
	out := map[string]any{"views": views}
	if c.demand != nil {
		out["token"] = views.token(c.demand.AtLeast)
	}
	return out
}

// viewNotes write themselves as an object of Freshness by the field's place.
type viewNotes []noted

// AppendJSON appends the object.
func (v viewNotes) AppendJSON(b []byte) []byte {
	sep := byte('{')
	for i := range v {
		b = append(b, sep)
		b = view.AppendJSONString(b, v[i].where())
		b = append(b, ':')
		b = appendFreshness(b, v[i].parts)
		sep = ','
	}
	return append(b, '}')
}

// token is what the reads have seen together. What was demanded stays in it
// where it concerns other partitions: who returns the newest token alone must not
// see them go back.
func (v viewNotes) token(demanded []read.Position) string {
	type place struct {
		store     read.Mark
		partition int32
	}
	of := func(p *read.Position) place { return place{read.Mark(p.Incarnation[:len(read.Mark{})]), p.Partition} }
	var all []read.Position
	answered := make(map[place]bool)
	for i := range v {
		all = append(all, read.PositionsOf(v[i].parts)...)
	}
	for i := range all {
		answered[of(&all[i])] = true
	}
	for i := range demanded {
		if !answered[of(&demanded[i])] {
			all = append(all, demanded[i])
		}
	}
	return read.EncodePositions(all)
}

// MarshalJSON is AppendJSON.
func (v viewNotes) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

func (n *noted) where() string {
	if n.field == nil {
		return n.path
	}
	return fieldPath(n.field)
}

// fieldPath is a field's place in the response without the places in lists: a
// read below a list is made once for all of its elements.
func fieldPath(f *graphql.FieldContext) string {
	var names []string
	for ; f != nil; f = f.Parent {
		if f.Field.Field != nil {
			names = append(names, f.Field.Alias)
		}
	}
	slices.Reverse(names)
	return strings.Join(names, ".")
}

func appendFreshness(b []byte, parts []read.Part) []byte {
	f := read.FreshnessOf(parts)
	b = append(b, '{')
	if f.AsOf != 0 {
		b = append(b, `"asOf":`...)
		b = view.OfTime(f.AsOf).AppendJSON(b)
		b = append(b, ',')
	}
	b = append(b, `"lag":`...)
	b = strconv.AppendInt(b, f.Lag, 10)
	b = append(b, `,"standby":`...)
	b = strconv.AppendBool(b, f.Standby)
	b = append(b, `,"partial":`...)
	b = strconv.AppendBool(b, f.Partial())
	if f.Reset {
		b = append(b, `,"reset":true`...)
	}
	b = append(b, `,"missing":[`...)
	for i, m := range f.Missing {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"partition":`...)
		b = strconv.AppendInt(b, int64(m.Partition), 10)
		b = append(b, `,"reason":`...)
		b = append(view.AppendJSONString(b, m.Reason), '}')
	}
	b = append(b, `],"token":"`...)
	b = append(b, f.Token...)
	return append(b, `"}`...)
}

// note keeps the freshness of the field that ctx resolves.
func note(ctx context.Context, parts []read.Part) {
	c := operationOf(ctx)
	if c == nil {
		return
	}
	c.noting.Lock()
	defer c.noting.Unlock()
	c.noted = append(c.noted, noted{field: graphql.GetFieldContext(ctx), parts: parts})
}
