package schema

import (
	"cmp"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/streamgauge/streamgauge/view"
)

func (c *exprCompiler) comparison(n *ast.BinaryNode, l, r *node) (*node, error) {
	at, op := n.Location().From, n.Operator
	equality := op == "==" || op == "!="
	if l.isNil() || r.isNil() {
		if !equality {
			return nil, failAt(n, "nil has no order; allowed with nil: == and !=")
		}
		return nilTest(at, l, r, op == "=="), nil
	}
	l, r, err := matched(n, l, r)
	if err != nil {
		return nil, err
	}
	if l.typ == view.Boolean && !equality {
		return nil, failAt(n, "a Boolean has no order; allowed: == and !=")
	}
	return &node{at: at, typ: view.Boolean, eval: compareEval(op, l, r)}, nil
}

func nilTest(at int, l, r *node, want bool) *node {
	x := l
	if l.isNil() {
		x = r
	}
	eval := x.eval
	return &node{at: at, typ: view.Boolean, eval: func(values []view.Value) (view.Value, error) {
		v, err := eval(values)
		return view.OfBool(v.IsNull() == want), err
	}}
}

// matched brings two sides to where view.Compare is right: numbers of any
// kinds, or one kind. A constant text beside a time or a span is read as one.
func matched(n ast.Node, l, r *node) (*node, *node, error) {
	var err error
	if l, err = textAs(l, r.typ); err != nil {
		return nil, nil, err
	}
	if r, err = textAs(r, l.typ); err != nil {
		return nil, nil, err
	}
	switch {
	case l.typ.Kind() == r.typ.Kind():
		return l, r, nil
	case l.typ.Numeric() && r.typ.Numeric():
		return numberAs(l, r.typ), numberAs(r, l.typ), nil
	}
	return nil, nil, failAt(n, "%s and %s do not compare", an(l.typ), an(r.typ))
}

// textAs reads a constant text as a time or a span where the other side is one.
func textAs(n *node, t view.Type) (*node, error) {
	if !n.constant || n.typ != view.String || t != view.DateTime && t != view.Duration {
		return n, nil
	}
	v, err := view.ParseText(n.val.Str(), t)
	if err != nil {
		return nil, &exprError{at: n.at, msg: err.Error()}
	}
	return constant(n.at, t, v), nil
}

// numberAs gives a constant number the kind of the other side where that is
// exact, so that comparing it costs nothing and is right.
func numberAs(n *node, t view.Type) *node {
	switch {
	case n.written && t == view.Decimal:
		return n.asDecimal()
	case n.written && t == view.Long:
		if whole, err := view.Convert(n.exact, t); err == nil {
			return constant(n.at, t, whole)
		}
		return n.asDecimal()
	case n.constant && n.typ.Kind() == view.IntKind && t == view.Float:
		if f := float64(n.val.Int()); int64(f) == n.val.Int() && f < 1<<53 && f > -1<<53 {
			return converted(n, t)
		}
	case n.constant && n.typ.Kind() == view.IntKind && t == view.Decimal:
		return converted(n, t)
	}
	return n
}

// order is what an operator makes of the outcomes of a comparison: less, equal
// and greater.
type order [3]view.Value

func orderOf(op string) *order {
	less, equal, greater := strings.Contains(op, "<"), strings.Contains(op, "="), strings.Contains(op, ">")
	if op == "!=" {
		less, equal, greater = true, false, true
	}
	return &order{view.OfBool(less), view.OfBool(equal), view.OfBool(greater)}
}

func (o *order) holds(c int) view.Value { return o[c+1] }

// compareEval compares two sides that comparable has brought together. Numbers
// of one kind, times and texts are compared as they stand; only mixed kinds go
// through view.Compare.
func compareEval(op string, l, r *node) view.Expr {
	o := orderOf(op)
	switch kind := l.typ.Kind(); {
	case l.field > 0 && r.constant && !r.val.IsNull() && kind == view.IntKind && r.typ.Kind() == view.IntKind:
		return compareField(o, l.field-1, r.val.Int())
	case kind == r.typ.Kind() && kind != view.FloatKind && kind != view.StringKind && kind != view.DecimalKind:
		return compareAs(o, l, r, view.Value.Int, cmp.Compare)
	case kind == r.typ.Kind() && kind == view.StringKind:
		return compareAs(o, l, r, view.Value.Str, strings.Compare)
	case isFloat(l) && isFloat(r):
		return compareAs(o, l, r, view.Value.Float, cmp.Compare)
	}
	return binaryEval(l.eval, r.eval, func(a, b view.Value) (view.Value, error) {
		return o.holds(view.Compare(a, b)), nil
	})
}

// compareField is the commonest of all, without copying the value.
func compareField(o *order, place int, want int64) view.Expr {
	return func(values []view.Value) (view.Value, error) {
		v := &values[place]
		if v.IsNull() {
			return view.Null, nil
		}
		return o.holds(cmp.Compare(v.Int(), want)), nil
	}
}

// isFloat says whether a float64 holds every value of the node exactly.
func isFloat(n *node) bool { return n.typ == view.Float || n.typ == view.Int }

// compareAs compares by what get takes out of a value.
func compareAs[T any](o *order, l, r *node, get func(view.Value) T, compare func(a, b T) int) view.Expr {
	left, right := l.eval, r.eval
	if r.constant && !r.val.IsNull() {
		want := get(r.val)
		return func(values []view.Value) (view.Value, error) {
			a, err := left(values)
			if err != nil || a.IsNull() {
				return view.Null, err
			}
			return o.holds(compare(get(a), want)), nil
		}
	}
	return func(values []view.Value) (view.Value, error) {
		a, err := left(values)
		if err != nil || a.IsNull() {
			return view.Null, err
		}
		b, err := right(values)
		if err != nil || b.IsNull() {
			return view.Null, err
		}
		return o.holds(compare(get(a), get(b))), nil
	}
}
