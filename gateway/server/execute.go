package server

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/complexity"
	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"
)

// prepare makes the context of the operation that the request wants: its
// document found, its variables coerced, its complexity within the limit, its
// demands understood.
func (s *Server) prepare(ctx context.Context, q *request, header http.Header) (*graphql.OperationContext, gqlerror.List) {
	d, errs := s.document(ctx, q.query)
	if errs != nil {
		return nil, errs
	}
	op := d.ast.Operations.ForName(q.operationName)
	if op == nil {
		if q.operationName == "" {
			return nil, problem(CodeValidation, "the document has several operations: operationName must name one")
		}
		return nil, problem(CodeValidation, "the document has no operation of that name")
	}
	oc := &graphql.OperationContext{
		RawQuery: q.query, OperationName: q.operationName, Extensions: q.extensions, Headers: header,
		Doc: d.ast, Operation: op,
		DisableIntrospection:   s.noIntrospection,
		RecoverFunc:            s.recovered,
		ResolverMiddleware:     plainField,
		RootResolverMiddleware: plainRoot,
	}
	cost, fixed := d.costs[op]
	if !fixed {
		var err error
		if oc.Variables, err = validator.VariableValues(s.schema.Schema(), op, q.variables); err != nil {
			return nil, variableProblem(err)
		}
		cost = complexity.Calculate(ctx, s.schema, op, oc.Variables)
	}
	if over(cost, s.limits.Complexity) {
		return nil, problem(CodeLimit, "complexity %d: at most %d", cost, s.limits.Complexity)
	}
	if errs := demand(oc); errs != nil {
		return nil, errs
	}
	return oc, nil
}

func plainField(ctx context.Context, next graphql.Resolver) (any, error) { return next(ctx) }

func plainRoot(ctx context.Context, next graphql.RootResolver) graphql.Marshaler { return next(ctx) }

// variableProblem says which variable is wrong. Its path is no response path.
func variableProblem(err error) gqlerror.List {
	e := gqlerror.WrapIfUnwrapped(err)
	path := strings.TrimPrefix(e.Path.String(), "variable.")
	return problem(CodeBadInput, "variable %s: %s", shorten(path), shorten(e.Message))
}

// execute runs a query or mutation to its response.
func (s *Server) execute(ctx context.Context, oc *graphql.OperationContext) *graphql.Response {
	bounded := withTimeout(ctx, s.limits.Time)
	defer bounded.cancel()
	ctx = graphql.WithOperationContext(withDemand(bounded, oc), oc)
	var collect func() map[string]any
	if s.extensions != nil {
		ctx, collect = s.extensions(ctx)
	}
	ctx = graphql.WithResponseContext(ctx, s.present, s.recovered)
	resp := s.schema.Exec(ctx)(ctx)
	resp.Errors = append(resp.Errors, graphql.GetErrors(ctx)...)
	if collect != nil {
		resp.Extensions = collect()
	}
	return resp
}

// sink takes what an operation over a stream yields. Both return false when
// nobody listens any more. They keep nothing of what they are given.
type sink interface {
	next(response []byte) bool
	fail(gqlerror.List) bool // the operation ends with it
}

// run runs an operation to its end or the context's, into the sink.
func (s *Server) run(ctx context.Context, oc *graphql.OperationContext, to sink) {
	defer s.guard(to)
	if oc.Operation.Operation == ast.Subscription {
		s.metrics.subscriptions.Inc()
		defer s.metrics.subscriptions.Dec()
		s.subscribe(ctx, oc, to)
		return
	}
	s.emit(s.execute(ctx, oc), to)
}

// guard, deferred, ends an operation that panics outside of its resolvers.
func (s *Server) guard(to sink) {
	if v := recover(); v != nil {
		s.log.Error("panic in an operation", "cause", v, "stack", string(debug.Stack()))
		to.fail(problem(CodeInternal, "internal error"))
	}
}

func (s *Server) emit(resp *graphql.Response, to sink) bool {
	b := buffers.Get().(*buffer)
	defer b.put()
	if err := b.response(resp); err != nil {
		s.log.Error("encoding a response", "cause", err)
		return to.fail(problem(CodeInternal, "internal error"))
	}
	return to.next(b.b)
}

// subscribe sends each event of a subscription to the sink. Each has a context
// of its own for errors and extensions.
func (s *Server) subscribe(ctx context.Context, oc *graphql.OperationContext, to sink) {
	ctx = graphql.WithOperationContext(withDemand(ctx, oc), oc)
	var ending func() error
	if s.ending != nil {
		ctx, ending = s.ending(ctx)
	}
	root := &graphql.FieldContext{Object: "Subscription"}
	if fields := graphql.CollectFields(oc, oc.Operation.SelectionSet, []string{"Subscription"}); len(fields) > 0 {
		root.Field = fields[0]
	}
	start := graphql.WithResponseContext(ctx, s.present, s.recovered)
	next := s.schema.Exec(start)
	if errs := graphql.GetErrors(start); len(errs) > 0 {
		to.fail(errs)
		return
	}
	for ctx.Err() == nil {
		event, collect := ctx, func() map[string]any { return nil }
		if s.extensions != nil {
			event, collect = s.extensions(event)
		}
		// Paths of errors begin with the root field, as they do in a query.
		event = graphql.WithFieldContext(event, root)
		event = graphql.WithResponseContext(event, s.present, s.recovered)
		resp := next(event)
		if resp == nil {
			break
		}
		resp.Errors = append(resp.Errors, graphql.GetErrors(event)...)
		resp.Extensions = collect()
		if !s.emit(resp, to) {
			return
		}
	}
	if ending == nil || ctx.Err() != nil {
		return
	}
	if err := ending(); err != nil {
		to.fail(gqlerror.List{s.present(start, err)})
	}
}

// buffer is a reused piece of memory for requests and responses.
type buffer struct{ b []byte }

// maxKept is the largest buffer kept for reuse.
const maxKept = 64 << 10

var buffers = sync.Pool{New: func() any { return &buffer{b: make([]byte, 0, 4<<10)} }}

func (b *buffer) put() {
	if cap(b.b) > maxKept {
		return
	}
	b.b = b.b[:0]
	buffers.Put(b)
}

// response appends a response: its data as the resolvers wrote it, without
// another pass.
func (b *buffer) response(resp *graphql.Response) error {
	b.b = append(b.b, '{')
	if len(resp.Errors) > 0 {
		e, err := json.Marshal(resp.Errors)
		if err != nil {
			return err
		}
		b.b = append(append(b.b, `"errors":`...), e...)
	}
	if resp.Data != nil {
		if len(resp.Errors) > 0 {
			b.b = append(b.b, ',')
		}
		b.b = append(append(b.b, `"data":`...), resp.Data...)
	}
	if len(b.b) == 1 {
		return errors.New("neither data nor errors")
	}
	if err := b.extensions(resp.Extensions); err != nil {
		return err
	}
	b.b = append(b.b, '}')
	return nil
}

// jsonAppender is an extension that writes itself.
type jsonAppender interface{ AppendJSON(b []byte) []byte }

func (b *buffer) extensions(ext map[string]any) error {
	sep := `,"extensions":{`
	for _, name := range slices.Sorted(maps.Keys(ext)) {
		b.b = append(b.b, sep...)
		b.b = append(strconv.AppendQuote(b.b, name), ':')
		if v, ok := ext[name].(jsonAppender); ok {
			b.b = v.AppendJSON(b.b)
		} else {
			e, err := json.Marshal(ext[name])
			if err != nil {
				return err
			}
			b.b = append(b.b, e...)
		}
		sep = ","
	}
	if len(ext) > 0 {
		b.b = append(b.b, '}')
	}
	return nil
}
