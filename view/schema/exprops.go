package schema

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/streamgauge/streamgauge/view"
)

func (c *exprCompiler) unary(n *ast.UnaryNode) (*node, error) {
	x, err := c.compile(n.Node)
	if err != nil {
		return nil, err
	}
	at, eval := n.Location().From, x.eval
	switch n.Operator {
	case "not", "!":
		if x.typ != view.Boolean {
			return nil, failAt(n, "%s needs a Boolean, not %s; it binds tightly: write not (a == b)", n.Operator, an(x.name()))
		}
		return fold(&node{at: at, typ: view.Boolean, eval: func(values []view.Value) (view.Value, error) {
			v, err := eval(values)
			if err != nil || v.IsNull() {
				return view.Null, err
			}
			return view.OfBool(!v.Bool()), nil
		}}, x)
	case "+":
		if x.typ.Numeric() {
			return x, nil
		}
	case "-":
		if x.written {
			out := constant(at, view.Float, view.OfFloat(-x.val.Float()))
			out.exact, out.written = view.OfDecimal(x.exact.Dec().Neg()), true
			return out, nil
		}
		if x.typ.Numeric() || x.typ == view.Duration {
			return c.negate(at, x)
		}
	}
	return nil, failAt(n, "%s needs a number, not %s", n.Operator, an(x.name()))
}

func (c *exprCompiler) negate(at int, x *node) (*node, error) {
	t := x.typ
	if t == view.Int {
		t = view.Long
	}
	return fold(&node{at: at, typ: t, eval: unaryEval(x.eval, negative)}, x)
}

// unaryEval applies a function to a value that is not null.
func unaryEval(x view.Expr, f func(view.Value) (view.Value, error)) view.Expr {
	return func(values []view.Value) (view.Value, error) {
		v, err := x(values)
		if err != nil || v.IsNull() {
			return view.Null, err
		}
		return f(v)
	}
}

// binaryEval applies a function to two values neither of which is null.
func binaryEval(l, r view.Expr, f func(a, b view.Value) (view.Value, error)) view.Expr {
	return func(values []view.Value) (view.Value, error) {
		a, err := l(values)
		if err != nil || a.IsNull() {
			return view.Null, err
		}
		b, err := r(values)
		if err != nil || b.IsNull() {
			return view.Null, err
		}
		return f(a, b)
	}
}

func (c *exprCompiler) binary(n *ast.BinaryNode) (*node, error) {
	if n.Operator == "in" {
		return c.in(n)
	}
	l, err := c.compile(n.Left)
	if err != nil {
		return nil, err
	}
	r, err := c.compile(n.Right)
	if err != nil {
		return nil, err
	}
	var out *node
	switch n.Operator {
	case "and", "&&", "or", "||":
		out, err = c.logic(n, l, r)
	case "==", "!=", "<", "<=", ">", ">=":
		out, err = c.comparison(n, l, r)
	case "??":
		out, err = coalesce(n.Location().From, l, r)
	case "contains", "startsWith", "endsWith", "matches":
		out, err = c.textTest(n, l, r)
	case "+", "-", "*", "/", "%", "**", "^":
		out, err = c.arithmetic(n, l, r)
	default:
		return nil, failAt(n, "operator %s is not part of the language; allowed: + - * / %% ** == != < <= > >= and or not in contains startsWith endsWith matches ?? ?:", n.Operator)
	}
	if err != nil {
		return nil, err
	}
	return fold(out, l, r)
}

// logic is three-valued: false and null is false, true or null is true.
func (c *exprCompiler) logic(n *ast.BinaryNode, l, r *node) (*node, error) {
	for _, x := range []*node{l, r} {
		if x.typ != view.Boolean {
			return nil, &exprError{at: x.at, msg: fmt.Sprintf("%s needs Booleans, this is %s", n.Operator, an(x.name()))}
		}
	}
	decides := n.Operator == "or" || n.Operator == "||" // the value that settles it alone
	left, right := l.eval, r.eval
	return &node{at: n.Location().From, typ: view.Boolean, eval: func(values []view.Value) (view.Value, error) {
		a, err := left(values)
		if err != nil || !a.IsNull() && a.Bool() == decides {
			return a, err
		}
		b, err := right(values)
		if err != nil || !b.IsNull() && b.Bool() == decides {
			return b, err
		}
		if a.IsNull() {
			return view.Null, nil
		}
		return b, nil
	}}, nil
}

// coalesce is the first value that is not null.
func coalesce(at int, l, r *node) (*node, error) {
	l, r, err := unify(l, r, "the two sides of ??")
	if err != nil {
		return nil, err
	}
	left, right := l.eval, r.eval
	return &node{at: at, typ: l.typ, eval: func(values []view.Value) (view.Value, error) {
		v, err := left(values)
		if err != nil || !v.IsNull() {
			return v, err
		}
		return right(values)
	}}, nil
}

// in is SQL's: null when nothing matches and something is null.
func (c *exprCompiler) in(n *ast.BinaryNode) (*node, error) {
	x, err := c.compile(n.Left)
	if err != nil {
		return nil, err
	}
	list, ok := n.Right.(*ast.ArrayNode)
	if !ok {
		return nil, failAt(n, "to the right of in stands a list: in ['a', 'b']")
	}
	if x.isNil() {
		return nil, failAt(n, "nil is in no list; allowed: == nil")
	}
	parts := []*node{x}
	tests := make([]view.Expr, 0, len(list.Nodes))
	for _, e := range list.Nodes {
		m, err := c.compile(e)
		if err != nil {
			return nil, err
		}
		if m.isNil() {
			return nil, failAt(e, "nil in a list matches nothing; allowed: == nil")
		}
		left, right, err := matched(e, x, m)
		if err != nil {
			return nil, err
		}
		parts = append(parts, m)
		tests = append(tests, compareEval("==", left, right))
	}
	return fold(&node{at: n.Location().From, typ: view.Boolean, eval: anyOf(tests)}, parts...)
}

func anyOf(tests []view.Expr) view.Expr {
	return func(values []view.Value) (view.Value, error) {
		answer := view.OfBool(false)
		for _, test := range tests {
			v, err := test(values)
			if err != nil || v.Bool() {
				return v, err
			}
			if v.IsNull() {
				answer = view.Null
			}
		}
		return answer, nil
	}
}

func (c *exprCompiler) textTest(n *ast.BinaryNode, l, r *node) (*node, error) {
	for _, x := range []*node{l, r} {
		if x.typ.Kind() != view.StringKind {
			return nil, &exprError{at: x.at, msg: fmt.Sprintf("%s needs texts, this is %s", n.Operator, an(x.name()))}
		}
	}
	test := map[string]func(s, part string) bool{
		"contains": strings.Contains, "startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix,
	}[n.Operator]
	if n.Operator == "matches" {
		if !r.constant {
			return nil, &exprError{at: r.at, msg: "matches needs a constant pattern"}
		}
		re, err := regexp.Compile(r.val.Str())
		if err != nil {
			return nil, &exprError{at: r.at, msg: strings.TrimPrefix(err.Error(), "error parsing regexp: ") + "; allowed: RE2 patterns"}
		}
		test = func(s, _ string) bool { return re.MatchString(s) }
	}
	return &node{at: n.Location().From, typ: view.Boolean, eval: binaryEval(l.eval, r.eval, func(a, b view.Value) (view.Value, error) {
		return view.OfBool(test(a.Str(), b.Str())), nil
	})}, nil
}
