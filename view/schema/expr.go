package schema

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/streamgauge/streamgauge/view"
)

// Bounds of one expression.
const (
	maxExprText  = 4096 // bytes
	maxExprNodes = 500
)

// ErrOverflow is integer arithmetic beyond 64 bits.
var ErrOverflow = errors.New("the number exceeds 64 bits")

// scope is what an expression may name: the fields of a source, or the columns
// of a view.
type scope struct {
	what   string // "fields of Flight"
	fields []variable
	hint   map[string]string // names that exist but may not be used here, and why
	broken map[string]bool   // names that exist and are wrong: already noted
}

// variable is one name of a scope; its place is the value's in the list that the
// expression is evaluated over.
type variable struct {
	name string
	typ  view.Type // NoType: the place holds nothing that may be named
}

func (s *scope) find(n string) int {
	return slices.IndexFunc(s.fields, func(f variable) bool { return f.name == n && f.typ != view.NoType })
}

func (s *scope) names() string {
	var names []string
	for _, f := range s.fields {
		if f.typ != view.NoType {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// program is a compiled expression.
type program struct {
	text string
	eval view.Expr
	typ  view.Type
	used []int // the places of the scope that it names, ascending
}

// exprError is what is wrong in an expression, and where: characters from its
// beginning.
type exprError struct {
	at    int
	msg   string
	noted bool // follows from a mistake that was noted already
}

func (e *exprError) Error() string { return e.msg }

// compileExpr parses and types an expression over a scope. Its value follows
// SQL's rules for null: arithmetic and comparisons with null are null, and, or
// and not are three-valued. The error is an *exprError.
func compileExpr(s *scope, text string) (*program, error) {
	if len(text) > maxExprText {
		return nil, &exprError{msg: fmt.Sprintf("the expression is %d bytes long, the limit is %d", len(text), maxExprText)}
	}
	if !utf8.ValidString(text) {
		return nil, &exprError{msg: "the expression is not UTF-8"}
	}
	if strings.TrimSpace(text) == "" {
		return nil, &exprError{msg: "the expression is empty"}
	}
	config := conf.CreateNew()
	config.MaxNodes = maxExprNodes
	config.DisableIfOperator = true
	tree, err := parser.ParseWithConfig(text, config)
	if err != nil {
		return nil, parseError(text, err)
	}
	c := &exprCompiler{scope: s, source: []rune(text)}
	n, err := c.compile(tree.Node)
	if err != nil {
		return nil, err
	}
	if n.isNil() {
		return nil, &exprError{msg: "the expression is nil; it must have a value"}
	}
	slices.Sort(c.used)
	return &program{text: strings.TrimSpace(text), eval: n.eval, typ: n.typ, used: slices.Compact(c.used)}, nil
}

// compileWhere is compileExpr for a condition: it must be a Boolean, and null
// counts as false.
func compileWhere(s *scope, text string) (*program, error) {
	p, err := compileExpr(s, text)
	if err != nil {
		return nil, err
	}
	if p.typ != view.Boolean {
		return nil, &exprError{msg: fmt.Sprintf("must be a Boolean, not %s; compare it with something", an(p.typ))}
	}
	eval := p.eval
	p.eval = func(values []view.Value) (view.Value, error) {
		v, err := eval(values)
		return view.OfBool(v.Bool()), err
	}
	return p, nil
}

// longLiteral is where the first run of digits that no integer holds begins:
// the parser points behind it.
func longLiteral(text string) int {
	for _, loc := range digits.FindAllStringIndex(text, -1) {
		if _, err := strconv.ParseInt(text[loc[0]:loc[1]], 10, 64); err != nil {
			return utf8.RuneCountInString(text[:loc[0]])
		}
	}
	return 0
}

var digits = regexp.MustCompile(`[0-9]{19,}`)

func parseError(text string, err error) error {
	var f *file.Error
	if errors.As(err, &f) {
		msg := strings.TrimPrefix(f.Message, "compilation failed: ")
		if strings.Contains(msg, "maximum allowed nodes") {
			msg = fmt.Sprintf("the expression has over %d parts", maxExprNodes)
		}
		at := f.From
		switch {
		case msg == `unexpected token Operator("=")`:
			msg = "unexpected =; a comparison is =="
		case strings.HasPrefix(msg, "invalid integer literal"):
			at, msg = longLiteral(text), "an integer beyond 64 bits"
		}
		return &exprError{at: at, msg: msg}
	}
	return &exprError{msg: err.Error()}
}

// fieldProgram is the program of a plain field.
func fieldProgram(s *scope, place int) *program {
	return &program{
		text: s.fields[place].name,
		typ:  s.fields[place].typ,
		used: []int{place},
		eval: func(values []view.Value) (view.Value, error) { return values[place], nil },
	}
}

// convertible says whether every value of one type is one of the other
// (view.Convert never fails).
func convertible(from, to view.Type) bool {
	switch {
	case from == to:
		return true
	case from == view.String || from == view.ID:
		return to == view.String || to == view.ID
	case from == view.Int:
		return to == view.Long || to == view.Float || to == view.Decimal
	case from == view.Long:
		return to == view.Float || to == view.Decimal
	}
	return false
}

// convertsTo lists the types that a type's values convert to.
func convertsTo(from view.Type) string {
	var names []string
	for t := view.String; t <= view.Duration; t++ {
		if convertible(from, t) {
			names = append(names, t.String())
		}
	}
	return oneOf(names)
}
