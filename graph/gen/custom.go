package gen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/templates"
)

// custom is a field with @resolver: a method of Resolver that the user writes,
// named after the type and the field.
type custom struct{ object, field string }

func (p *plugin) customFields() []custom {
	var all []custom
	for _, d := range p.schema.AST.Types {
		for _, f := range d.Fields {
			if f.Directives.ForName("resolver") != nil {
				all = append(all, custom{d.Name, f.Name})
			}
		}
	}
	slices.SortFunc(all, func(a, b custom) int { return strings.Compare(a.object+"."+a.field, b.object+"."+b.field) })
	return all
}

// methodName is the user's method for a field.
func methodName(f *codegen.Field) string { return f.Object.Name + f.GoFieldName }

// startCustom writes, once, a file with an empty method for each field with
// @resolver that has none yet. It returns the files' names.
func (p *plugin) startCustom(data *codegen.Data) ([]string, error) {
	have, err := methodsOf(p.dir, "Resolver")
	if err != nil {
		return nil, err
	}
	var started []string
	for _, c := range p.customFields() {
		f := findField(data, c.object, c.field)
		if f == nil || have[methodName(f)] {
			continue
		}
		name := strings.ToLower(c.object+"_"+c.field) + ".go"
		err := templates.Render(templates.Options{
			PackageName: data.Config.Exec.Package,
			Filename:    filepath.Join(p.dir, name),
			Packages:    data.Config.Packages,
			Template:    "{{ code }}",
			Funcs: map[string]any{"code": func() string {
				templates.CurrentImports.Lookup("context")
				templates.CurrentImports.Lookup("errors")
				return fmt.Sprintf("// %s resolves %s.%s. This file is yours: it is not written again.\nfunc (r *Resolver) %s%s {\n\treturn %s, errors.New(%q)\n}\n",
					methodName(f), c.object, c.field, methodName(f), f.ShortResolverDeclaration(), zero(f), c.object+"."+c.field+" is not written yet")
			}},
			PruneOptions: data.Config.GetPruneOptions(),
		})
		if err != nil {
			return nil, err
		}
		started = append(started, name)
	}
	return started, nil
}

// zero is what a method without an answer returns.
func zero(f *codegen.Field) string {
	typ := templates.CurrentImports.LookupType(f.TypeReference.GO)
	switch {
	case strings.HasPrefix(typ, "*"), strings.HasPrefix(typ, "["), strings.HasPrefix(typ, "<-"):
		return "nil"
	case typ == "string":
		return `""`
	case typ == "bool":
		return "false"
	}
	return "*new(" + typ + ")"
}

func findField(data *codegen.Data, object, field string) *codegen.Field {
	for _, o := range data.Objects {
		if o.Name != object {
			continue
		}
		for _, f := range o.Fields {
			if f.Name == field {
				return f
			}
		}
	}
	return nil
}

// methodsOf are the methods that the Go files of a folder declare on a type.
func methodsOf(dir, typ string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	have := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			continue // the build says it better
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || len(fn.Recv.List) != 1 {
				continue
			}
			if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok {
				if id, ok := star.X.(*ast.Ident); ok && id.Name == typ {
					have[fn.Name.Name] = true
				}
			}
		}
	}
	return have, nil
}
