package server

import (
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// shape is what a selection set asks for, with fragments counted where they are
// spread. Numbers saturate.
type shape struct {
	fields, aliases, spreads int
	depth                    int // of fields, introspection apart
	introspection            int // depth of what is within __schema and __type
	introspects              bool
}

const saturated = 1 << 30

func (a *shape) add(b shape) {
	a.fields = min(a.fields+b.fields, saturated)
	a.aliases = min(a.aliases+b.aliases, saturated)
	a.spreads = min(a.spreads+b.spreads, saturated)
	a.depth = max(a.depth, b.depth)
	a.introspection = max(a.introspection, b.introspection)
	a.introspects = a.introspects || b.introspects
}

// measurer measures a document's selection sets, each fragment once: its time
// is linear in the document, though what it stands for may be exponential.
type measurer struct {
	fragments  map[string]*ast.FragmentDefinition
	shapes     map[string]shape
	open       map[string]bool // fragments being measured: a spread of one is a cycle
	directives int             // the most at one place
	repeats    int             // fields whose response key their selection set had before
	deferred   bool
}

// measure refuses a document beyond the limits, before it is validated: it may
// make no sense otherwise.
func (s *Server) measure(doc *ast.QueryDocument) gqlerror.List {
	l := &s.limits
	if over(len(doc.Operations), l.Operations) {
		return tooLarge("operations", len(doc.Operations), l.Operations)
	}
	m := &measurer{fragments: map[string]*ast.FragmentDefinition{}, shapes: map[string]shape{}, open: map[string]bool{}}
	for _, f := range doc.Fragments {
		if m.fragments[f.Name] == nil {
			m.fragments[f.Name] = f
		}
	}
	if over(len(doc.Fragments), l.Fragments) {
		return tooLarge("fragments", len(doc.Fragments), l.Fragments)
	}
	var total shape // of all operations: each is validated, whichever is executed
	for _, op := range doc.Operations {
		m.look(op.Directives)
		sh := m.set(op.SelectionSet, map[string]bool{})
		total.add(sh)
		root := m.root(op.SelectionSet)
		if over(root.count, l.RootFields) {
			return tooLarge("root fields", root.count, l.RootFields)
		}
		if op.Operation == ast.Subscription {
			if errs := root.subscription(op); errs != nil {
				return errs
			}
		}
	}
	for _, f := range doc.Fragments { // those that no operation uses are validated, too
		m.fragment(f.Name)
	}
	return s.within(m, total)
}

// within compares what was measured with the limits.
func (s *Server) within(m *measurer, total shape) gqlerror.List {
	l := &s.limits
	switch {
	case over(total.depth, l.Depth):
		return tooLarge("levels of fields", total.depth, l.Depth)
	case total.introspection > maxIntrospectionDepth:
		return tooLarge("levels of introspection", total.introspection, maxIntrospectionDepth)
	case over(total.aliases, l.Aliases):
		return tooLarge("aliases", total.aliases, l.Aliases)
	case over(total.spreads, l.Fragments):
		return tooLarge("fragment spreads", total.spreads, l.Fragments)
	case over(total.fields, l.Fields):
		return tooLarge("fields", total.fields, l.Fields)
	case over(m.repeats, l.Repeats):
		return tooLarge("repeated fields", m.repeats, l.Repeats)
	case over(m.directives, l.Directives):
		return tooLarge("directives at one place", m.directives, l.Directives)
	case m.deferred:
		return problem(CodeValidation, "@defer is not supported")
	case total.introspects && s.noIntrospection:
		return problem(CodeValidation, "introspection is off")
	}
	return nil
}

func tooLarge(what string, n, limit int) gqlerror.List {
	if n >= saturated {
		return problem(CodeLimit, "too many %s: at most %d", what, limit)
	}
	return problem(CodeLimit, "%d %s: at most %d", n, what, limit)
}

// set measures a selection set; keys are the response keys it has had, those in
// inline fragments around it included.
func (m *measurer) set(set ast.SelectionSet, keys map[string]bool) shape {
	var sh shape
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			if keys[sel.Alias] {
				m.repeats++
			}
			keys[sel.Alias] = true
			m.look(sel.Directives)
			sh.add(m.field(sel))
		case *ast.InlineFragment:
			m.look(sel.Directives)
			sh.add(m.set(sel.SelectionSet, keys))
		case *ast.FragmentSpread:
			m.look(sel.Directives)
			sh.add(shape{spreads: 1})
			sh.add(m.fragment(sel.Name))
		}
	}
	return sh
}

func (m *measurer) field(f *ast.Field) shape {
	sh := m.set(f.SelectionSet, map[string]bool{})
	sh.fields = min(sh.fields+1, saturated)
	if f.Alias != f.Name {
		sh.aliases = min(sh.aliases+1, saturated)
	}
	if f.Name == "__schema" || f.Name == "__type" {
		sh.introspection = 1 + max(sh.depth, sh.introspection)
		sh.depth, sh.introspects = 1, true
		return sh
	}
	sh.depth++
	return sh
}

// fragment measures a fragment, once. A cycle counts as nothing: validation
// refuses it.
func (m *measurer) fragment(name string) shape {
	if sh, ok := m.shapes[name]; ok {
		return sh
	}
	f := m.fragments[name]
	if f == nil || m.open[name] {
		return shape{}
	}
	m.open[name] = true
	m.look(f.Directives)
	sh := m.set(f.SelectionSet, map[string]bool{})
	delete(m.open, name)
	m.shapes[name] = sh
	return sh
}

func (m *measurer) look(directives ast.DirectiveList) {
	m.directives = max(m.directives, len(directives))
	for _, d := range directives {
		m.deferred = m.deferred || d.Name == "defer"
	}
}

// rootFields are an operation's, those in fragments included.
type rootFields struct {
	count       int
	key         string // the first one's response key
	several     bool   // there are other keys
	conditional bool   // @skip or @include at the root
	meta        bool   // __typename, __schema or __type
	seen        map[string]bool
}

func (m *measurer) root(set ast.SelectionSet) *rootFields {
	r := &rootFields{seen: map[string]bool{}}
	m.roots(r, set)
	return r
}

func (m *measurer) roots(r *rootFields, set ast.SelectionSet) {
	for _, sel := range set {
		switch sel := sel.(type) {
		case *ast.Field:
			r.conditions(sel.Directives)
			r.field(sel)
		case *ast.InlineFragment:
			r.conditions(sel.Directives)
			m.roots(r, sel.SelectionSet)
		case *ast.FragmentSpread:
			r.conditions(sel.Directives)
			if f := m.fragments[sel.Name]; f != nil && !r.seen[sel.Name] {
				r.seen[sel.Name] = true
				m.roots(r, f.SelectionSet)
			}
		}
	}
}

func (r *rootFields) field(f *ast.Field) {
	if r.count++; r.count == 1 {
		r.key = f.Alias
	}
	r.several = r.several || f.Alias != r.key
	r.meta = r.meta || len(f.Name) > 1 && f.Name[:2] == "__"
}

func (r *rootFields) conditions(directives ast.DirectiveList) {
	for _, d := range directives {
		r.conditional = r.conditional || d.Name == "skip" || d.Name == "include"
	}
}

// subscription refuses what is not exactly one field, unconditional and of the
// schema's own (GraphQL specification, section 5.2.3.1). The parser's rule looks
// at names where response keys count.
func (r *rootFields) subscription(op *ast.OperationDefinition) gqlerror.List {
	why := ""
	switch {
	case r.several:
		why = "must have one root field only"
	case r.meta:
		why = "must not have an introspection field at the root"
	case r.conditional:
		why = "must not have @skip or @include at the root"
	default:
		return nil
	}
	name := "the subscription"
	if op.Name != "" {
		name = fmt.Sprintf("subscription %s", op.Name)
	}
	return problem(CodeValidation, "%s %s", shorten(name), why)
}
