package schema

import (
	"slices"
	"strconv"

	"github.com/streamgauge/streamgauge/view"
)

// rule is what an aggregate takes and what its column may be.
type rule struct {
	fn    view.Fn
	takes func(view.Type) bool
	what  string // what it takes, for messages
	gives func(of view.Type) []view.Type
	empty bool // has a value when nothing fell in: the column may be non-null
}

func ordered(t view.Type) bool { return t != view.Boolean && t != view.NoType }

func anyType(t view.Type) bool { return t != view.NoType }

// sameType is the type itself; String and ID are one.
func sameType(of view.Type) []view.Type {
	switch of {
	case view.String:
		return []view.Type{view.String, view.ID}
	case view.ID:
		return []view.Type{view.ID, view.String}
	}
	return []view.Type{of}
}

// sumTypes: a sum of Ints may outgrow an Int; whoever declares one accepts an
// error then.
func sumTypes(of view.Type) []view.Type {
	if of == view.Int {
		return []view.Type{view.Long, view.Int}
	}
	return []view.Type{of}
}

func averageTypes(of view.Type) []view.Type {
	if of == view.Decimal {
		return []view.Type{view.Decimal, view.Float}
	}
	return []view.Type{view.Float}
}

func only(types ...view.Type) func(view.Type) []view.Type {
	return func(view.Type) []view.Type { return types }
}

// ruleOf finds the rule of an aggregate's directive.
func ruleOf(directive string) rule {
	switch directive {
	case "count":
		return rule{view.Count, anyType, "a value", only(view.Long, view.Int), true}
	case "sum":
		return rule{view.Sum, view.Type.Numeric, "a number", sumTypes, true}
	case "avg":
		return rule{view.Avg, view.Type.Numeric, "a number", averageTypes, false}
	case "min":
		return rule{view.Min, ordered, "a number, a text or a time", sameType, false}
	case "max":
		return rule{view.Max, ordered, "a number, a text or a time", sameType, false}
	case "first":
		return rule{view.First, anyType, "a value", sameType, false}
	case "last":
		return rule{view.Last, anyType, "a value", sameType, false}
	}
	return rule{view.Quantile, view.Type.Numeric, "a number", only(view.Float), false}
}

// aggregate compiles an aggregate column.
func (c *compiler) aggregate(r *rowDef, def *columnDef) view.Agg {
	d, rule := def.dir, ruleOf(def.dir.Name)
	agg := view.Agg{Fn: rule.fn}
	if def.field.Type.NonNull && !rule.empty {
		c.mistakes.add(typeAt(def.field.Type), "%s with @%s must be nullable: of no value it is null; only @count and @sum may be non-null", def.field.Name, d.Name)
	}
	meaning := d.Name
	if d.Name == "quantile" {
		q, ok := numberOf(d, "q")
		if ok && (q < 0 || q > 1) {
			c.mistakes.add(argAt(d, "q"), "q of @quantile must be from 0 to 1")
		}
		agg.Q = q
		meaning += " " + strconv.FormatFloat(q, 'g', -1, 64)
	}
	if r.source == nil {
		return agg
	}
	of := c.aggregated(r, def)
	if of != nil {
		agg.Of, agg.Type = of.eval, of.typ
		meaning += " of " + r.meaningOf(of)
		r.need(of)
	}
	if w := c.expr(r.source.scope, d, "where", true); w != nil {
		agg.Where = w.eval
		meaning += " where " + r.meaningOf(w)
		r.need(w)
	}
	if of != nil || d.Name == "count" && textOf(d, "of") == nil {
		c.checkAggregateTypes(def, rule, of)
	}
	r.meaning[def.field.Name] = meaning
	return agg
}

// aggregated is what a column aggregates: of, or the field of the column's own
// name; nil for a count of records, or where it is wrong.
func (c *compiler) aggregated(r *rowDef, def *columnDef) *program {
	s := r.source.scope
	if def.dir.Arguments.ForName("of") != nil {
		return c.expr(s, def.dir, "of", false)
	}
	if def.dir.Name == "count" {
		return nil
	}
	i := s.find(def.field.Name)
	if i >= 0 {
		return fieldProgram(s, i)
	}
	if !s.broken[def.field.Name] {
		c.mistakes.add(directiveAt(def.dir), "@%s without of aggregates the field of the column's name, and there is no %q; %s: %s", def.dir.Name, def.field.Name, s.what, s.names())
	}
	return nil
}

func (c *compiler) checkAggregateTypes(def *columnDef, rule rule, of *program) {
	t := view.NoType
	if of != nil {
		t = of.typ
		if !rule.takes(t) {
			c.mistakes.add(argAt(def.dir, "of"), "@%s takes %s, not %s", def.dir.Name, rule.what, an(t))
			return
		}
	}
	if types := rule.gives(t); !slices.Contains(types, def.typ) {
		over := ""
		if of != nil && def.dir.Name != "count" && def.dir.Name != "quantile" {
			over = " of a " + t.String()
		}
		c.mistakes.add(typeAt(def.field.Type), "@%s%s cannot be %s; allowed: %s", def.dir.Name, over, an(def.typ), typeNames(types))
	}
}
