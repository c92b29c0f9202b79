package schema

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/streamgauge/streamgauge/view"
)

// record is the scope that the tests evaluate over, and its values.
func record(t testing.TB) (*scope, []view.Value) {
	t.Helper()
	parse := func(text string, typ view.Type) view.Value {
		v, err := view.ParseText(text, typ)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	fields := []struct {
		name  string
		typ   view.Type
		value view.Value
	}{
		{"delay", view.Int, view.OfInt(42)},
		{"id", view.Long, view.OfInt(1780921717355446273)},
		{"big", view.Long, view.OfInt(math.MaxInt64)},
		{"least", view.Long, view.OfInt(math.MinInt64)},
		{"zero", view.Int, view.OfInt(0)},
		{"ratio", view.Float, view.OfFloat(0.25)},
		{"price", view.Decimal, parse("0.1", view.Decimal)},
		{"total", view.Decimal, parse("10.00", view.Decimal)},
		{"origin", view.String, view.OfString("DFW")},
		{"key", view.ID, view.OfString("k1")},
		{"at", view.DateTime, parse("2001-01-10T05:00:00Z", view.DateTime)},
		{"due", view.DateTime, parse("2001-01-10T04:30:00Z", view.DateTime)},
		{"span", view.Duration, view.OfDuration(90_000)},
		{"open", view.Boolean, view.OfBool(true)},
		{"shut", view.Boolean, view.OfBool(false)},
		{"gone", view.Int, view.Null},
		{"lost", view.String, view.Null},
		{"maybe", view.Boolean, view.Null},
	}
	s := &scope{what: "fields of Test"}
	var values []view.Value
	for _, f := range fields {
		s.fields = append(s.fields, variable{f.name, f.typ})
		values = append(values, f.value)
	}
	return s, values
}

// Values of expressions, written as JSON, and their types.
func TestExpr(t *testing.T) {
	tests := []struct {
		expr string
		typ  view.Type
		want string
	}{
		// integers are exact in 64 bits
		{`delay`, view.Int, `42`},
		{`delay + 1`, view.Long, `43`},
		{`2 + 3 * 4`, view.Long, `14`},
		{`(2 + 3) * 4`, view.Long, `20`},
		{`id - 1780921717355446272`, view.Long, `1`},
		{`id > 1780921717355446272`, view.Boolean, `true`},
		{`id > 1780921717355446273`, view.Boolean, `false`},
		{`id == 1780921717355446273`, view.Boolean, `true`},
		{`big - 1`, view.Long, `9223372036854775806`},
		{`least + 1`, view.Long, `-9223372036854775807`},
		{`-delay`, view.Long, `-42`},
		{`delay % 5`, view.Long, `2`},
		{`-delay % 5`, view.Long, `-2`},
		{`least % -1`, view.Long, `0`},
		{`2 ** 10`, view.Long, `1024`},
		{`(-2) ** 63`, view.Long, `-9223372036854775808`},
		{`(-1) ** 1000001`, view.Long, `-1`},
		{`0 ** 0`, view.Long, `1`},
		{`2 ** -1`, view.Float, `0.5`},
		{`delay ** 0.5 > 6.4`, view.Boolean, `true`},
		{`0x10 + 0b11 + 1_000`, view.Long, `1019`},

		// a quotient is a Float; by zero it is null
		{`delay / 4`, view.Float, `10.5`},
		{`7 / 2`, view.Float, `3.5`},
		{`delay / zero`, view.Float, `null`},
		{`zero / zero`, view.Float, `null`},
		{`delay % zero`, view.Long, `null`},
		{`ratio * 2`, view.Float, `0.5`},
		{`ratio + delay`, view.Float, `42.25`},
		{`ratio % 0.1 > 0`, view.Boolean, `true`},
		{`1e308 * 10`, view.Float, `null`},
		{`-0.0`, view.Float, `0`},

		// decimals are exact
		{`price + 0.2`, view.Decimal, `"0.3"`},
		{`price + 0.2 == 0.3`, view.Boolean, `true`},
		{`price * 3`, view.Decimal, `"0.3"`},
		{`delay * price`, view.Decimal, `"4.2"`},
		{`total / 3`, view.Decimal, `"3.3333333333333333"`},
		{`total / 0`, view.Decimal, `null`},
		{`total % 3`, view.Decimal, `"1"`},
		{`price > 0.09999999999999999999`, view.Boolean, `true`},
		{`price == 0.1`, view.Boolean, `true`},
		{`price > -0.5`, view.Boolean, `true`},
		{`total == 10`, view.Boolean, `true`},
		{`total > ratio`, view.Boolean, `true`},
		{`float(total) * ratio`, view.Float, `2.5`},
		{`0.1 + 0.2`, view.Float, `0.30000000000000004`},

		// comparisons across kinds of numbers
		{`delay > 41.5`, view.Boolean, `true`},
		{`ratio < 1`, view.Boolean, `true`},
		{`id > 1780921717355446272.0`, view.Boolean, `true`},
		{`1 < delay < 50`, view.Boolean, `true`},
		{`1 < delay < 20`, view.Boolean, `false`},

		// null
		{`gone + 1`, view.Long, `null`},
		{`gone > 1`, view.Boolean, `null`},
		{`1 > gone`, view.Boolean, `null`},
		{`gone == gone`, view.Boolean, `null`},
		{`gone == nil`, view.Boolean, `true`},
		{`gone != nil`, view.Boolean, `false`},
		{`nil == delay`, view.Boolean, `false`},
		{`nil != lost`, view.Boolean, `false`},
		{`gone ?? 7`, view.Int, `7`},
		{`delay ?? 7`, view.Int, `42`},
		{`gone ?? 7.5`, view.Float, `7.5`},
		{`delay ?? 7.5`, view.Float, `42`},
		{`gone ?? price`, view.Decimal, `"0.1"`},
		{`lost ?? '??'`, view.String, `"??"`},
		{`gone ?? gone`, view.Int, `null`},
		{`-gone`, view.Long, `null`},
		{`lost + 'x'`, view.String, `null`},
		{`len(lost)`, view.Long, `null`},

		// three-valued logic
		{`open and shut`, view.Boolean, `false`},
		{`open and maybe`, view.Boolean, `null`},
		{`maybe and open`, view.Boolean, `null`},
		{`shut and maybe`, view.Boolean, `false`},
		{`maybe and shut`, view.Boolean, `false`},
		{`maybe and maybe`, view.Boolean, `null`},
		{`open or maybe`, view.Boolean, `true`},
		{`maybe or open`, view.Boolean, `true`},
		{`shut or maybe`, view.Boolean, `null`},
		{`maybe or shut`, view.Boolean, `null`},
		{`shut or shut`, view.Boolean, `false`},
		{`not maybe`, view.Boolean, `null`},
		{`!open`, view.Boolean, `false`},
		{`not (delay == 3)`, view.Boolean, `true`},
		{`maybe ? 1 : 2`, view.Int, `2`},
		{`open ? 1 : 2.5`, view.Float, `1`},
		{`shut ? 'a' : nil`, view.String, `null`},
		{`open ? key : origin`, view.String, `"k1"`},
		{`open == shut`, view.Boolean, `false`},

		// texts
		{`origin + '-' + key`, view.String, `"DFW-k1"`},
		{`origin == "DFW"`, view.Boolean, `true`},
		{`key == 'k1'`, view.Boolean, `true`},
		{`origin < 'ORD'`, view.Boolean, `true`},
		{`origin contains 'F'`, view.Boolean, `true`},
		{`origin startsWith 'DF'`, view.Boolean, `true`},
		{`origin endsWith 'X'`, view.Boolean, `false`},
		{`origin matches '^[A-Z]{3}$'`, view.Boolean, `true`},
		{`origin not matches '^D'`, view.Boolean, `false`},
		{`lost contains 'x'`, view.Boolean, `null`},
		{`origin in ['ORD', 'DFW']`, view.Boolean, `true`},
		{`origin not in ['ORD', 'DFW']`, view.Boolean, `false`},
		{`delay in [1, 42.0]`, view.Boolean, `true`},
		{`delay in [1, gone]`, view.Boolean, `null`},
		{`delay in [42, gone]`, view.Boolean, `true`},
		{`gone in [1]`, view.Boolean, `null`},
		{`gone not in [1]`, view.Boolean, `null`},
		{`delay in []`, view.Boolean, `false`},

		// times
		{`at - due`, view.Duration, `"30m"`},
		{`at - due > '15m'`, view.Boolean, `true`},
		{`at > due`, view.Boolean, `true`},
		{`at >= '2001-01-10T05:00:00Z'`, view.Boolean, `true`},
		{`at < '2001-01-10T05:00:00+01:00'`, view.Boolean, `false`},
		{`due + span`, view.DateTime, `"2001-01-10T04:31:30Z"`},
		{`span + due`, view.DateTime, `"2001-01-10T04:31:30Z"`},
		{`at - span`, view.DateTime, `"2001-01-10T04:58:30Z"`},
		{`span - span`, view.Duration, `"0s"`},
		{`span == '90s'`, view.Boolean, `true`},

		// functions
		{`len('Zürich')`, view.Long, `6`},
		{`lower(origin)`, view.String, `"dfw"`},
		{`upper('a') + trim('  b ')`, view.String, `"Ab"`},
		{`abs(-delay)`, view.Long, `42`},
		{`abs(price - 1)`, view.Decimal, `"0.9"`},
		{`floor(2.7) + ceil(2.2)`, view.Float, `5`},
		{`round(2.5)`, view.Float, `3`},
		{`round(-2.5)`, view.Float, `-3`},
		{`floor(price)`, view.Decimal, `"0"`},
		{`ceil(price)`, view.Decimal, `"1"`},
		{`round(total / 3)`, view.Decimal, `"3"`},
		{`round(delay)`, view.Int, `42`},
		{`int(2.9)`, view.Long, `2`},
		{`int(-2.9)`, view.Long, `-2`},
		{`int('9007199254740993')`, view.Long, `9007199254740993`},
		{`int('x')`, view.Long, `null`},
		{`int(total)`, view.Long, `10`},
		{`float('1.5')`, view.Float, `1.5`},
		{`float('NaN')`, view.Float, `null`},
		{`string(delay) + string(price) + string(open)`, view.String, `"420.1true"`},
		{`string(at)`, view.String, `"2001-01-10T05:00:00Z"`},
		{`min(3, delay, 1)`, view.Int, `1`},
		{`max(3, 2.5)`, view.Float, `3`},
		{`max(gone, 1)`, view.Int, `null`},
		{`coalesce(gone, gone, 3)`, view.Int, `3`},
		{`origin | lower()`, view.String, `"dfw"`},
	}
	s, values := record(t)
	for _, test := range tests {
		t.Run(test.expr, func(t *testing.T) {
			p, err := compileExpr(s, test.expr)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.eval(values)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(got.AppendJSON(nil)); text != test.want || p.typ != test.typ {
				t.Errorf("got %s, a %s; want %s, a %s", text, p.typ, test.want, test.typ)
			}
			if !got.IsNull() && got.Kind() != p.typ.Kind() {
				t.Errorf("value of kind %d, typed %s", got.Kind(), p.typ)
			}
		})
	}
}

// What goes beyond 64 bits is an error of the record, never a wrong number.
func TestExprOverflow(t *testing.T) {
	s, values := record(t)
	for _, text := range []string{
		`big + 1`, `least - 1`, `big * 2`, `big * -2`, `least * -1`, `-least`, `abs(least)`,
		`delay * big`, `id * id`, `delay ** 12`, `least - big`, `at + (span * 1 > 0 ? span : span)`,
	} {
		p, err := compileExpr(s, text)
		if strings.HasPrefix(text, "at") {
			if err == nil {
				t.Errorf("%s compiled; a span has no product", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if v, err := p.eval(values); !errors.Is(err, ErrOverflow) {
			t.Errorf("%s gave %s, %v; want ErrOverflow", text, v, err)
		}
	}
}

// A condition that is null does not hold.
func TestWhereOfNull(t *testing.T) {
	s, values := record(t)
	for text, want := range map[string]bool{
		`gone > 1`: false, `not (gone > 1)`: false, `delay > 15`: true, `maybe`: false, `maybe or open`: true,
	} {
		p, err := compileWhere(s, text)
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.eval(values)
		if err != nil || v.IsNull() || v.Bool() != want {
			t.Errorf("%s gave %s, %v; want %t", text, v, err, want)
		}
	}
}

// The places that an expression names, each once, in order.
func TestExprUsed(t *testing.T) {
	s, _ := record(t)
	p, err := compileExpr(s, `ratio > 1 or delay in [zero, delay] ? ratio : 1.5`)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range p.used {
		names = append(names, s.fields[i].name)
	}
	if got := strings.Join(names, " "); got != "delay zero ratio" {
		t.Errorf("used %s", got)
	}
}

// Where in the text a mistake is, counted in characters.
func TestExprMistakes(t *testing.T) {
	tests := []struct {
		expr string
		at   int
		msg  string
	}{
		{`dealy > 15`, 0, `unknown field "dealy"`},
		{`delay > 15 and dealy < 3`, 15, `unknown field "dealy"`},
		{`'é' + dealy`, 6, `unknown field "dealy"`},
		{`delay + origin`, 6, `+ does not take an Int and a String`},
		{`delay == 'x'`, 6, `an Int and a String do not compare`},
		{`open > shut`, 5, `a Boolean has no order`},
		{`delay > nil`, 6, `nil has no order`},
		{`not delay`, 0, `not needs a Boolean`},
		{`-origin`, 0, `- needs a number`},
		{`delay and open`, 0, `and needs Booleans, this is an Int`},
		{`delay ? 1 : 2`, 0, `the condition before ?`},
		{`open ? 1 : 'x'`, 11, `an Int and a String`},
		{`nil ?? nil`, 0, `both nil`},
		{`nil`, 0, `the expression is nil`},
		{`price * ratio`, 6, `a Decimal and a Float do not mix`},
		{`price ** 2`, 6, `** does not take a Decimal`},
		{`origin matches lost`, 15, `matches needs a constant pattern`},
		{`origin matches '('`, 15, `missing closing )`},
		{`origin contains 3`, 16, `contains needs texts, this is an Int`},
		{`delay in 3`, 6, `to the right of in stands a list`},
		{`delay in ['x']`, 10, `an Int and a String do not compare`},
		{`[1, 2]`, 0, `a list stands only to the right of in`},
		{`{a: 1}`, 0, `this form is not part of the language`},
		{`1..5`, 1, `operator .. is not part`},
		{`len(delay)`, 4, `len takes a text, not an Int`},
		{`len()`, 0, `len takes one argument`},
		{`min(1)`, 0, `min takes two arguments or more`},
		{`now()`, 0, `unknown function now`},
		{`let x = 1; x`, 4, `this form is not part`},
		{`origin.code`, 7, `a String has no fields`},
		{`origin[0]`, 6, `a String has no fields`},
		{`delay = 3`, 6, `unexpected =; a comparison is ==`},
		{`99999999999999999999 > delay`, 0, `an integer beyond 64 bits`},
		{`9223372036854775807 + 1`, 20, `exceeds 64 bits`},
		{`at > 'soon'`, 5, `"soon" is no DateTime`},
		{`delay >`, 6, `unexpected token EOF`},
		{``, 0, `is empty`},
		{`1 +` + strings.Repeat(` 1 +`, 600) + ` 1`, 0, `over 500 parts`},
		{strings.Repeat(`(`, 5000), 0, `5000 bytes long`},
	}
	s, _ := record(t)
	for _, test := range tests {
		_, err := compileExpr(s, test.expr)
		var e *exprError
		if !errors.As(err, &e) {
			t.Errorf("%.40s: got %v, want a mistake", test.expr, err)
			continue
		}
		if !strings.Contains(e.msg, test.msg) || e.at != test.at && !strings.Contains(test.msg, "parts") {
			t.Errorf("%.40s: got %d: %s; want %d: %s", test.expr, e.at, e.msg, test.at, test.msg)
		}
	}
}

func FuzzExpr(f *testing.F) {
	for _, seed := range []string{
		`delay > 15`, `gone ?? 7.5`, `origin in ['a', "b"] and not (price * 2 >= 0.30)`, `at - due > '15m' ? 1 : nil`,
		`min(1, delay, ratio) ** 2`, `lost matches '^a+$' || open`, `[1]`, `{a: b}`, `map(origin, #)`, `let x = 1; x`, "`raw`", `a?.b[1:2]`,
	} {
		f.Add(seed)
	}
	s, values := record(f)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := compileExpr(s, text)
		if err != nil {
			var e *exprError
			if !errors.As(err, &e) || e.msg == "" || e.at < 0 || e.at > len(text) {
				t.Fatalf("%q: error %#v", text, err)
			}
			return
		}
		got, err := p.eval(values)
		if err == nil && !got.IsNull() && got.Kind() != p.typ.Kind() {
			t.Fatalf("%q: %s of kind %d, typed %s", text, got, got.Kind(), p.typ)
		}
	})
}

func BenchmarkExpr(b *testing.B) {
	s, values := record(b)
	for _, text := range []string{
		`delay > 15`, `delay > 15 and origin == 'DFW'`, `delay / 4`, `price > 0.05`, `origin in ['ORD', 'ATL', 'DFW']`,
	} {
		p, err := compileExpr(s, text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.eval(values); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
