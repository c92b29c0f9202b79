package schema

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/streamgauge/streamgauge/view"
)

// rowDef is a view or a table while it is compiled.
type rowDef struct {
	def   *ast.Definition
	dir   *ast.Directive
	view  *view.View
	table *Table // of a table

	source *sourceDef // of a view; nil where from is wrong
	by     []string   // names of the key columns
	keys   []*program // their values from a record, in key order
	where  *program
	used   map[int]bool // the source's fields that the view needs

	rowExprs      []*columnDef
	brokenColumns map[string]bool
	meaning       map[string]string // of a column, for its fingerprint
	broken        bool              // its key is not known
}

func (c *compiler) newRow(def *ast.Definition, d *ast.Directive) *rowDef {
	r := &rowDef{
		def: def, dir: d,
		view:          &view.View{Name: def.Name},
		used:          map[int]bool{},
		brokenColumns: map[string]bool{},
		meaning:       map[string]string{},
	}
	c.rows[def.Name] = r
	return r
}

func (r *rowDef) breakColumn(name string) { r.brokenColumns[name] = true }

// addView compiles a view: its source, key, window and columns.
func (c *compiler) addView(def *ast.Definition) {
	r := c.newRow(def, def.Directives.ForName("view"))
	r.source = c.viewSource(r)
	r.by = c.viewBy(r)
	if r.source != nil {
		if r.where = c.expr(r.source.scope, r.dir, "where", true); r.where != nil {
			r.need(r.where)
		}
	}
	c.viewWindow(r)
	for _, f := range def.Fields {
		c.addViewField(r, f)
	}
	c.orderKeys(r)
	c.finishRow(r)
}

// need notes that a program's fields are needed where the view is kept.
func (r *rowDef) need(p *program) {
	for _, i := range p.used {
		r.used[i] = true
	}
}

// viewSource is the one source that from names.
func (c *compiler) viewSource(r *rowDef) *sourceDef {
	list, given := listOf(r.dir, "from")
	switch {
	case !given:
		return nil
	case len(list) == 0:
		c.mistakes.add(argAt(r.dir, "from"), "from is empty; it names one source: %s", c.sourceNames())
		return nil
	case len(list) > 1:
		c.mistakes.add(valueAt(list[1]), "a view of several sources is not supported yet; from names one")
		return nil
	}
	name := list[0].Raw
	if s := c.sources[name]; s != nil {
		return s
	}
	switch d := c.types[name]; {
	case d == nil:
		c.mistakes.add(valueAt(list[0]), "unknown source %q in from; sources: %s", name, c.sourceNames())
	case c.kindOf(d) == tableKind || c.kindOf(d) == viewKind:
		c.mistakes.add(valueAt(list[0]), "%s is a %s; from names a source: %s", name, map[kind]string{tableKind: "table", viewKind: "view"}[c.kindOf(d)], c.sourceNames())
	default:
		c.mistakes.add(valueAt(list[0]), "%s is no source; sources: %s", name, c.sourceNames())
	}
	return nil
}

func (c *compiler) sourceNames() string {
	var names []string
	for n := range c.sources {
		names = append(names, n)
	}
	if len(names) == 0 {
		return "there is none; write a type with @source"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// viewBy is the names of the key columns, checked for repeats only.
func (c *compiler) viewBy(r *rowDef) []string {
	list, given := listOf(r.dir, "by")
	if given && len(list) == 0 {
		c.mistakes.add(argAt(r.dir, "by"), "by: [] (one row for the whole stream) is not supported yet; by names a column or more")
	}
	r.broken = !given || len(list) == 0
	var by []string
	for _, v := range list {
		if slices.Contains(by, v.Raw) {
			c.mistakes.add(valueAt(v), "by names %s twice", v.Raw)
			continue
		}
		by = append(by, v.Raw)
		if r.def.Fields.ForName(v.Raw) == nil {
			c.mistakes.add(valueAt(v), "by: %s has no field %q; a key column is a field of the view, from the source's field of that name or with @expr", r.def.Name, v.Raw)
			r.broken = true
		}
	}
	return by
}

func (c *compiler) viewWindow(r *rowDef) {
	d := r.def.Directives.ForName("window")
	if d == nil {
		return
	}
	size, ok := durationOf(d, "size")
	retain, hasRetain := durationOf(d, "retain")
	grace, _ := durationOf(d, "grace")
	r.view.Window = &view.Window{Size: size, Grace: grace, Retain: retain}
	if ok && size == 0 {
		c.mistakes.add(argAt(d, "size"), "size of @window must be more than 0")
	}
	if ok && hasRetain && retain < size+grace {
		c.mistakes.add(argAt(d, "retain"), "retain of @window must be at least size and grace together, %s", view.FormatDuration(size+grace))
	}
}

func (c *compiler) addViewField(r *rowDef, f *ast.FieldDefinition) {
	def := c.roleOf(r, f)
	isKey := slices.Contains(r.by, f.Name)
	switch {
	case def == nil && isKey:
		if !r.brokenColumns[f.Name] {
			c.mistakes.add(f.Position, "by names %s, which is no column", f.Name)
		}
		r.broken = true
	case def == nil:
	case def.dir != nil && !slices.Contains(findDirective(def.dir.Name).places, viewField):
		r.breakColumn(f.Name) // noted with its directive
		r.broken = r.broken || isKey
	case isKey:
		c.addKey(r, def)
	case def.dir == nil && len(r.by) == 0:
		r.breakColumn(f.Name) // it may be the key, which is not known
	case def.dir == nil:
		c.mistakes.add(f.Position, "%s.%s has no role; allowed: to be named in by, or one of %s", r.def.Name, f.Name, directivesAt(viewField))
		r.breakColumn(f.Name)
	default:
		c.addColumn(r, def)
	}
}

// addKey adds a key column: the source's field of that name, or @expr over its
// fields.
func (c *compiler) addKey(r *rowDef, def *columnDef) {
	f := def.field
	if def.dir != nil && def.dir.Name != "expr" {
		c.mistakes.add(directiveAt(def.dir), "%s is in by, it cannot have @%s too; allowed on a key column: @expr", f.Name, def.dir.Name)
		r.broken = true
		return
	}
	c.checkKeyName(f)
	col := view.Column{Name: f.Name, Type: def.typ, NonNull: f.Type.NonNull, Role: view.KeyRole}
	if !def.typ.Keyable() {
		c.mistakes.add(typeAt(f.Type), "%s is in by and cannot be %s; allowed: String, ID, Int, Long, Boolean, DateTime or Duration", f.Name, an(def.typ))
	}
	if p := c.keyProgram(r, def); p != nil {
		if !slices.Contains(sameType(p.typ), def.typ) && !(def.dir != nil && convertible(p.typ, def.typ)) {
			allowed := typeNames(sameType(p.typ))
			if def.dir != nil {
				allowed = convertsTo(p.typ)
			}
			c.mistakes.add(typeAt(f.Type), "%s is in by and of type %s in the source, not %s; allowed: %s", f.Name, p.typ, def.typ, allowed)
		}
		p = p.as(def.typ)
		col.Expr = p.eval
		r.need(p)
		r.meaning[f.Name] = "key " + r.meaningOf(p)
		r.keys = append(r.keys, p)
	}
	r.view.Columns = append(r.view.Columns, col)
}

// checkKeyName refuses a key column that the fixed arguments of reads would
// hide.
func (c *compiler) checkKeyName(f *ast.FieldDefinition) {
	if optionTypes[f.Name] != "" || f.Name == plannedOption {
		c.mistakes.add(f.Position, "a key column cannot be named %s: reads have a fixed argument of that name", f.Name)
	}
}

// keyProgram gives a key column's value from a record.
func (c *compiler) keyProgram(r *rowDef, def *columnDef) *program {
	if r.source == nil {
		return nil
	}
	s := r.source.scope
	if def.dir != nil {
		return c.expr(s, def.dir, "of", false)
	}
	if i := s.find(def.field.Name); i >= 0 {
		return fieldProgram(s, i)
	}
	if !s.broken[def.field.Name] {
		c.mistakes.add(def.field.Position, "by: %s has no field %q; allowed: @expr on it, or one of the %s: %s", r.source.def.Name, def.field.Name, s.what, s.names())
	}
	return nil
}

// as gives the program's values another type, to which they convert.
func (p *program) as(t view.Type) *program {
	if p.typ.Kind() == t.Kind() {
		out := *p
		out.typ = t
		return &out
	}
	eval := p.eval
	out := *p
	out.typ = t
	out.eval = func(values []view.Value) (view.Value, error) {
		v, err := eval(values)
		if err != nil {
			return view.Null, err
		}
		return view.Convert(v, t)
	}
	return &out
}

// orderKeys puts the key columns, found in the order of the fields, into the
// order of by.
func (c *compiler) orderKeys(r *rowDef) {
	programs := map[string]*program{}
	n := 0
	for i := range r.view.Columns {
		if col := &r.view.Columns[i]; col.Role == view.KeyRole && col.Expr != nil && n < len(r.keys) {
			programs[col.Name] = r.keys[n]
			n++
		}
	}
	r.keys = nil
	for _, name := range r.by {
		i := r.view.Column(name)
		if i < 0 || r.view.Columns[i].Role != view.KeyRole {
			r.broken = true
			continue
		}
		r.view.Keys = append(r.view.Keys, i)
		if p := programs[name]; p != nil {
			r.keys = append(r.keys, p)
		}
	}
}

// finishRow does what needs all columns: expressions over the row, the store.
func (c *compiler) finishRow(r *rowDef) {
	c.compileRowExprs(r)
	d := r.def.Directives.ForName("store")
	r.view.Store = kebab(r.def.Name)
	if v := textOf(d, "name"); v != nil {
		r.view.Store = v.Raw
		if !storeName.MatchString(v.Raw) {
			c.mistakes.add(valueAt(v), "store %q cannot be part of a topic's name; allowed: letters, digits, '.', '_' and '-', up to 180", shorten(v.Raw))
		}
	}
	r.view.Scope = r.view.Store + ":read"
	if v := textOf(d, "scope"); v != nil {
		r.view.Scope = v.Raw
		if strings.ContainsFunc(v.Raw, unicode.IsSpace) {
			c.mistakes.add(valueAt(v), "scope %q has a space; tokens separate scopes by spaces", shorten(v.Raw))
		}
	}
}

var storeName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,179}$`)

// checkStores wants a name of its own for each store.
func (c *compiler) checkStores() {
	owner := map[string]*rowDef{}
	for _, r := range c.keyed {
		if other := owner[r.view.Store]; other != nil {
			at := r.def.Position
			if v := textOf(r.def.Directives.ForName("store"), "name"); v != nil {
				at = valueAt(v)
			}
			c.mistakes.add(at, "store %q is that of %s already; give one of them another with @store(name:)", r.view.Store, other.def.Name)
			continue
		}
		owner[r.view.Store] = r
	}
}

// kebab turns a type's name into words joined by dashes: AirportTotals is
// airport-totals, HTTPStats is http-stats.
func kebab(name string) string {
	var b strings.Builder
	rs := []rune(name)
	for i, r := range rs {
		if r == '_' {
			b.WriteByte('-')
			continue
		}
		if unicode.IsUpper(r) && i > 0 && rs[i-1] != '_' {
			next := i+1 < len(rs) && unicode.IsLower(rs[i+1])
			if !unicode.IsUpper(rs[i-1]) || next {
				b.WriteByte('-')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Trim(b.String(), "-")
}
