package resolve

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// asked notes the queries that reach the views, and answers each from one part.
type asked struct {
	queries []*read.Query
	part    read.Part
}

func (a *asked) Read(_ context.Context, qs []*read.Query) ([]*read.Result, []error) {
	a.queries = append(a.queries, qs...)
	rs := make([]*read.Result, len(qs))
	for i, q := range qs {
		rs[i] = &read.Result{Rows: make([]*read.Row, len(q.Keys)), Parts: []read.Part{a.part}}
	}
	return rs, make([]error, len(qs))
}

func (a *asked) Watch(_ context.Context, q *read.Query, _ time.Duration) (<-chan read.Update, error) {
	a.queries = append(a.queries, q)
	return nil, nil
}

// What an operation demands is demanded of each of its reads: of a root field, of
// a nested lookup, of one written by hand, and of a subscription.
func TestDemandOfTheWholeOperation(t *testing.T) {
	for _, d := range []*read.Demand{nil, {MaxAge: 5000}} {
		views := &asked{}
		v := Batch(views, func(string) bool { return true })
		ctx := t.Context()
		if d != nil {
			ctx = read.WithDemand(ctx, d)
		}
		op := BeginOperation(ctx)
		root := LookupQuery("totals", []view.Value{view.OfString("k")})
		maker := func(*read.Row, []read.Part) *int { return nil }
		if _, err := One(op, v, root, maker); err != nil {
			t.Fatal(err)
		}
		parents := []*string{new("a"), new("b")}
		key := func(p *string) []view.Value { return []view.Value{view.OfString(*p)} }
		of := func(keys ...[]view.Value) *read.Query { return LookupQuery("airports", keys...) }
		if _, err := OneEach(op, v, parents, key, of, maker); err != nil {
			t.Fatal(err)
		}
		own := &read.Demand{ActiveOnly: true}
		v.Read(op, []*read.Query{{Store: "totals"}, {Store: "totals", Demand: own}})
		if _, err := v.Watch(ctx, root, 0); err != nil {
			t.Fatal(err)
		}
		if len(views.queries) != 5 {
			t.Fatalf("%d queries", len(views.queries))
		}
		for i, q := range views.queries {
			want := d
			if i == 3 {
				want = own
			}
			if q.Demand != want {
				t.Errorf("query %d demands %+v, want %+v", i, q.Demand, want)
			}
		}
		if root.Demand != nil {
			t.Error("the query was changed")
		}
	}
}

// The token of the operation has seen what its reads have, and what was demanded
// of other partitions.
func TestTokenOfTheOperation(t *testing.T) {
	mark := read.MarkOf("totals")
	now, old := read.Incarnation(mark, [16]byte{15: 2}), read.Incarnation(mark, [16]byte{15: 1})
	other := read.Incarnation(read.MarkOf("hours"), [16]byte{15: 1})
	views := &asked{part: read.Part{Partition: 1, Incarnation: now, Seq: 9, AsOf: 1, Reset: true}}
	at := func(incarnation [16]byte, partition int32, seq uint64) read.Position {
		return read.Position{Incarnation: incarnation, Partition: partition, Seq: seq}
	}
	ctx := BeginOperation(read.WithDemand(t.Context(), &read.Demand{AtLeast: []read.Position{at(now, 0, 4), at(old, 1, 70), at(other, 1, 3)}}))
	if _, err := Count(ctx, Batch(views, func(string) bool { return true }), SizeQuery("totals")); err != nil {
		t.Fatal(err)
	}
	ext := Collected(ctx)
	got, err := read.DecodeToken(ext["token"].(string))
	want := []read.Position{at(now, 0, 4), at(now, 1, 9), at(other, 1, 3)}
	slices.SortFunc(want, func(a, b read.Position) int {
		return slices.Compare(append(a.Incarnation[:], byte(a.Partition)), append(b.Incarnation[:], byte(b.Partition)))
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	b, err := json.Marshal(ext["views"])
	if err != nil {
		t.Fatal(err)
	}
	var f map[string]struct{ Reset *bool }
	if err := json.Unmarshal(b, &f); err != nil || f[""].Reset == nil || !*f[""].Reset {
		t.Errorf("%s, %v", b, err)
	}
	// Without @read there is none.
	ctx = BeginOperation(t.Context())
	if _, err := Count(ctx, views, SizeQuery("totals")); err != nil {
		t.Fatal(err)
	}
	if ext := Collected(ctx); ext["token"] != nil || ext["views"] == nil {
		t.Errorf("%v", ext)
	}
}
