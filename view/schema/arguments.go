package schema

import (
	"slices"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/streamgauge/streamgauge/view"
)

// checkDirectives holds the directives of one place against the language:
// known, allowed here, written once, their arguments known, complete and of
// their types. What passes can be read without looking again.
func (c *compiler) checkDirectives(list ast.DirectiveList, p place) {
	seen := map[string]bool{}
	for _, d := range list {
		if c.checkDirective(d, p) {
			if seen[d.Name] {
				c.mistakes.add(directiveAt(d), "@%s is written twice here; once is allowed", d.Name)
			}
			seen[d.Name] = true
		}
	}
}

func (c *compiler) checkDirective(d *ast.Directive, p place) bool {
	known := findDirective(d.Name)
	switch {
	case slices.Contains(plannedDirectives, d.Name):
		c.mistakes.add(directiveAt(d), "@%s is not supported yet; allowed on %s: %s", d.Name, placeNames[p], directivesAt(p))
		return false
	case d.Name == readDirective:
		c.mistakes.add(directiveAt(d), "@read is for the operations of clients; allowed on %s: %s", placeNames[p], directivesAt(p))
		return false
	case known == nil && (slices.Contains(standardDirectives, d.Name) || c.ownDirectives[d.Name]):
		return false // GraphQL's validation looks after it
	case known == nil:
		c.mistakes.add(directiveAt(d), "unknown directive @%s; allowed on %s: %s", d.Name, placeNames[p], directivesAt(p))
		return false
	case !slices.Contains(known.places, p):
		c.misplaced(d, known, p)
		return false
	}
	c.checkArguments(d, known)
	return true
}

func (c *compiler) misplaced(d *ast.Directive, known *directive, p place) {
	switch there := directivesAt(p); {
	case slices.Contains(known.places, onType) && (p == onSource || p == onTable || p == onView):
		// a second kind: noted with the type
	case there == "none":
		c.mistakes.add(directiveAt(d), "@%s is not allowed on %s; it is written on %s", d.Name, placeNames[p], known.homes())
	default:
		c.mistakes.add(directiveAt(d), "@%s is not allowed on %s; allowed there: %s", d.Name, placeNames[p], there)
	}
}

func (c *compiler) checkArguments(d *ast.Directive, known *directive) {
	for i, a := range d.Arguments {
		spec := known.arg(a.Name)
		switch {
		case d.Arguments[:i].ForName(a.Name) != nil:
			c.mistakes.add(a.Position, "argument %s of @%s is given twice", a.Name, d.Name)
		case slices.Contains(known.planned, a.Name):
			c.mistakes.add(a.Position, "%s of @%s is not supported yet; allowed: %s", a.Name, d.Name, known.argNames())
		case spec == nil:
			c.mistakes.add(a.Position, "@%s has no argument %s; allowed: %s", d.Name, a.Name, known.argNames())
		default:
			c.checkValue(d, spec, a.Value)
		}
	}
	for _, spec := range known.args {
		if spec.required && d.Arguments.ForName(spec.name) == nil {
			c.mistakes.add(directiveAt(d), "@%s needs the argument %s: %s", d.Name, spec.name, strings.TrimSuffix(spec.sdl(), "!"))
		}
	}
}

// checkValue notes what is wrong with an argument's value.
func (c *compiler) checkValue(d *ast.Directive, spec *argument, v *ast.Value) {
	bad := func(want string) {
		c.mistakes.add(valueAt(v), "%s of @%s must be %s, not %s", spec.name, d.Name, want, shorten(v.String()))
	}
	isText := v.Kind == ast.StringValue || v.Kind == ast.BlockValue
	switch spec.form {
	case text, expression:
		switch {
		case !isText:
			bad("a text")
		case strings.TrimSpace(v.Raw) == "":
			c.mistakes.add(valueAt(v), "%s of @%s is empty", spec.name, d.Name)
		}
	case textList:
		if isText {
			return
		}
		if v.Kind != ast.ListValue || slices.ContainsFunc(v.Children, func(e *ast.ChildValue) bool {
			return e.Value.Kind != ast.StringValue && e.Value.Kind != ast.BlockValue
		}) {
			bad("a text or a list of texts")
		}
	case duration:
		if !isText {
			bad(`a duration such as "15m", "1h30m" or "7d"`)
		} else if _, err := view.ParseDuration(v.Raw); err != nil {
			c.mistakes.add(valueAt(v), "%s of @%s: %s", spec.name, d.Name, err)
		}
	case number:
		if v.Kind != ast.IntValue && v.Kind != ast.FloatValue {
			bad("a number")
		}
	case boolean:
		if v.Kind != ast.BooleanValue {
			bad("true or false")
		}
	case enum:
		c.checkEnum(d, spec, v, bad)
	}
}

func (c *compiler) checkEnum(d *ast.Directive, spec *argument, v *ast.Value, bad func(string)) {
	switch {
	case v.Kind != ast.EnumValue:
		bad(oneOf(spec.values))
	case slices.Contains(spec.planned, v.Raw):
		c.mistakes.add(v.Position, "%s: %s of @%s is not supported yet; allowed: %s", spec.name, v.Raw, d.Name, strings.Join(spec.values, ", "))
	case !slices.Contains(spec.values, v.Raw):
		bad(oneOf(spec.values))
	}
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

// textOf is a text argument; nil where it is not given or already refused.
func textOf(d *ast.Directive, name string) *ast.Value {
	if d == nil {
		return nil
	}
	a := d.Arguments.ForName(name)
	if a == nil || a.Value.Kind != ast.StringValue && a.Value.Kind != ast.BlockValue || strings.TrimSpace(a.Value.Raw) == "" {
		return nil
	}
	return a.Value
}

// stringOf is a text argument's value, "" where there is none.
func stringOf(d *ast.Directive, name string) string {
	if v := textOf(d, name); v != nil {
		return v.Raw
	}
	return ""
}

// listOf is a list argument; a text alone is a list of one. given tells an
// empty list from none.
func listOf(d *ast.Directive, name string) (list []*ast.Value, given bool) {
	if d == nil {
		return nil, false
	}
	a := d.Arguments.ForName(name)
	if a == nil {
		return nil, false
	}
	switch a.Value.Kind {
	case ast.StringValue, ast.BlockValue:
		return []*ast.Value{a.Value}, true
	case ast.ListValue:
		for _, e := range a.Value.Children {
			if e.Value.Kind != ast.StringValue && e.Value.Kind != ast.BlockValue {
				return nil, false
			}
			list = append(list, e.Value)
		}
		return list, true
	}
	return nil, false
}

// durationOf is a duration argument in milliseconds; false where there is none.
func durationOf(d *ast.Directive, name string) (int64, bool) {
	v := textOf(d, name)
	if v == nil {
		return 0, false
	}
	ms, err := view.ParseDuration(v.Raw)
	return ms, err == nil
}

// enumOf is an enum argument's value, the default where there is none.
func enumOf(d *ast.Directive, name, standard string) string {
	if a := d.Arguments.ForName(name); a != nil && a.Value.Kind == ast.EnumValue {
		return a.Value.Raw
	}
	return standard
}

// argAt is where an argument's value is written; the directive where it is not.
func argAt(d *ast.Directive, name string) *ast.Position {
	if a := d.Arguments.ForName(name); a != nil {
		return valueAt(a.Value)
	}
	return directiveAt(d)
}

func numberOf(d *ast.Directive, name string) (float64, bool) {
	a := d.Arguments.ForName(name)
	if a == nil || a.Value.Kind != ast.IntValue && a.Value.Kind != ast.FloatValue {
		return 0, false
	}
	f, err := strconv.ParseFloat(a.Value.Raw, 64)
	return f, err == nil
}

func partitionerOf(d *ast.Directive) view.Partitioner {
	switch enumOf(d, "partitioner", "MURMUR2") {
	case "CRC32":
		return view.CRC32
	case "FNV1A":
		return view.FNV1A
	}
	return view.Murmur2
}

func keyFormatOf(d *ast.Directive) view.KeyFormat {
	switch enumOf(d, "keyFormat", "STRING") {
	case "INT":
		return view.IntKey
	case "LONG":
		return view.LongKey
	}
	return view.TextKey
}
