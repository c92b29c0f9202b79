package schema

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/streamgauge/streamgauge/view"
)

// kind is what a type of the file is to the language.
type kind uint8

const (
	plainKind kind = iota
	sourceKind
	tableKind
	viewKind
	rootKind
)

const (
	queryType        = "Query"
	subscriptionType = "Subscription"
	mutationType     = "Mutation"
)

var rootNames = []string{queryType, subscriptionType, mutationType}

var builtinScalars = []string{"Boolean", "Float", "ID", "Int", "String"}

const columnTypes = "String, ID, Int, Long, Float, Boolean, DateTime, Decimal, Duration"

func (c *compiler) kindOf(def *ast.Definition) kind {
	if def.Kind != ast.Object {
		return plainKind
	}
	if slices.Contains(rootNames, def.Name) {
		return rootKind
	}
	for _, d := range def.Directives {
		switch d.Name {
		case "source":
			return sourceKind
		case "table":
			return tableKind
		case "view":
			return viewKind
		}
	}
	return plainKind
}

// places of a type and of its fields.
func (c *compiler) placesOf(def *ast.Definition) (onDef, onField place) {
	switch c.kindOf(def) {
	case sourceKind:
		return onSource, sourceField
	case tableKind:
		return onTable, tableField
	case viewKind:
		return onView, viewField
	case rootKind:
		return onRoot, map[string]place{queryType: queryField, subscriptionType: subscriptionField, mutationType: mutationField}[def.Name]
	}
	if def.Kind == ast.Object {
		return onType, typeField
	}
	return elsewhere, elsewhere
}

// gather merges definitions with their extensions, without changing either.
func (c *compiler) gather() {
	for _, d := range c.doc.Definitions {
		switch {
		case slices.Contains(injectedNames, d.Name) || slices.Contains(builtinScalars, d.Name):
			c.mistakes.add(d.Position, "%s is given to every schema; remove its definition", d.Name)
			continue
		case c.types[d.Name] != nil:
			c.mistakes.add(d.Position, "type %s is defined twice", d.Name)
			continue
		}
		merged := *d
		c.types[d.Name] = &merged
		c.order = append(c.order, &merged)
	}
	for _, e := range c.doc.Extensions {
		d := c.types[e.Name]
		switch {
		case d == nil && slices.Contains(rootNames, e.Name) && e.Kind == ast.Object:
			merged := *e
			c.types[e.Name] = &merged
			c.order = append(c.order, &merged)
		case d == nil || d.Kind != e.Kind:
			c.mistakes.add(e.Position, "extend: there is no such %s %s to extend", strings.ToLower(string(e.Kind)), e.Name)
		default:
			d.Directives = slices.Concat(d.Directives, e.Directives)
			d.Fields = slices.Concat(d.Fields, e.Fields)
			d.Interfaces = slices.Concat(d.Interfaces, e.Interfaces)
			d.EnumValues = slices.Concat(d.EnumValues, e.EnumValues)
		}
	}
}

// checkDefinitions looks at what every definition must obey, of the language
// or not: names, type references, and the directives in their places.
func (c *compiler) checkDefinitions() {
	for _, d := range c.doc.Directives {
		if findDirective(d.Name) != nil || d.Name == readDirective || slices.Contains(plannedDirectives, d.Name) {
			c.mistakes.add(before(d.Position), "@%s is given to every schema; remove its definition", d.Name)
		}
	}
	for _, def := range c.order {
		onDef, onField := c.placesOf(def)
		c.checkName(def.Position, def.Name)
		c.checkDirectives(def.Directives, onDef)
		c.checkOneKind(def)
		if len(def.Fields) == 0 && (def.Kind == ast.Object || def.Kind == ast.InputObject || def.Kind == ast.Interface) {
			c.mistakes.add(def.Position, "%s has no fields", def.Name)
		}
		seen := map[string]bool{}
		for _, f := range def.Fields {
			c.checkName(f.Position, f.Name)
			if seen[f.Name] {
				c.mistakes.add(f.Position, "field %s.%s is defined twice", def.Name, f.Name)
			}
			seen[f.Name] = true
			c.checkDirectives(f.Directives, onField)
			c.checkReference(f.Type, def.Kind == ast.InputObject)
			c.checkArgumentDefinitions(def, f)
		}
		for _, v := range def.EnumValues {
			c.checkDirectives(v.Directives, elsewhere)
		}
	}
}

func (c *compiler) checkName(at *ast.Position, name string) {
	if strings.HasPrefix(name, "__") {
		c.mistakes.add(at, "name %s: names that begin with __ belong to GraphQL", name)
	}
}

func (c *compiler) checkOneKind(def *ast.Definition) {
	var first string
	for _, d := range def.Directives {
		if d.Name != "source" && d.Name != "table" && d.Name != "view" {
			continue
		}
		if first != "" && first != d.Name {
			c.mistakes.add(directiveAt(d), "%s is a @%s already; a type is one of @source, @table, @view", def.Name, first)
		}
		first = d.Name
	}
}

func (c *compiler) checkArgumentDefinitions(def *ast.Definition, f *ast.FieldDefinition) {
	seen := map[string]bool{}
	for _, a := range f.Arguments {
		c.checkName(a.Position, a.Name)
		if seen[a.Name] {
			c.mistakes.add(a.Position, "argument %s of %s.%s is defined twice", a.Name, def.Name, f.Name)
		}
		seen[a.Name] = true
		c.checkDirectives(a.Directives, elsewhere)
		c.checkReference(a.Type, true)
	}
}

// checkReference wants a type that exists, and is input or output as needed.
func (c *compiler) checkReference(t *ast.Type, input bool) {
	name := t.Name()
	at := innermost(t)
	if slices.Contains(builtinScalars, name) {
		return
	}
	if slices.Contains(injectedNames, name) {
		if input && (name == "Freshness" || name == "MissingPartition" || name == "PageInfo") {
			c.mistakes.add(at, "%s cannot be put in; allowed: scalars, enums and input types", name)
		}
		return
	}
	if d := c.types[name]; d != nil {
		switch {
		case input && !d.IsInputType():
			c.mistakes.add(at, "%s cannot be put in; allowed: scalars, enums and input types", name)
		case !input && d.Kind == ast.InputObject:
			c.mistakes.add(at, "%s is an input type, it cannot be returned", name)
		}
		return
	}
	if row := c.connectionRow(name); row != "" && !input {
		for _, other := range []string{row + "Connection", row + "Edge"} {
			if c.types[other] != nil {
				c.mistakes.add(at, "%s is given only where %s is too; define both or neither", name, other)
				return
			}
		}
		c.needConnection(row)
		return
	}
	c.mistakes.add(at, "unknown type %s; allowed: %s, and the types of the file%s", name, columnTypes, connectionHint(name))
}

func connectionHint(name string) string {
	if strings.HasSuffix(name, "Connection") {
		return "; a Connection is given for views and tables"
	}
	return ""
}

// connectionRow is the row type whose injected Connection or Edge has that
// name, "" when there is none.
func (c *compiler) connectionRow(name string) string {
	for _, suffix := range []string{"Connection", "Edge"} {
		row, ok := strings.CutSuffix(name, suffix)
		if d := c.types[row]; ok && d != nil {
			if k := c.kindOf(d); k == viewKind || k == tableKind {
				return row
			}
		}
	}
	return ""
}

// innermost is the position of the name in a type reference.
func innermost(t *ast.Type) *ast.Position {
	for t.Elem != nil {
		t = t.Elem
	}
	return t.Position
}

// scalarOf is the column type of a reference; false for lists and for types
// that no column holds.
func scalarOf(t *ast.Type) (view.Type, bool) {
	if t.Elem != nil {
		return view.NoType, false
	}
	return view.TypeOf(t.NamedType)
}

// checkRoots wants Query, and the roots under their usual names.
func (c *compiler) checkRoots() {
	for _, s := range slices.Concat(c.doc.Schema, c.doc.SchemaExtension) {
		for _, op := range s.OperationTypes {
			if want := rootName(op.Operation); op.Type != want {
				c.mistakes.add(op.Position, "the %s type must be named %s", op.Operation, want)
			}
		}
	}
	if d := c.types[queryType]; d == nil {
		c.mistakes = append(c.mistakes, Mistake{File: c.file, Line: 1, Column: 1, Message: "there is no type Query; write one with the fields that clients may ask for"})
	}
	for _, n := range rootNames {
		if d := c.types[n]; d != nil && d.Kind != ast.Object {
			c.mistakes.add(d.Position, "%s must be a type", n)
		}
	}
}

func rootName(op ast.Operation) string {
	switch op {
	case ast.Mutation:
		return mutationType
	case ast.Subscription:
		return subscriptionType
	}
	return queryType
}
