package schema

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// Public is the schema as clients see it: types that no root field reaches
// are left out, and the directives of the language. It is a new schema with
// every call; its definitions share nothing that changes with AST.
func (s *Schema) Public() *ast.Schema {
	keep := s.reachable()
	out := &ast.Schema{
		Query: keep[queryType], Mutation: keep[mutationType], Subscription: keep[subscriptionType],
		Types:         keep,
		Directives:    map[string]*ast.DirectiveDefinition{},
		PossibleTypes: map[string][]*ast.Definition{},
		Implements:    map[string][]*ast.Definition{},
		Description:   s.AST.Description,
	}
	for name, d := range s.AST.Directives {
		if findDirective(name) == nil {
			out.Directives[name] = d
		}
	}
	for name := range keep {
		for _, p := range s.AST.PossibleTypes[name] {
			if d := keep[p.Name]; d != nil {
				out.AddPossibleType(name, d)
			}
		}
		for _, i := range s.AST.Implements[name] {
			if d := keep[i.Name]; d != nil {
				out.AddImplements(name, d)
			}
		}
	}
	return out
}

// PublicSDL is Public as GraphQL text: the roots, then types by name, with
// their descriptions.
func (s *Schema) PublicSDL() string { return printSchema(s.Public()) }

// reachable copies the types that the roots reach, without our directives.
func (s *Schema) reachable() map[string]*ast.Definition {
	keep := map[string]*ast.Definition{}
	var reach func(name string)
	reach = func(name string) {
		d := s.AST.Types[name]
		if d == nil || keep[name] != nil {
			return
		}
		keep[name] = publicDefinition(d)
		for _, f := range d.Fields {
			reach(f.Type.Name())
			for _, a := range f.Arguments {
				reach(a.Type.Name())
			}
		}
		for _, i := range d.Interfaces {
			reach(i)
		}
		for _, p := range s.AST.PossibleTypes[name] {
			reach(p.Name)
		}
	}
	for _, root := range append([]string{"__Schema", "__Type", "__Directive", "String", "Boolean"}, rootNames...) {
		reach(root)
	}
	for name, d := range s.AST.Directives {
		if findDirective(name) == nil {
			for _, a := range d.Arguments {
				reach(a.Type.Name())
			}
		}
	}
	return keep
}

func publicDefinition(d *ast.Definition) *ast.Definition {
	out := *d
	out.BuiltIn = d.BuiltIn && (strings.HasPrefix(d.Name, "__") || slices.Contains(builtinScalars, d.Name))
	out.Directives = publicDirectives(d.Directives)
	out.Fields = make(ast.FieldList, len(d.Fields))
	for i, f := range d.Fields {
		field := *f
		field.Directives = publicDirectives(f.Directives)
		out.Fields[i] = &field
	}
	return &out
}

func publicDirectives(list ast.DirectiveList) ast.DirectiveList {
	var out ast.DirectiveList
	for _, d := range list {
		if findDirective(d.Name) == nil {
			out = append(out, d)
		}
	}
	return out
}
