package schema

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/expr-lang/expr/ast"

	"github.com/streamgauge/streamgauge/view"
)

// decimalPlaces is to how many places a quotient of Decimals is rounded.
const decimalPlaces = 16

// arithmetic types an operator on two operands. Int and Long are exact in 64
// bits, a Decimal is exact and takes integers and written numbers with it; a
// Float beside a Decimal must be asked for.
func (c *exprCompiler) arithmetic(n *ast.BinaryNode, l, r *node) (*node, error) {
	op, at := n.Operator, n.Location().From
	if l.isNil() || r.isNil() {
		return nil, failAt(n, "nil has no %s", op)
	}
	if t, f := timeOperator(op, l.typ, r.typ); f != nil {
		return &node{at: at, typ: t, eval: binaryEval(l.eval, r.eval, f)}, nil
	}
	if op == "+" && l.typ.Kind() == view.StringKind && r.typ.Kind() == view.StringKind {
		return &node{at: at, typ: view.String, eval: binaryEval(l.eval, r.eval, func(a, b view.Value) (view.Value, error) {
			return view.OfString(a.Str() + b.Str()), nil
		})}, nil
	}
	if !l.typ.Numeric() || !r.typ.Numeric() {
		return nil, failAt(n, "%s does not take %s and %s; allowed: two numbers%s", op, an(l.typ), an(r.typ), alsoAllowed(op))
	}
	if op == "**" || op == "^" {
		return c.power(n, l, r)
	}
	switch {
	case l.typ == view.Decimal || r.typ == view.Decimal:
		l, r = numberAs(l, view.Decimal), numberAs(r, view.Decimal)
		if l.typ == view.Float || r.typ == view.Float {
			return nil, failAt(n, "a Decimal and a Float do not mix exactly; write float(…) around the Decimal")
		}
		return &node{at: at, typ: view.Decimal, eval: binaryEval(l.eval, r.eval, decimalOperator(op))}, nil
	case op == "/" || l.typ == view.Float || r.typ == view.Float:
		return &node{at: at, typ: view.Float, eval: binaryEval(l.eval, r.eval, floatOperator(op))}, nil
	}
	return &node{at: at, typ: view.Long, eval: binaryEval(l.eval, r.eval, integerOperator(op))}, nil
}

func alsoAllowed(op string) string {
	switch op {
	case "+":
		return ", two texts, a DateTime and a Duration, two Durations"
	case "-":
		return ", two DateTimes, a DateTime and a Duration, two Durations"
	}
	return ""
}

// timeOperator is + and − of times and spans; nil for anything else.
func timeOperator(op string, l, r view.Type) (view.Type, func(a, b view.Value) (view.Value, error)) {
	if op != "+" && op != "-" {
		return view.NoType, nil
	}
	f := integerOperator(op)
	as := func(of func(int64) view.Value) func(a, b view.Value) (view.Value, error) {
		return func(a, b view.Value) (view.Value, error) {
			v, err := f(a, b)
			if err != nil {
				return view.Null, err
			}
			return of(v.Int()), nil
		}
	}
	switch {
	case l == view.DateTime && r == view.DateTime && op == "-":
		return view.Duration, as(view.OfDuration)
	case l == view.DateTime && r == view.Duration, l == view.Duration && r == view.DateTime && op == "+":
		return view.DateTime, as(view.OfTime)
	case l == view.Duration && r == view.Duration:
		return view.Duration, as(view.OfDuration)
	}
	return view.NoType, nil
}

func integerOperator(op string) func(a, b view.Value) (view.Value, error) {
	f := map[string]func(a, b int64) (int64, bool){
		"+": addInts, "-": subtractInts, "*": multiplyInts,
		"%": func(a, b int64) (int64, bool) { return a % b, true },
	}[op]
	return func(a, b view.Value) (view.Value, error) {
		if op == "%" && b.Int() == 0 {
			return view.Null, nil
		}
		n, ok := f(a.Int(), b.Int())
		if !ok {
			return view.Null, fmt.Errorf("%d %s %d: %w", a.Int(), op, b.Int(), ErrOverflow)
		}
		return view.OfInt(n), nil
	}
}

func addInts(a, b int64) (int64, bool) {
	n := a + b
	return n, (n > a) == (b > 0)
}

func subtractInts(a, b int64) (int64, bool) {
	n := a - b
	return n, (n < a) == (b > 0)
}

func multiplyInts(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	if (a < 0) != (b < 0) {
		return int64(-lo), hi == 0 && lo <= 1<<63
	}
	return int64(lo), hi == 0 && lo < 1<<63
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func floatOperator(op string) func(a, b view.Value) (view.Value, error) {
	return func(a, b view.Value) (view.Value, error) {
		x, y := a.Float(), b.Float()
		switch op {
		case "+":
			x += y
		case "-":
			x -= y
		case "*":
			x *= y
		case "/":
			x /= y // by zero: not finite, so null
		case "%":
			x = math.Mod(x, y)
		}
		return view.OfFloat(x), nil
	}
}

func decimalOperator(op string) func(a, b view.Value) (view.Value, error) {
	return func(a, b view.Value) (view.Value, error) {
		x, y := a.Dec(), b.Dec()
		switch op {
		case "+":
			return view.OfDecimal(x.Add(y)), nil
		case "-":
			return view.OfDecimal(x.Sub(y)), nil
		case "*":
			return view.OfDecimal(x.Mul(y)), nil
		}
		if y.IsZero() {
			return view.Null, nil
		}
		if op == "%" {
			return view.OfDecimal(x.Mod(y)), nil
		}
		return view.OfDecimal(x.DivRound(y, decimalPlaces)), nil
	}
}

// power of integers is exact when the exponent is a constant from 0 up, and a
// Float otherwise.
func (c *exprCompiler) power(n *ast.BinaryNode, l, r *node) (*node, error) {
	at := n.Location().From
	if l.typ == view.Decimal || r.typ == view.Decimal {
		return nil, failAt(n, "%s does not take a Decimal; write float(…) around it, or multiply", n.Operator)
	}
	whole := l.typ != view.Float && r.typ != view.Float && r.constant && r.val.Int() >= 0
	if !whole {
		return &node{at: at, typ: view.Float, eval: binaryEval(l.eval, r.eval, func(a, b view.Value) (view.Value, error) {
			return view.OfFloat(math.Pow(a.Float(), b.Float())), nil
		})}, nil
	}
	exponent := r.val.Int()
	return &node{at: at, typ: view.Long, eval: unaryEval(l.eval, func(a view.Value) (view.Value, error) {
		return powerInt(a.Int(), exponent)
	})}, nil
}

func powerInt(base, exponent int64) (view.Value, error) {
	switch base { // the only ones whose powers stay small
	case 0, 1:
		if exponent == 0 {
			return view.OfInt(1), nil
		}
		return view.OfInt(base), nil
	case -1:
		return view.OfInt(1 - 2*(exponent&1)), nil
	}
	n, ok := int64(1), true
	for range min(exponent, 64) {
		if n, ok = multiplyInts(n, base); !ok {
			return view.Null, fmt.Errorf("%d ** %d: %w", base, exponent, ErrOverflow)
		}
	}
	return view.OfInt(n), nil
}

func negative(v view.Value) (view.Value, error) {
	switch v.Kind() {
	case view.FloatKind:
		return view.OfFloat(-v.Float()), nil
	case view.DecimalKind:
		return view.OfDecimal(v.Dec().Neg()), nil
	}
	if v.Int() == math.MinInt64 {
		return view.Null, fmt.Errorf("-(%d): %w", v.Int(), ErrOverflow)
	}
	if v.Kind() == view.DurationKind {
		return view.OfDuration(-v.Int()), nil
	}
	return view.OfInt(-v.Int()), nil
}
