package schema

import (
	"errors"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/streamgauge/streamgauge/view"
)

// columnDef is a field that is a column, with the directive that gives it its
// role; nil where the default decides.
type columnDef struct {
	field *ast.FieldDefinition
	typ   view.Type
	dir   *ast.Directive
}

// Directives that are no role of a column: the field is answered otherwise.
var readDirectives = []string{"lookup", "windows", "range", "top", "size"}

// roleOf sorts a field of a view or a table: a column, or nil when it is
// answered otherwise (a read, a resolver, freshness) or wrong.
func (c *compiler) roleOf(r *rowDef, f *ast.FieldDefinition) *columnDef {
	var roles []*ast.Directive
	other := ""
	for _, d := range f.Directives {
		switch {
		case d.Name == "resolver" || slices.Contains(readDirectives, d.Name):
			other = d.Name
			roles = append(roles, d)
		case findDirective(d.Name) != nil:
			roles = append(roles, d)
		case !slices.Contains(standardDirectives, d.Name) && !c.ownDirectives[d.Name]:
			r.breakColumn(f.Name) // noted with the directives
			return nil
		}
	}
	if len(roles) > 1 && roles[0].Name != roles[1].Name {
		c.mistakes.add(directiveAt(roles[1]), "%s.%s has @%s already; a field has one role", r.def.Name, f.Name, roles[0].Name)
		r.breakColumn(f.Name)
		return nil
	}
	if other != "" {
		return nil
	}
	t, scalar := scalarOf(f.Type)
	if !scalar {
		if !c.isFreshness(f, roles) && c.known(f.Type) {
			c.mistakes.add(typeAt(f.Type), "%s.%s cannot be %s; allowed: %s, Freshness, or one of @lookup, @windows, @resolver", r.def.Name, f.Name, an(f.Type), columnTypes)
		}
		r.breakColumn(f.Name)
		return nil
	}
	if len(f.Arguments) > 0 {
		c.mistakes.add(f.Arguments[0].Position, "%s.%s is a column, it takes no arguments", r.def.Name, f.Name)
	}
	col := &columnDef{field: f, typ: t}
	if len(roles) > 0 {
		col.dir = roles[0]
	}
	return col
}

func (c *compiler) isFreshness(f *ast.FieldDefinition, roles []*ast.Directive) bool {
	return f.Type.NamedType == "Freshness" && len(roles) == 0 && len(f.Arguments) == 0
}

// addColumn adds a column whose directive says what it is.
func (c *compiler) addColumn(r *rowDef, def *columnDef) {
	col := view.Column{Name: def.field.Name, Type: def.typ, NonNull: def.field.Type.NonNull}
	switch d := def.dir; d.Name {
	case "expr":
		col.Role = view.ExprRole
		r.rowExprs = append(r.rowExprs, def)
	case "windowStart", "windowEnd", "windowFinal":
		col.Role = map[string]view.Role{"windowStart": view.StartRole, "windowEnd": view.EndRole, "windowFinal": view.FinalRole}[d.Name]
		c.checkBound(r, def)
	case "id":
		col.Role = view.IDRole
		c.wantType(def, "ID!")
	default:
		col.Role = view.AggRole
		col.Agg = c.aggregate(r, def)
	}
	r.view.Columns = append(r.view.Columns, col)
}

func (c *compiler) checkBound(r *rowDef, def *columnDef) {
	if r.def.Directives.ForName("window") == nil && r.def.Directives.ForName("session") == nil {
		c.mistakes.add(directiveAt(def.dir), "@%s needs a windowed view; %s has no @window", def.dir.Name, r.def.Name)
	}
	if def.dir.Name == "windowFinal" {
		c.wantType(def, "Boolean!")
	} else {
		c.wantType(def, "DateTime!")
	}
}

func (c *compiler) wantType(def *columnDef, want string) {
	if got := def.field.Type; got.String() != want {
		c.mistakes.add(typeAt(got), "%s with @%s must be %s, not %s", def.field.Name, def.dir.Name, want, got)
	}
}

// compileRowExprs compiles the columns computed from the row, once all columns
// are known.
func (c *compiler) compileRowExprs(r *rowDef) {
	s := r.scope()
	for _, def := range r.rowExprs {
		p := c.expr(s, def.dir, "of", false)
		if p == nil {
			continue
		}
		if def.field.Type.NonNull {
			c.mistakes.add(typeAt(def.field.Type), "%s with @expr must be nullable, its value can be null; write %s", def.field.Name, strings.TrimSuffix(def.field.Type.String(), "!"))
		}
		if !convertible(p.typ, def.typ) {
			c.mistakes.add(typeAt(def.field.Type), "%s with @expr is %s; allowed: %s", def.field.Name, an(p.typ), convertsTo(p.typ))
		}
		i := r.view.Column(def.field.Name)
		r.view.Columns[i].Expr = p.eval
		r.meaning[def.field.Name] = "expr of " + p.text
	}
}

// scope is what an expression over the row may name: every column that does
// not itself wait for one.
func (r *rowDef) scope() *scope {
	s := &scope{what: "columns of " + r.def.Name, hint: map[string]string{}, broken: r.brokenColumns}
	for _, col := range r.view.Columns {
		t := col.Type
		if col.Role == view.ExprRole {
			t = view.NoType
			s.hint[col.Name] = col.Name + " is an @expr column itself"
		}
		s.fields = append(s.fields, variable{col.Name, t})
	}
	return s
}

// finishedScope is what an expression over a finished row may name: all of it.
func (r *rowDef) finishedScope() *scope {
	s := &scope{what: "columns of " + r.def.Name, broken: r.brokenColumns}
	for _, col := range r.view.Columns {
		s.fields = append(s.fields, variable{col.Name, col.Type})
	}
	return s
}

// expr compiles an argument that is an expression; nil where it is not given
// or wrong.
func (c *compiler) expr(s *scope, d *ast.Directive, arg string, where bool) *program {
	v := textOf(d, arg)
	if v == nil {
		return nil
	}
	compile := compileExpr
	if where {
		compile = compileWhere
	}
	p, err := compile(s, v.Raw)
	if err != nil {
		c.addExprError(v, arg, err)
		return nil
	}
	return p
}

func (c *compiler) addExprError(v *ast.Value, arg string, err error) {
	var e *exprError
	switch {
	case !errors.As(err, &e):
		c.mistakes.add(valueAt(v), "%s: %s", arg, err)
	case e.noted:
	case strings.HasPrefix(e.msg, "unknown field ") && strings.Contains(e.msg, "; "):
		head, tail, _ := strings.Cut(e.msg, "; ")
		c.mistakes.add(insideAt(v, e.at), "%s in %s; %s", head, arg, tail)
	default:
		c.mistakes.add(insideAt(v, e.at), "%s: %s", arg, e.msg)
	}
}
