package gen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/templates"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/schema"
)

// writer writes views_gen.go.
type writer struct {
	*plugin
	data *codegen.Data
	b    strings.Builder
}

func (w *writer) printf(format string, args ...any) { fmt.Fprintf(&w.b, format, args...) }

// code is the whole file but for its head.
func (w *writer) code() string {
	for _, path := range []string{
		"context", "github.com/99designs/gqlgen/graphql",
		"github.com/streamgauge/streamgauge/graph/resolve",
		"github.com/streamgauge/streamgauge/view",
		"github.com/streamgauge/streamgauge/view/read",
	} {
		templates.CurrentImports.Lookup(path)
	}
	w.printf("// SchemaText is the schema as it was compiled into this program.\nconst SchemaText = %s\n\n", literal(w.text))
	w.root()
	for _, v := range w.schema.Topology.Views {
		if o := w.data.Objects.ByName(v.Name); o != nil {
			w.maker(o, v)
		}
	}
	w.connections()
	w.resolvers()
	w.complexity()
	return w.b.String()
}

// literal is a Go string of a text over several lines.
func literal(s string) string {
	return "`" + strings.ReplaceAll(s, "`", "` + \"`\" + `") + "`"
}

func (w *writer) root() {
	w.printf(`// Resolver resolves every field; those that read views are written below, and
// those with @resolver are methods of yours.
type Resolver struct{ Views read.Views }

// New makes the executable schema over views.
func New(views read.Views) graphql.ExecutableSchema {
	c := Config{Resolvers: &Resolver{Views: resolve.Batch(views, isRead)}}
	c.Complexity = complexity()
	return NewExecutableSchema(c)
}

// isRead tells the fields of Query that read views.
func isRead(field string) bool {
	switch field {
	case %s:
		return true
	}
	return false
}

`, w.rootReads())
}

func (w *writer) rootReads() string {
	var names []string
	for _, r := range w.schema.Topology.Reads {
		if r.Parent == "Query" {
			names = append(names, strconv.Quote(r.Field))
		}
	}
	if len(names) == 0 {
		return `""`
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func makerName(typ string) string { return "make" + typ }

// maker writes the function that turns a row into its type.
func (w *writer) maker(o *codegen.Object, v *view.View) {
	w.printf("func %s(row *read.Row, parts []read.Part) *%s {\n\tv := row.Values\n\treturn &%s{\n", makerName(o.Name), o.Name, o.Name)
	for _, f := range o.Fields {
		i := v.Column(f.Name)
		switch {
		case f.IsReserved() || f.IsResolver:
		case i >= 0:
			w.printf("\t\t%s: %s,\n", f.GoFieldName, fromValue(&v.Columns[i], i))
		case f.Type.Name() == "Freshness":
			w.printf("\t\t%s: resolve.RowFreshness(parts, row.Partition),\n", f.GoFieldName)
		}
	}
	w.printf("\t}\n}\n\n")
}

// fromValue is the Go expression of a column.
func fromValue(c *view.Column, i int) string {
	nullable := map[view.Type]string{
		view.String: "String", view.ID: "String", view.Int: "Int", view.Long: "Long", view.Float: "Float",
		view.Boolean: "Boolean", view.DateTime: "Time", view.Decimal: "Dec", view.Duration: "Span",
	}
	if !c.NonNull {
		return fmt.Sprintf("resolve.%s(v[%d])", nullable[c.Type], i)
	}
	form := map[view.Type]string{
		view.String: "v[%d].Str()", view.ID: "v[%d].Str()", view.Int: "int(v[%d].Int())", view.Long: "v[%d].Int()",
		view.Float: "v[%d].Float()", view.Boolean: "v[%d].Bool()", view.DateTime: "resolve.DateTime(v[%d].Int())",
		view.Decimal: "resolve.Decimal{Decimal: v[%d].Dec()}", view.Duration: "resolve.Duration(v[%d].Int())",
	}
	return fmt.Sprintf(form[c.Type], i)
}

// connections writes, for each Connection that is used, how it is made.
func (w *writer) connections() {
	done := map[string]bool{}
	for _, r := range w.schema.Topology.Reads {
		f := findField(w.data, r.Parent, r.Field)
		if r.Shape != schema.Connection || f == nil || done[f.Type.Name()] {
			continue
		}
		name := f.Type.Name()
		done[name] = true
		o := w.data.Objects.ByName(name)
		edge := o.Fields[slices.IndexFunc(o.Fields, func(f *codegen.Field) bool { return f.Name == "edges" })].Type.Name()
		w.printf("func make%s(p *resolve.Page[%s]) *%s {\n\tc := &%s{", name, r.View.Name, name, name)
		for _, f := range o.Fields {
			switch f.Type.Name() {
			case "PageInfo":
				w.printf("%s: p.Info, ", f.GoFieldName)
			case "Freshness":
				w.printf("%s: p.Freshness, ", f.GoFieldName)
			}
		}
		w.printf("Edges: []*%s{}}\n\tfor i, n := range p.Nodes {\n\t\tc.Edges = append(c.Edges, &%s{Node: n, Cursor: p.Cursors[i]})\n\t}\n\treturn c\n}\n\n", edge, edge)
	}
}

// resolvers writes the resolver of each type and its methods.
func (w *writer) resolvers() {
	for _, o := range w.data.Objects {
		if !o.HasResolvers() {
			continue
		}
		typ := lowerFirst(o.Name) + "Resolver"
		w.printf("type %s struct{ *Resolver }\n\n", typ)
		w.printf("// %s resolves the fields of %s.\nfunc (r *Resolver) %s() %sResolver { return &%s{r} }\n\n", o.Name, o.Name, o.Name, o.Name, typ)
		for _, f := range o.Fields {
			if !f.IsResolver {
				continue
			}
			if r := w.read(o.Name, f.Name); r != nil {
				w.printf("func (r *%s) %s%s {\n%s}\n\n", typ, f.GoFieldName, w.signature(f), w.body(f, r))
				continue
			}
			w.printf("func (r *%s) %s%s {\n\treturn r.Resolver.%s(%s)\n}\n\n", typ, f.GoFieldName, f.ShortResolverDeclaration(), methodName(f), callArgs(f))
		}
	}
}

func (w *writer) signature(f *codegen.Field) string {
	if f.IsBatch() && !f.IsRoot() && !isRoot(f.Object.Name) {
		return f.ShortBatchResolverDeclaration()
	}
	return f.ShortResolverDeclaration()
}

func callArgs(f *codegen.Field) string {
	args := []string{"ctx"}
	if !isRoot(f.Object.Name) {
		args = append(args, "obj")
	}
	for _, a := range f.Args {
		args = append(args, a.VarName)
	}
	return strings.Join(args, ", ")
}

// complexity writes what each field costs: a list costs its length times what
// is asked of an element.
func (w *writer) complexity() {
	w.printf("// complexity is what each field that reads a view costs.\nfunc complexity() ComplexityRoot {\n\tvar c ComplexityRoot\n")
	for _, r := range w.schema.Topology.Reads {
		f := findField(w.data, r.Parent, r.Field)
		if f == nil || r.Shape == schema.Number {
			continue
		}
		count, scan := "", ""
		switch {
		case r.ListArg != "":
			count = fmt.Sprintf("len(%s)", argByName(f, r.ListArg).VarName)
		case r.Op == schema.Windows && r.Shape != schema.OneRow:
			count = fmt.Sprintf("resolve.WindowCount(%d, %d, &resolve.Options{%s})", r.View.Window.Size, r.View.Window.Retain, options(f, r, timeOptions))
		case r.Op == schema.Range || r.Op == schema.Top:
			count = fmt.Sprintf("resolve.RowCount(&resolve.Options{%s})", options(f, r, []string{"first"}))
		}
		if r.Op == schema.Top && r.View.Window != nil {
			scan = fmt.Sprintf(" + resolve.ScanCount(%d, %d, &resolve.Options{%s})", r.View.Window.Size, r.View.Window.Retain, options(f, r, timeOptions))
		}
		if count != "" {
			w.printf("\tc.%s.%s = func%s { return resolve.Cost(%s, childComplexity)%s }\n", r.Parent, f.GoFieldName, strings.TrimPrefix(f.ComplexitySignature(), "func"), count, scan)
		}
	}
	w.printf("\treturn c\n}\n")
}

var timeOptions = []string{"from", "to", "last", "step", "fill"}
