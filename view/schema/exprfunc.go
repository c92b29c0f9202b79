package schema

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	"github.com/streamgauge/streamgauge/view"
)

// function is one of the language: from one argument that is not null.
type function struct {
	name  string
	takes func(view.Type) bool
	what  string // what it takes, for messages
	gives view.Type
	same  bool // gives the argument's own type
	apply func(view.Value) (view.Value, error)
}

func isText(t view.Type) bool { return t.Kind() == view.StringKind }

// onText is a function from texts to texts.
func onText(f func(string) string) func(view.Value) (view.Value, error) {
	return func(v view.Value) (view.Value, error) { return view.OfString(f(v.Str())), nil }
}

// functions of one argument; min, max and coalesce take several.
func functions() []function {
	number := view.Type.Numeric
	return []function{
		{name: "len", takes: isText, what: "a text", gives: view.Long, apply: func(v view.Value) (view.Value, error) {
			return view.OfInt(int64(utf8.RuneCountInString(v.Str()))), nil
		}},
		{name: "lower", takes: isText, what: "a text", gives: view.String, apply: onText(strings.ToLower)},
		{name: "upper", takes: isText, what: "a text", gives: view.String, apply: onText(strings.ToUpper)},
		{name: "trim", takes: isText, what: "a text", gives: view.String, apply: onText(strings.TrimSpace)},
		{name: "abs", takes: number, what: "a number", same: true, apply: absolute},
		{name: "floor", takes: number, what: "a number", same: true, apply: rounding(math.Floor, func(v view.Value) view.Value { return view.OfDecimal(v.Dec().Floor()) })},
		{name: "ceil", takes: number, what: "a number", same: true, apply: rounding(math.Ceil, func(v view.Value) view.Value { return view.OfDecimal(v.Dec().Ceil()) })},
		{name: "round", takes: number, what: "a number", same: true, apply: rounding(math.Round, func(v view.Value) view.Value { return view.OfDecimal(v.Dec().Round(0)) })},
		{name: "int", takes: func(t view.Type) bool { return t.Numeric() || isText(t) }, what: "a number or a text", gives: view.Long, apply: toInt},
		{name: "float", takes: func(t view.Type) bool { return t.Numeric() || isText(t) }, what: "a number or a text", gives: view.Float, apply: toFloat},
		{name: "string", takes: func(t view.Type) bool { return t != view.NoType }, what: "a value", gives: view.String, apply: toText},
	}
}

func functionNames() string {
	var names []string
	for _, f := range functions() {
		names = append(names, f.name)
	}
	names = append(names, "min", "max", "coalesce")
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (c *exprCompiler) call(n ast.Node, name string, arguments []ast.Node) (*node, error) {
	several := name == "min" || name == "max" || name == "coalesce"
	i := slices.IndexFunc(functions(), func(f function) bool { return f.name == name })
	if i < 0 && !several {
		return nil, failAt(n, "unknown function %s; allowed: %s", name, functionNames())
	}
	args := make([]*node, len(arguments))
	for i, a := range arguments {
		var err error
		if args[i], err = c.compile(a); err != nil {
			return nil, err
		}
	}
	if several {
		return c.several(n, name, args)
	}
	f := functions()[i]
	if len(args) != 1 {
		return nil, failAt(n, "%s takes one argument, %s, not %d", name, f.what, len(args))
	}
	if !f.takes(args[0].typ) {
		return nil, &exprError{at: args[0].at, msg: fmt.Sprintf("%s takes %s, not %s", name, f.what, an(args[0].name()))}
	}
	out := &node{at: n.Location().From, typ: f.gives, eval: unaryEval(args[0].eval, f.apply)}
	if f.same {
		out.typ = args[0].typ
		if name == "abs" && out.typ == view.Int {
			out.typ = view.Long
		}
	}
	return fold(out, args[0])
}

// several is min, max or coalesce of two or more arguments of one type.
func (c *exprCompiler) several(n ast.Node, name string, args []*node) (*node, error) {
	if len(args) < 2 {
		return nil, failAt(n, "%s takes two arguments or more", name)
	}
	out := args[0]
	for _, next := range args[1:] {
		l, r, err := unify(out, next, "the arguments of "+name)
		if err != nil {
			return nil, err
		}
		if name == "coalesce" {
			out, err = coalesce(n.Location().From, l, r)
		} else {
			out, err = extreme(n, name, l, r)
		}
		if err != nil {
			return nil, err
		}
		if out, err = fold(out, l, r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func extreme(n ast.Node, name string, l, r *node) (*node, error) {
	if l.typ == view.Boolean {
		return nil, failAt(n, "%s takes numbers, texts and times, not a Boolean", name)
	}
	sign := 1
	if name == "max" {
		sign = -1
	}
	return &node{at: n.Location().From, typ: l.typ, eval: binaryEval(l.eval, r.eval, func(a, b view.Value) (view.Value, error) {
		if sign*view.Compare(a, b) <= 0 {
			return a, nil
		}
		return b, nil
	})}, nil
}

func absolute(v view.Value) (view.Value, error) {
	if view.Compare(v, view.OfInt(0)) < 0 {
		return negative(v)
	}
	return v, nil
}

// rounding leaves integers as they are.
func rounding(float func(float64) float64, decimal func(view.Value) view.Value) func(view.Value) (view.Value, error) {
	return func(v view.Value) (view.Value, error) {
		switch v.Kind() {
		case view.FloatKind:
			return view.OfFloat(float(v.Float())), nil
		case view.DecimalKind:
			return decimal(v), nil
		}
		return v, nil
	}
}

// toInt cuts a fraction off; a text that is no whole number is null.
func toInt(v view.Value) (view.Value, error) {
	switch v.Kind() {
	case view.StringKind:
		n, err := view.ParseText(strings.TrimSpace(v.Str()), view.Long)
		if err != nil {
			return view.Null, nil
		}
		return n, nil
	case view.FloatKind:
		f := math.Trunc(v.Float())
		if f < -1<<63 || f >= 1<<63 {
			return view.Null, fmt.Errorf("int(%v): %w", v.Float(), ErrOverflow)
		}
		return view.OfInt(int64(f)), nil
	case view.DecimalKind:
		d := v.Dec().Truncate(0)
		if !d.BigInt().IsInt64() {
			return view.Null, fmt.Errorf("int(%s): %w", d, ErrOverflow)
		}
		return view.OfInt(d.IntPart()), nil
	}
	return v, nil
}

// toFloat of a text that is no number is null.
func toFloat(v view.Value) (view.Value, error) {
	if v.Kind() == view.StringKind {
		f, err := strconv.ParseFloat(strings.TrimSpace(v.Str()), 64)
		if err != nil {
			return view.Null, nil
		}
		return view.OfFloat(f), nil
	}
	return view.OfFloat(v.Float()), nil
}

// toText is the value as JSON has it, without quotes.
func toText(v view.Value) (view.Value, error) {
	switch v.Kind() {
	case view.StringKind:
		return v, nil
	case view.TimeKind:
		return view.OfString(string(view.AppendTime(nil, v.Int()))), nil
	case view.DurationKind:
		return view.OfString(view.FormatDuration(v.Int())), nil
	case view.DecimalKind:
		return view.OfString(v.Dec().String()), nil
	}
	return view.OfString(string(v.AppendJSON(nil))), nil
}
