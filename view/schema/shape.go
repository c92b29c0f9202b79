package schema

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/streamgauge/streamgauge/view"
)

// answer is the form in which a field returns what it reads.
type answer struct {
	row   *rowDef
	shape Shape
	list  *ast.Type // of RowList and Wrapper: the list
}

// answerOf finds the row type and the form of a field's return type; false
// where it has none that reads can take.
func (c *compiler) answerOf(t *ast.Type) (answer, bool) {
	if t.Elem != nil {
		if r := c.rows[t.Elem.NamedType]; r != nil {
			return answer{r, RowList, t}, true
		}
		return answer{}, false
	}
	if r := c.rows[t.NamedType]; r != nil {
		return answer{row: r, shape: OneRow}, true
	}
	d := c.types[t.NamedType]
	if d == nil {
		row, ok := strings.CutSuffix(t.NamedType, "Connection")
		if r := c.rows[row]; ok && r != nil {
			return answer{row: r, shape: Connection}, true
		}
		return answer{}, false
	}
	if r := c.ownConnection(d); r != nil {
		return answer{row: r, shape: Connection}, true
	}
	if list := wrapperList(d); list != nil {
		if r := c.rows[list.Elem.NamedType]; r != nil {
			return answer{r, Wrapper, list}, true
		}
	}
	return answer{}, false
}

// wrapperList is the type of the field rows, a list, of a type that has one.
func wrapperList(d *ast.Definition) *ast.Type {
	if d.Kind != ast.Object {
		return nil
	}
	f := d.Fields.ForName("rows")
	if f == nil || f.Type.Elem == nil || f.Type.Elem.NamedType == "" {
		return nil
	}
	return f.Type
}

// ownConnection is the row type of a Connection that the file defines itself.
func (c *compiler) ownConnection(d *ast.Definition) *rowDef {
	edges := d.Fields.ForName("edges")
	if edges == nil || edges.Type.Elem == nil {
		return nil
	}
	edge := c.types[edges.Type.Elem.NamedType]
	if edge == nil {
		if row, ok := strings.CutSuffix(edges.Type.Elem.NamedType, "Edge"); ok {
			return c.rows[row]
		}
		return nil
	}
	if node := edge.Fields.ForName("node"); node != nil {
		return c.rows[node.Type.NamedType]
	}
	return nil
}

// checkWrappers wants types that reads return to hold nothing but what a read
// fills.
func (c *compiler) checkWrappers() {
	checked := map[string]bool{}
	for _, site := range c.reads {
		d := c.types[site.field.Type.Name()]
		if d == nil || checked[d.Name] {
			continue
		}
		checked[d.Name] = true
		switch site.answer.shape {
		case Wrapper:
			list := site.answer.list
			c.checkFilled(d, map[string]string{"rows": "[" + list.Elem.String() + "]!", "freshness": "Freshness!"})
		case Connection:
			edge := d.Fields.ForName("edges").Type.Name()
			c.checkFilled(d, map[string]string{"edges": "[" + edge + "!]!", "pageInfo": "PageInfo!", "freshness": "Freshness!"})
			if e := c.types[edge]; e != nil {
				c.checkFilled(e, map[string]string{"node": site.answer.row.def.Name + "!", "cursor": "String!"})
			}
		}
	}
}

// checkFilled holds a type's fields against those that a read fills, by name
// and type: all of them, and nothing else.
func (c *compiler) checkFilled(d *ast.Definition, fields map[string]string) {
	var names []string
	for n := range fields {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, f := range d.Fields {
		want, ok := fields[f.Name]
		switch {
		case !ok && f.Directives.ForName("resolver") != nil:
		case !ok:
			c.mistakes.add(f.Position, "%s is filled by a read, which has no %s; allowed: %s, or a field with @resolver", d.Name, f.Name, strings.Join(names, ", "))
		case f.Type.String() != want:
			c.mistakes.add(typeAt(f.Type), "%s.%s must be %s", d.Name, f.Name, want)
		}
	}
	for _, n := range names {
		if d.Fields.ForName(n) == nil {
			c.mistakes.add(d.Position, "%s needs the field %s: %s", d.Name, n, fields[n])
		}
	}
}

// shapesOf are the forms that a read can return.
func shapesOf(op Op, many bool) []Shape {
	switch {
	case op == Lookup && many:
		return []Shape{RowList, Wrapper}
	case op == Lookup:
		return []Shape{OneRow}
	case op == Windows:
		return []Shape{RowList, OneRow, Wrapper}
	case op == Range:
		return []Shape{Connection, RowList, Wrapper}
	}
	return []Shape{RowList, Wrapper}
}

// shapeNames describes forms for a row type, for messages.
func shapeNames(shapes []Shape, row string) string {
	names := make([]string, len(shapes))
	for i, s := range shapes {
		names[i] = map[Shape]string{
			OneRow: row, RowList: "[" + row + "!]", Connection: row + "Connection",
			Wrapper: "a type with rows: [" + row + "!]! and freshness: Freshness!",
		}[s]
	}
	return oneOf(names)
}

// checkAnswer wants a form that the read can return, nullable.
func (c *compiler) checkAnswer(site *readSite, many bool) {
	t := site.field.Type
	if t.NonNull {
		c.mistakes.add(typeAt(t), "%s must be nullable, so that a view that fails never blanks its neighbours; write %s", site.name(), strings.TrimSuffix(t.String(), "!"))
	}
	row := site.answer.row.def.Name
	if shapes := shapesOf(site.op, many); !slices.Contains(shapes, site.answer.shape) {
		c.mistakes.add(typeAt(t), "@%s%s cannot return %s; allowed: %s", site.dir.Name, map[bool]string{true: " of a list"}[many], t, shapeNames(shapes, row))
		return
	}
	if many && site.answer.list != nil && site.answer.list.Elem.NonNull {
		c.mistakes.add(typeAt(site.answer.list), "a key without a row is null in the list; write [%s]", row)
	}
}

// checkSizeAnswer wants a nullable number.
func (c *compiler) checkSizeAnswer(site *readSite) {
	t := site.field.Type
	if s, ok := scalarOf(t); !ok || s != view.Long && s != view.Int {
		if c.known(t) {
			c.mistakes.add(typeAt(t), "@size returns a Long or an Int, not %s", t)
		}
	} else if t.NonNull {
		c.mistakes.add(typeAt(t), "%s must be nullable, so that a view that fails never blanks its neighbours; write %s", site.name(), s)
	}
}
