package schema

import (
	"fmt"

	"github.com/expr-lang/expr/ast"
	"github.com/streamgauge/streamgauge/view"
)

// node is a typed part of an expression. A constant is evaluated already.
type node struct {
	at       int
	typ      view.Type // NoType: nil
	eval     view.Expr
	field    int // 1 + the place of a plain field; 0: anything else
	constant bool
	val      view.Value // of a constant
	exact    view.Value // of a number written with a point: the Decimal that is written
	written  bool       // exact holds
}

func (n *node) isNil() bool { return n.typ == view.NoType }

// exprCompiler turns the parser's tree into nodes.
type exprCompiler struct {
	scope  *scope
	source []rune
	used   []int
}

func failAt(n ast.Node, format string, args ...any) error {
	return &exprError{at: n.Location().From, msg: fmt.Sprintf(format, args...)}
}

func constant(at int, t view.Type, v view.Value) *node {
	return &node{at: at, typ: t, constant: true, val: v, eval: func([]view.Value) (view.Value, error) { return v, nil }}
}

// fold evaluates a node whose parts are all constants.
func fold(n *node, parts ...*node) (*node, error) {
	for _, p := range parts {
		if !p.constant {
			return n, nil
		}
	}
	v, err := n.eval(nil)
	if err != nil {
		return nil, &exprError{at: n.at, msg: err.Error()}
	}
	return constant(n.at, n.typ, v), nil
}

func (c *exprCompiler) compile(n ast.Node) (*node, error) {
	at := 0
	if n != nil {
		at = n.Location().From
	}
	switch n := n.(type) {
	case *ast.NilNode:
		return constant(at, view.NoType, view.Null), nil
	case *ast.BoolNode:
		return constant(at, view.Boolean, view.OfBool(n.Value)), nil
	case *ast.StringNode:
		return constant(at, view.String, view.OfString(n.Value)), nil
	case *ast.IntegerNode:
		return integer(at, int64(n.Value)), nil
	case *ast.FloatNode:
		return c.float(n), nil
	case *ast.IdentifierNode:
		return c.identifier(n)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.conditional(n)
	case *ast.BuiltinNode:
		return c.call(n, n.Name, n.Arguments)
	case *ast.CallNode:
		if f, ok := n.Callee.(*ast.IdentifierNode); ok {
			return c.call(n, f.Value, n.Arguments)
		}
	case *ast.ChainNode:
		return c.compile(n.Node)
	case *ast.MemberNode:
		return c.member(n)
	case *ast.ArrayNode:
		return nil, failAt(n, "a list stands only to the right of in")
	case nil:
		return nil, &exprError{msg: "the expression is not complete"}
	}
	return nil, failAt(n, "this form is not part of the language; allowed: fields, constants, operators, conditions with ?: and the functions %s", functionNames())
}

func integer(at int, n int64) *node {
	t := view.Long
	if n == int64(int32(n)) {
		t = view.Int
	}
	return constant(at, t, view.OfInt(n))
}

// float keeps what is written, so that a Decimal meets it exactly.
func (c *exprCompiler) float(n *ast.FloatNode) *node {
	loc := n.Location()
	out := constant(loc.From, view.Float, view.OfFloat(n.Value))
	if loc.From < loc.To && loc.To <= len(c.source) {
		v, err := view.ParseNumber(string(c.source[loc.From:loc.To]), view.Decimal)
		if err == nil {
			out.exact, out.written = v, true
		}
	}
	return out
}

func (c *exprCompiler) identifier(n *ast.IdentifierNode) (*node, error) {
	i := c.scope.find(n.Value)
	if i < 0 {
		if c.scope.broken[n.Value] {
			return nil, &exprError{noted: true, msg: n.Value + " is wrong itself"}
		}
		if why, ok := c.scope.hint[n.Value]; ok {
			return nil, failAt(n, "%s; %s: %s", why, c.scope.what, c.scope.names())
		}
		return nil, failAt(n, "unknown field %q; %s: %s", n.Value, c.scope.what, c.scope.names())
	}
	c.used = append(c.used, i)
	p := fieldProgram(c.scope, i)
	return &node{at: n.Location().From, typ: p.typ, eval: p.eval, field: i + 1}, nil
}

func (c *exprCompiler) member(n *ast.MemberNode) (*node, error) {
	base, err := c.compile(n.Node)
	if err != nil {
		return nil, err
	}
	return nil, failAt(n, "%s has no fields; nothing here has", an(base.name()))
}

// name is the type's, for messages.
func (n *node) name() string {
	if n.isNil() {
		return "nil"
	}
	return n.typ.String()
}

func (c *exprCompiler) conditional(n *ast.ConditionalNode) (*node, error) {
	cond, err := c.compile(n.Cond)
	if err != nil {
		return nil, err
	}
	if cond.typ != view.Boolean {
		return nil, &exprError{at: cond.at, msg: fmt.Sprintf("the condition before ? must be a Boolean, this is %s", an(cond.name()))}
	}
	yes, err := c.compile(n.Exp1)
	if err != nil {
		return nil, err
	}
	no, err := c.compile(n.Exp2)
	if err != nil {
		return nil, err
	}
	yes, no, err = unify(yes, no, "the two sides of :")
	if err != nil {
		return nil, err
	}
	test, left, right := cond.eval, yes.eval, no.eval
	out := &node{at: cond.at, typ: yes.typ, eval: func(values []view.Value) (view.Value, error) {
		v, err := test(values)
		if err != nil {
			return view.Null, err
		}
		if v.Bool() {
			return left(values)
		}
		return right(values)
	}}
	return fold(out, cond, yes, no)
}

// unify brings two nodes to one type: the wider number, or the one that is not
// nil.
func unify(a, b *node, what string) (*node, *node, error) {
	switch {
	case a.isNil() && b.isNil():
		return nil, nil, &exprError{at: a.at, msg: what + " are both nil"}
	case a.isNil():
		return retype(a, b.typ), b, nil
	case b.isNil():
		return a, retype(b, a.typ), nil
	case a.typ == b.typ:
		return a, b, nil
	case a.written && b.typ == view.Decimal:
		return a.asDecimal(), b, nil
	case b.written && a.typ == view.Decimal:
		return a, b.asDecimal(), nil
	case convertible(a.typ, b.typ):
		return converted(a, b.typ), b, nil
	case convertible(b.typ, a.typ):
		return a, converted(b, a.typ), nil
	}
	return nil, nil, &exprError{at: b.at, msg: fmt.Sprintf("%s are %s and %s; they must be of one type", what, an(a.typ), an(b.typ))}
}

func retype(n *node, t view.Type) *node {
	out := *n
	out.typ = t
	return &out
}

// converted gives a node another type; view.Convert does not fail between
// convertible types.
func converted(n *node, t view.Type) *node {
	if n.typ.Kind() == t.Kind() {
		return retype(n, t)
	}
	if n.constant {
		v, err := view.Convert(n.val, t)
		if err == nil {
			return constant(n.at, t, v)
		}
	}
	eval := n.eval
	return &node{at: n.at, typ: t, eval: func(values []view.Value) (view.Value, error) {
		v, err := eval(values)
		if err != nil {
			return view.Null, err
		}
		return view.Convert(v, t)
	}}
}

// asDecimal is a written number as the exact Decimal.
func (n *node) asDecimal() *node { return constant(n.at, view.Decimal, n.exact) }
