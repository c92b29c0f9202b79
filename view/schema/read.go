package schema

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/streamgauge/streamgauge/view"
)

// readSite is a field that reads a view, while it is compiled.
type readSite struct {
	parent *ast.Definition
	field  *ast.FieldDefinition
	dir    *ast.Directive
	from   *rowDef // of a nested field: the row it is read from
	op     Op
	answer answer
}

func (s *readSite) name() string { return s.parent.Name + "." + s.field.Name }

var ops = map[string]Op{"lookup": Lookup, "windows": Windows, "range": Range, "top": Top, "size": Size}

func (o Op) String() string {
	return [...]string{"lookup", "windows", "range", "top", "size"}[o]
}

// sites are the fields that read, in the order of the file. Root fields that
// say not how they are answered are noted.
func (c *compiler) sites() []*readSite {
	var sites []*readSite
	for _, def := range c.order {
		k := c.kindOf(def)
		if k != rootKind && k != viewKind && k != tableKind {
			continue
		}
		for _, f := range def.Fields {
			site := c.siteOf(def, f)
			if site != nil {
				sites = append(sites, site)
			} else if k == rootKind {
				c.checkAnswered(def, f)
			}
		}
	}
	return sites
}

func (c *compiler) siteOf(def *ast.Definition, f *ast.FieldDefinition) *readSite {
	_, p := c.placesOf(def)
	var site *readSite
	for _, d := range f.Directives {
		op, ok := ops[d.Name]
		if !ok || !slices.Contains(findDirective(d.Name).places, p) {
			continue
		}
		if site != nil {
			if def := c.rows[def.Name]; def == nil { // else noted with its columns
				c.mistakes.add(directiveAt(d), "%s has @%s already; a field is answered in one way", site.name(), site.dir.Name)
			}
			continue
		}
		site = &readSite{parent: def, field: f, dir: d, op: op, from: c.rows[def.Name]}
	}
	if site != nil && f.Directives.ForName("resolver") != nil && site.from == nil {
		c.mistakes.add(directiveAt(f.Directives.ForName("resolver")), "%s has @%s already; a field is answered in one way", site.name(), site.dir.Name)
	}
	return site
}

// checkAnswered wants a root field to say how it is answered. One whose
// directive was refused is not blamed twice.
func (c *compiler) checkAnswered(def *ast.Definition, f *ast.FieldDefinition) {
	for _, d := range f.Directives {
		unknown := findDirective(d.Name) == nil && !slices.Contains(standardDirectives, d.Name) && !c.ownDirectives[d.Name]
		if _, read := ops[d.Name]; read || unknown || d.Name == "resolver" {
			return
		}
	}
	_, p := c.placesOf(def)
	c.mistakes.add(f.Position, "%s.%s does not say how it is answered; allowed: %s", def.Name, f.Name, directivesAt(p))
}

// addRead checks a reading field and adds it to the topology.
func (c *compiler) addRead(site *readSite) {
	if !c.findAnswer(site) {
		return
	}
	c.reads = append(c.reads, site)
	r := &Read{
		Parent: site.parent.Name,
		Field:  site.field.Name,
		Op:     site.op,
		Shape:  site.answer.shape,
		View:   site.answer.row.view,
		Batch:  site.from != nil,
	}
	c.checkTarget(site)
	c.readArguments(site, r)
	if site.op == Size {
		c.checkSizeAnswer(site)
	} else {
		c.checkAnswer(site, r.ListArg != "")
	}
	if site.from != nil {
		c.nestedKey(site, r)
	} else if a := site.dir.Arguments.ForName("key"); a != nil {
		c.mistakes.add(a.Position, "key names columns of the row around a nested field; a root field has arguments instead")
	}
	if site.op == Top {
		c.ranking(site, r)
	}
	c.topology.Reads = append(c.topology.Reads, r)
}

// findAnswer finds the view that is read and the form of the answer.
func (c *compiler) findAnswer(site *readSite) bool {
	if site.op == Size {
		v := textOf(site.dir, "of")
		if v == nil {
			return false
		}
		site.answer = answer{row: c.rows[v.Raw], shape: Number}
		if site.answer.row == nil {
			c.mistakes.add(valueAt(v), "of: %q is no view or table; allowed: %s", v.Raw, c.rowNames())
		}
		return site.answer.row != nil
	}
	var ok bool
	if site.answer, ok = c.answerOf(site.field.Type); ok {
		return true
	}
	t := site.field.Type
	if !c.known(t) {
		return false
	}
	if c.sources[t.Name()] != nil {
		c.mistakes.add(innermost(t), "%s is a source; @%s reads a view or a table: %s", t.Name(), site.dir.Name, c.rowNames())
		return false
	}
	c.mistakes.add(typeAt(t), "@%s cannot return %s; allowed: a view or a table (%s), a list of one, its Connection, or a type with rows and freshness", site.dir.Name, t, c.rowNames())
	return false
}

func (c *compiler) rowNames() string {
	var names []string
	for n := range c.rows {
		names = append(names, n)
	}
	if len(names) == 0 {
		return "there is none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// checkTarget wants a windowed view for @windows, and one without a window for
// what reads rows by key alone.
func (c *compiler) checkTarget(site *readSite) {
	row := site.answer.row
	windowed := row.def.Directives.ForName("window") != nil
	if row.def.Directives.ForName("session") != nil {
		return
	}
	switch {
	case site.op == Windows && !windowed:
		c.mistakes.add(directiveAt(site.dir), "@windows needs a windowed view; %s has none; allowed: %s", row.def.Name, c.withoutWindow(site))
	case site.op != Windows && site.op != Top && windowed:
		c.mistakes.add(directiveAt(site.dir), "@%s needs a view without a window; %s has one; allowed: %s", site.op, row.def.Name, map[bool]string{true: "@windows", false: "@windows, @top"}[site.from != nil])
	}
}

func (c *compiler) withoutWindow(site *readSite) string {
	if site.from != nil {
		return "@lookup"
	}
	return "@lookup, @range, @top, @size"
}

// nestedKey finds the columns of the row around that give the key; by default
// those of the key columns' names.
func (c *compiler) nestedKey(site *readSite, r *Read) {
	target := site.answer.row
	if target.broken {
		return
	}
	list, given := listOf(site.dir, "key")
	if !given {
		if site.dir.Arguments.ForName("key") != nil {
			return
		}
		for _, k := range target.view.Keys {
			r.Columns = append(r.Columns, target.view.Columns[k].Name)
		}
		c.checkNestedKey(site, r, func(int) *ast.Position { return directiveAt(site.dir) })
		return
	}
	if len(list) != len(target.view.Keys) {
		c.mistakes.add(argAt(site.dir, "key"), "key names %d columns, the key of %s has %d: %s", len(list), target.def.Name, len(target.view.Keys), target.keyNames())
		return
	}
	for _, v := range list {
		r.Columns = append(r.Columns, v.Raw)
	}
	c.checkNestedKey(site, r, func(i int) *ast.Position { return valueAt(list[i]) })
}

func (c *compiler) checkNestedKey(site *readSite, r *Read, at func(int) *ast.Position) {
	from, target := site.from, site.answer.row
	for i, name := range r.Columns {
		want := target.view.Columns[target.view.Keys[i]]
		n := from.view.Column(name)
		switch {
		case n < 0 && from.brokenColumns[name]:
		case n < 0:
			c.mistakes.add(at(i), "key: %s has no column %q; columns: %s", from.def.Name, name, from.finishedScope().names())
		case !slices.Contains(sameType(want.Type), from.view.Columns[n].Type):
			c.mistakes.add(at(i), "key: %s.%s is %s, the key column %s.%s %s", from.def.Name, name, an(from.view.Columns[n].Type), target.def.Name, want.Name, an(want.Type))
		}
	}
}

// keyNames lists the key columns, in key order.
func (r *rowDef) keyNames() string {
	var names []string
	for _, k := range r.view.Keys {
		names = append(names, r.view.Columns[k].Name)
	}
	return strings.Join(names, ", ")
}

// ranking checks @top's column and condition and adds them to the view.
func (c *compiler) ranking(site *readSite, r *Read) {
	row := site.answer.row
	v := textOf(site.dir, "by")
	if v == nil {
		return
	}
	ok := c.checkRanked(row, v)
	k := view.Ranking{By: row.view.Column(v.Raw)}
	if a := site.dir.Arguments.ForName("where"); a != nil {
		p := c.expr(row.finishedScope(), site.dir, "where", true)
		if p == nil {
			return
		}
		k.Where, k.WhereText = p.eval, p.text
	}
	if !ok {
		return
	}
	r.By, r.Where = v.Raw, k.WhereText
	for _, other := range row.view.Rankings {
		if other.By == k.By && other.WhereText == k.WhereText {
			return
		}
	}
	row.view.Rankings = append(row.view.Rankings, k)
}

// checkRanked wants a column that has an order worth ranking by.
func (c *compiler) checkRanked(row *rowDef, v *ast.Value) bool {
	i := row.view.Column(v.Raw)
	if i < 0 {
		if !row.brokenColumns[v.Raw] {
			c.mistakes.add(valueAt(v), "by: %s has no column %q; numbers and times: %s", row.def.Name, v.Raw, row.rankable())
		}
		return false
	}
	if !rankable(row.view.Columns[i]) {
		c.mistakes.add(valueAt(v), "by: %s is %s and cannot be ranked by; numbers and times: %s", v.Raw, an(describeColumn(row.view.Columns[i])), row.rankable())
		return false
	}
	return true
}

func rankable(c view.Column) bool {
	if c.Role != view.AggRole && c.Role != view.ExprRole && c.Role != view.FieldRole {
		return false
	}
	return c.Type.Numeric() || c.Type == view.DateTime || c.Type == view.Duration
}

func describeColumn(c view.Column) string {
	switch c.Role {
	case view.KeyRole:
		return "key column"
	case view.StartRole, view.EndRole, view.FinalRole:
		return "bound of the window"
	}
	return c.Type.String()
}

func (r *rowDef) rankable() string {
	var names []string
	for _, col := range r.view.Columns {
		if rankable(col) {
			names = append(names, col.Name)
		}
	}
	if len(names) == 0 {
		return "there is none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
