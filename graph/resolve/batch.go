package resolve

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/vektah/gqlparser/v2/ast"
)

// batchWait is how long the reads of an operation wait for its other root
// fields: those whose arguments do not do never come.
const batchWait = time.Millisecond

// Batching views collect the reads of one operation's root fields and send them
// together, so that they travel as one request an instance. Nested reads are
// batched by their list already. All reads demand what the operation does.
type batching struct {
	read.Views
	isRead func(field string) bool
}

// Batch makes views that collect. isRead tells the root fields that read views.
func Batch(v read.Views, isRead func(field string) bool) read.Views {
	return &batching{Views: v, isRead: isRead}
}

// operation is what the reads of one operation share.
type operation struct {
	collector
	batch
	demand *read.Demand // nil: none
}

type operationKey struct{}

func operationOf(ctx context.Context) *operation {
	o, _ := ctx.Value(operationKey{}).(*operation)
	return o
}

// BeginOperation prepares a context for one operation: its root reads travel
// together, and the freshness of all is noted.
func BeginOperation(ctx context.Context) context.Context {
	return context.WithValue(ctx, operationKey{}, &operation{demand: read.DemandOf(ctx)})
}

// demanding is a query that demands what its operation does.
func demanding(q *read.Query, d *read.Demand) *read.Query {
	if d == nil || q.Demand != nil {
		return q
	}
	c := *q
	c.Demand = d
	return &c
}

// Watch watches a query, demanding what its subscription does.
func (b *batching) Watch(ctx context.Context, q *read.Query, every time.Duration) (<-chan read.Update, error) {
	return b.Views.Watch(ctx, demanding(q, read.DemandOf(ctx)), every)
}

// batch is the reads of one operation under way.
type batch struct {
	mu      sync.Mutex // guards the following
	expect  int        // root reads that may still come
	queries []*read.Query
	results []*read.Result
	errs    []error
	sent    bool
	done    chan struct{}
}

// Read sends a root field's query together with its siblings'.
func (b *batching) Read(ctx context.Context, queries []*read.Query) ([]*read.Result, []error) {
	op := operationOf(ctx)
	if op != nil && op.demand != nil {
		queries = slices.Clone(queries)
		for i, q := range queries {
			queries[i] = demanding(q, op.demand)
		}
	}
	fc := graphql.GetFieldContext(ctx)
	if op == nil || len(queries) != 1 || fc == nil || fc.Object != "Query" {
		return b.Views.Read(ctx, queries)
	}
	at, lead, alone := op.join(ctx, queries[0], b.isRead)
	if alone {
		return b.Views.Read(ctx, queries)
	}
	if lead {
		op.send(ctx, b.Views)
	}
	select {
	case <-op.done:
	case <-time.After(batchWait):
		op.send(ctx, b.Views)
		select {
		case <-op.done:
		case <-ctx.Done():
			return []*read.Result{nil}, []error{ctx.Err()}
		}
	}
	return op.results[at : at+1], op.errs[at : at+1]
}

// join adds a query; lead says that it was the last one expected, alone that it
// is to go by itself.
func (o *batch) join(ctx context.Context, q *read.Query, isRead func(string) bool) (at int, lead, alone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sent {
		return 0, false, true
	}
	if len(o.queries) == 0 {
		if o.expect = rootReads(ctx, isRead); o.expect <= 1 {
			o.sent = true
			return 0, false, true
		}
		o.done = make(chan struct{})
	}
	o.queries = append(o.queries, q)
	o.expect--
	return len(o.queries) - 1, o.expect == 0, false
}

func rootReads(ctx context.Context, isRead func(string) bool) int {
	op := graphql.GetOperationContext(ctx)
	if root := op.Operation.SelectionSet; len(root) == 1 {
		if _, ok := root[0].(*ast.Field); ok {
			return 1
		}
	}
	n := 0
	for _, f := range graphql.CollectFields(op, op.Operation.SelectionSet, []string{"Query"}) {
		if isRead(f.Name) {
			n++
		}
	}
	return n
}

// send asks for everything that has joined; once.
func (o *batch) send(ctx context.Context, v read.Views) {
	o.mu.Lock()
	if o.sent {
		o.mu.Unlock()
		return
	}
	o.sent = true
	queries := o.queries
	o.mu.Unlock()
	// Those who wait get an answer even if reading panics.
	o.results, o.errs = make([]*read.Result, len(queries)), make([]error, len(queries))
	for i := range o.errs {
		o.errs[i] = &read.Error{Code: read.Internal}
	}
	defer close(o.done)
	o.results, o.errs = v.Read(ctx, queries)
}
