package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/streamgauge/streamgauge/view"
)

// maxFirst is the largest page.
const maxFirst = 1000

// optionTypes are the fixed names of arguments and their types.
var optionTypes = map[string]string{
	"first": "Int", "after": "String", "prefix": "String", "reverse": "Boolean",
	"from": "DateTime", "to": "DateTime", "last": "Duration", "step": "Duration",
	"zone": "String", "fill": "Fill", "every": "Duration",
}

// options are the fixed arguments that a read takes.
func (s *readSite) options() []string {
	var names []string
	switch s.op {
	case Windows:
		names = []string{"from", "to", "last"}
		if s.answer.shape != OneRow {
			names = append(names, "step", "zone", "fill")
		}
	case Range:
		names = []string{"first", "after", "prefix", "reverse"}
	case Top:
		names = []string{"first"}
		if s.answer.row.view.Window != nil {
			names = append(names, "from", "to", "last")
		}
	}
	if s.parent.Name == subscriptionType {
		names = append(names, "every")
	}
	return names
}

// keyed says whether arguments may fix key columns.
func (s *readSite) keyed() bool { return s.from == nil && s.op != Top }

// allowed describes the arguments that the field may have.
func (s *readSite) allowed() string {
	var names []string
	row := s.answer.row
	if s.keyed() && len(row.view.Keys) > 0 {
		names = append(names, "the key "+row.keyNames())
		if s.op == Lookup {
			names = append(names, "a list of keys")
		}
	}
	names = append(names, s.options()...)
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// readArguments sorts the field's arguments: key columns, a list of keys,
// options; anything else is refused.
func (c *compiler) readArguments(site *readSite, r *Read) {
	row, options := site.answer.row, site.options()
	for _, a := range site.field.Arguments {
		i := row.view.Column(a.Name)
		isKey := i >= 0 && slices.Contains(row.view.Keys, i)
		switch {
		case isKey && site.keyed() && !(site.op == Lookup && a.Type.Elem != nil):
			c.keyArgument(site, r, a, i)
		case isKey && site.op == Top:
			c.mistakes.add(a.Position, "%s: confining @top by a key column is not supported yet; allowed: %s", a.Name, site.allowed())
		case slices.Contains(options, a.Name):
			c.optionArgument(a)
			r.Options = append(r.Options, a.Name)
		case a.Name == plannedOption:
			c.mistakes.add(a.Position, "%s is not supported yet; allowed: %s", a.Name, site.allowed())
		case site.op == Lookup && site.keyed() && a.Type.Elem != nil:
			c.listArgument(site, r, a)
		case row.broken && optionTypes[a.Name] == "":
		default:
			c.mistakes.add(a.Position, "%s has no argument %s; allowed: %s", site.name(), a.Name, site.allowed())
		}
	}
	slices.SortFunc(r.Args, func(a, b KeyArg) int {
		return slices.Index(row.view.Keys, a.Column) - slices.Index(row.view.Keys, b.Column)
	})
	if site.keyed() && !row.broken {
		c.checkKeyArguments(site, r)
	}
}

func (c *compiler) keyArgument(site *readSite, r *Read, a *ast.ArgumentDefinition, column int) {
	col := site.answer.row.view.Columns[column]
	if c.known(a.Type) && !keyArgumentType(a.Type, col) {
		c.mistakes.add(typeAt(a.Type), "%s fixes a key column, it must be %s, not %s", a.Name, keyArgumentTypes(col), a.Type)
	}
	r.Args = append(r.Args, KeyArg{Name: a.Name, Column: column})
}

// keyArgumentType wants the column's type, and null only where it can be null.
func keyArgumentType(t *ast.Type, col view.Column) bool {
	s, ok := scalarOf(t)
	return ok && s == col.Type && (t.NonNull || !col.NonNull)
}

func keyArgumentTypes(col view.Column) string {
	if col.NonNull {
		return col.Type.String() + "!"
	}
	return col.Type.String() + " or " + col.Type.String() + "!"
}

// checkKeyArguments wants the key columns that the read needs: all, or for a
// page or a count the leading ones.
func (c *compiler) checkKeyArguments(site *readSite, r *Read) {
	row := site.answer.row
	if r.ListArg != "" {
		if len(r.Args) > 0 {
			c.mistakes.add(site.field.Position, "%s has key columns and the list %s; allowed: one of the two", site.name(), r.ListArg)
		}
		return
	}
	if site.op == Lookup || site.op == Windows {
		if missing := missingKeys(row, r, len(row.view.Keys)); len(missing) > 0 {
			c.mistakes.add(site.field.Position, "%s needs an argument for every key column of %s; missing: %s", site.name(), row.def.Name, strings.Join(missing, ", "))
		}
		return
	}
	last := -1
	for _, a := range r.Args {
		last = max(last, slices.Index(row.view.Keys, a.Column))
	}
	if missing := missingKeys(row, r, last+1); len(missing) > 0 {
		c.mistakes.add(site.field.Position, "%s fixes %s but not %s before it; key columns are fixed from the first on: %s", site.name(), row.view.Columns[row.view.Keys[last]].Name, strings.Join(missing, ", "), row.keyNames())
	}
	if i := site.field.Arguments.ForName("prefix"); i != nil && slices.Contains(r.Options, "prefix") {
		c.checkPrefix(row, r, i)
	}
}

// missingKeys are the first n key columns that no argument fixes.
func missingKeys(row *rowDef, r *Read, n int) []string {
	var missing []string
	for _, k := range row.view.Keys[:n] {
		if !slices.ContainsFunc(r.Args, func(a KeyArg) bool { return a.Column == k }) {
			missing = append(missing, row.view.Columns[k].Name)
		}
	}
	return missing
}

// checkPrefix wants a text as the first key column that is not fixed.
func (c *compiler) checkPrefix(row *rowDef, r *Read, prefix *ast.ArgumentDefinition) {
	if len(r.Args) >= len(row.view.Keys) {
		c.mistakes.add(prefix.Position, "prefix: every key column of %s is fixed", row.def.Name)
		return
	}
	if col := row.view.Columns[row.view.Keys[len(r.Args)]]; col.Type.Kind() != view.StringKind {
		c.mistakes.add(prefix.Position, "prefix needs a text: the key column %s is %s", col.Name, an(col.Type))
	}
}

// listArgument is a lookup of many keys: a list of the key's values, or of an
// input type with the key columns.
func (c *compiler) listArgument(site *readSite, r *Read, a *ast.ArgumentDefinition) {
	row := site.answer.row
	if r.ListArg != "" {
		c.mistakes.add(a.Position, "%s has the list %s already; one is allowed", site.name(), r.ListArg)
		return
	}
	r.ListArg = a.Name
	if row.broken || !c.known(a.Type) {
		return
	}
	if d := c.types[a.Type.Elem.NamedType]; d != nil && d.Kind == ast.InputObject {
		if !a.Type.NonNull || !a.Type.Elem.NonNull {
			c.mistakes.add(typeAt(a.Type), "%s must be [%s!]!", a.Name, d.Name)
		}
		c.inputKey(row, r, a, d)
		return
	}
	keys := row.view.Keys
	if len(keys) != 1 {
		c.mistakes.add(typeAt(a.Type), "%s: the key of %s has %d columns; the list must be of an input type with them: %s", a.Name, row.def.Name, len(keys), row.keyNames())
		return
	}
	col := row.view.Columns[keys[0]]
	if !a.Type.NonNull || !keyArgumentType(a.Type.Elem, col) {
		c.mistakes.add(typeAt(a.Type), "%s must be [%s!]!, the key column %s of %s", a.Name, col.Type, col.Name, row.def.Name)
	}
}

// inputKey holds an input type against the key columns: those, and no others.
func (c *compiler) inputKey(row *rowDef, r *Read, a *ast.ArgumentDefinition, d *ast.Definition) {
	for _, k := range row.view.Keys {
		col := row.view.Columns[k]
		f := d.Fields.ForName(col.Name)
		if f == nil {
			c.mistakes.add(typeAt(a.Type), "%s: input %s has no field for the key column %s of %s", a.Name, d.Name, col.Name, row.def.Name)
			continue
		}
		if !keyArgumentType(f.Type, col) {
			c.mistakes.add(typeAt(f.Type), "%s.%s fixes a key column, it must be %s, not %s", d.Name, f.Name, keyArgumentTypes(col), f.Type)
		}
		r.ListOf = append(r.ListOf, col.Name)
	}
	for _, f := range d.Fields {
		i := row.view.Column(f.Name)
		if i < 0 || !slices.Contains(row.view.Keys, i) {
			c.mistakes.add(f.Position, "%s.%s is no key column of %s; allowed: %s", d.Name, f.Name, row.def.Name, row.keyNames())
		}
	}
}

// optionArgument checks a fixed argument's type and default.
func (c *compiler) optionArgument(a *ast.ArgumentDefinition) {
	want := optionTypes[a.Name]
	if !c.known(a.Type) {
		return
	}
	if a.Type.NamedType != want {
		c.mistakes.add(typeAt(a.Type), "%s must be %s or %s!, not %s", a.Name, want, want, a.Type)
		return
	}
	v := a.DefaultValue
	if v == nil || v.Kind == ast.NullValue && !a.Type.NonNull {
		return
	}
	if problem := defaultProblem(want, v); problem != "" {
		c.mistakes.add(valueAt(v), "%s: %s", a.Name, problem)
	}
}

// defaultProblem says what is wrong with an option's default, "" when nothing
// is.
func defaultProblem(typ string, v *ast.Value) string {
	isText := v.Kind == ast.StringValue || v.Kind == ast.BlockValue
	fills := []string{"NONE", "EMPTY", "NULL", "PREVIOUS"}
	switch {
	case typ == "Int":
		if n, err := strconv.Atoi(v.Raw); v.Kind != ast.IntValue || err != nil || n < 0 || n > maxFirst {
			return "the default must be a number from 0 to " + strconv.Itoa(maxFirst)
		}
	case typ == "Boolean" && v.Kind != ast.BooleanValue:
		return "the default must be true or false"
	case typ == "Fill" && (v.Kind != ast.EnumValue || !slices.Contains(fills, v.Raw)):
		return "the default must be " + oneOf(fills)
	case typ == "Fill" || typ == "Boolean":
	case typ == "DateTime" && v.Kind == ast.IntValue:
	case !isText:
		return "the default must be a text"
	case typ == "String":
	default:
		t, _ := view.TypeOf(typ)
		if _, err := view.ParseText(v.Raw, t); err != nil {
			return "the default " + err.Error()
		}
	}
	return ""
}
