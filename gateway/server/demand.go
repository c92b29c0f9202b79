package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// demandName is that of the directive, and of what is kept of it with an
// operation.
const demandName = "read"

// demand reads the operation's @read, if it has one, and keeps it with the
// operation.
func demand(oc *graphql.OperationContext) gqlerror.List {
	d := oc.Operation.Directives.ForName(demandName)
	if d == nil {
		return nil
	}
	out := &read.Demand{}
	for _, a := range d.Arguments {
		v, err := a.Value.Value(oc.Variables)
		if err == nil && v != nil {
			err = demandArgument(out, a.Name, v)
		}
		if err != nil {
			return misplaced(a, err)
		}
	}
	oc.Stats.SetExtension(demandName, out)
	return nil
}

// withDemand hands the operation's demand to its resolvers.
func withDemand(ctx context.Context, oc *graphql.OperationContext) context.Context {
	if d, ok := oc.Stats.GetExtension(demandName).(*read.Demand); ok {
		return read.WithDemand(ctx, d)
	}
	return ctx
}

// demandArgument takes one argument that is not null.
func demandArgument(d *read.Demand, name string, v any) error {
	switch name {
	case "maxAge":
		text, ok := v.(string)
		if !ok {
			return errors.New(`write it as "90s", "15m", "1h30m" or "7d"`)
		}
		ms, err := view.ParseDuration(text)
		if err == nil && ms == 0 {
			err = errors.New("must be positive")
		}
		d.MaxAge = ms
		return err
	case "from":
		switch v {
		case "ANY":
		case "ACTIVE":
			d.ActiveOnly = true
		default:
			return errors.New("ANY or ACTIVE")
		}
	case "atLeast":
		text, ok := v.(string)
		if !ok {
			return read.ErrToken
		}
		var err error
		d.AtLeast, err = read.DecodeToken(text)
		return err
	case "complete":
		complete, ok := v.(bool)
		if !ok {
			return errors.New("true or false")
		}
		d.Complete = complete
	default:
		return errors.New("maxAge, from, atLeast and complete are known")
	}
	return nil
}

func misplaced(a *ast.Argument, err error) gqlerror.List {
	e := &gqlerror.Error{
		Message:    shorten(fmt.Sprintf("%s of @read: %v", a.Name, err)),
		Extensions: map[string]any{"code": CodeBadInput},
	}
	if a.Position != nil {
		e.Locations = []gqlerror.Location{{Line: a.Position.Line, Column: a.Position.Column}}
	}
	return gqlerror.List{e}
}
