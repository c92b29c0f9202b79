package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
)

// printSchema writes types as GraphQL text: the roots first, then by name;
// fields in their order. GraphQL's own types and directives are left out.
func printSchema(s *ast.Schema) string {
	names := slices.Sorted(maps.Keys(s.Types))
	names = slices.DeleteFunc(names, func(n string) bool {
		return strings.HasPrefix(n, "__") || slices.Contains(builtinScalars, n) || slices.Contains(rootNames, n)
	})
	p := &printer{}
	for _, name := range slices.Sorted(maps.Keys(s.Directives)) {
		if d := s.Directives[name]; !slices.Contains(standardDirectives, name) {
			p.directive(d)
		}
	}
	for _, name := range slices.Concat(rootNames, names) {
		if d := s.Types[name]; d != nil {
			p.definition(d)
		}
	}
	return p.b.String()
}

type printer struct{ b strings.Builder }

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// gap is an empty line between definitions.
func (p *printer) gap() {
	if p.b.Len() > 0 {
		p.b.WriteByte('\n')
	}
}

func (p *printer) directive(d *ast.DirectiveDefinition) {
	p.gap()
	p.description("", d.Description)
	p.printf("directive @%s%s", d.Name, arguments(d.Arguments))
	if d.IsRepeatable {
		p.printf(" repeatable")
	}
	locations := make([]string, len(d.Locations))
	for i, l := range d.Locations {
		locations[i] = string(l)
	}
	p.printf(" on %s\n", strings.Join(locations, " | "))
}

var keywords = map[ast.DefinitionKind]string{
	ast.Scalar: "scalar", ast.Object: "type", ast.Interface: "interface",
	ast.Union: "union", ast.Enum: "enum", ast.InputObject: "input",
}

func (p *printer) definition(d *ast.Definition) {
	p.gap()
	p.description("", d.Description)
	p.printf("%s %s", keywords[d.Kind], d.Name)
	if len(d.Interfaces) > 0 {
		p.printf(" implements %s", strings.Join(d.Interfaces, " & "))
	}
	p.printf("%s", applied(d.Directives))
	switch d.Kind {
	case ast.Union:
		p.printf(" = %s", strings.Join(d.Types, " | "))
	case ast.Enum:
		p.printf(" {\n")
		for _, v := range d.EnumValues {
			p.description("  ", v.Description)
			p.printf("  %s%s\n", v.Name, applied(v.Directives))
		}
		p.printf("}")
	case ast.Object, ast.Interface, ast.InputObject:
		p.printf(" {\n")
		for _, f := range d.Fields {
			p.field(f)
		}
		p.printf("}")
	}
	p.printf("\n")
}

func (p *printer) field(f *ast.FieldDefinition) {
	if strings.HasPrefix(f.Name, "__") {
		return
	}
	p.description("  ", f.Description)
	p.printf("  %s%s: %s", f.Name, arguments(f.Arguments), f.Type)
	if f.DefaultValue != nil {
		p.printf(" = %s", f.DefaultValue)
	}
	p.printf("%s\n", applied(f.Directives))
}

// description is one line where it can be.
func (p *printer) description(indent, text string) {
	switch {
	case text == "":
	case !strings.ContainsAny(text, "\n\"\\"):
		p.printf("%s\"%s\"\n", indent, text)
	default:
		text = strings.ReplaceAll(text, `"""`, `\"""`)
		p.printf("%s\"\"\"\n", indent)
		for _, line := range strings.Split(text, "\n") {
			p.printf("%s\n", strings.TrimRight(indent+line, " "))
		}
		p.printf("%s\"\"\"\n", indent)
	}
}

func arguments(list ast.ArgumentDefinitionList) string {
	if len(list) == 0 {
		return ""
	}
	args := make([]string, len(list))
	for i, a := range list {
		if a.Description != "" {
			args[i] = (&ast.Value{Kind: ast.StringValue, Raw: a.Description}).String() + " "
		}
		args[i] += a.Name + ": " + a.Type.String()
		if a.DefaultValue != nil {
			args[i] += " = " + a.DefaultValue.String()
		}
		args[i] += applied(a.Directives)
	}
	return "(" + strings.Join(args, ", ") + ")"
}

func applied(list ast.DirectiveList) string {
	var b strings.Builder
	for _, d := range list {
		b.WriteString(" @" + d.Name)
		args := make([]string, len(d.Arguments))
		for i, a := range d.Arguments {
			args[i] = a.Name + ": " + a.Value.String()
		}
		if len(args) > 0 {
			b.WriteString("(" + strings.Join(args, ", ") + ")")
		}
	}
	return b.String()
}
