package gen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/templates"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/schema"
)

// body is the body of the resolver of a field that reads a view.
func (w *writer) body(f *codegen.Field, r *schema.Read) string {
	if !isRoot(r.Parent) {
		return w.nested(f, r)
	}
	var b strings.Builder
	query := w.query(&b, f, r)
	row, maker := r.View.Name, makerName(r.View.Name)
	if r.Parent == "Subscription" {
		b.WriteString("\treturn " + w.watch(f, r, query, maker) + "\n")
		return b.String()
	}
	switch r.Shape {
	case schema.OneRow:
		fmt.Fprintf(&b, "\treturn resolve.One(ctx, r.Views, %s, %s)\n", query, maker)
	case schema.RowList:
		fmt.Fprintf(&b, "\treturn resolve.List(ctx, r.Views, %s, %s)\n", query, maker)
	case schema.Number:
		fmt.Fprintf(&b, "\treturn resolve.Count(ctx, r.Views, %s)\n", query)
	case schema.Wrapper:
		fmt.Fprintf(&b, "\tsgRows, sgFresh, sgErr := resolve.Rows(ctx, r.Views, %s, %s)\n\tif sgErr != nil {\n\t\treturn nil, sgErr\n\t}\n\treturn %s, nil\n", query, maker, w.wrap(f))
	case schema.Connection:
		fmt.Fprintf(&b, "\tsgPage, sgErr := resolve.Pages(ctx, r.Views, %s, %s)\n\tif sgErr != nil {\n\t\treturn nil, sgErr\n\t}\n\treturn make%s(sgPage), nil\n", query, maker, f.Type.Name())
	default:
		panic("gen: unknown shape of " + row)
	}
	return b.String()
}

func (w *writer) watch(f *codegen.Field, r *schema.Read, query, maker string) string {
	o := fmt.Sprintf("&resolve.Options{%s}", options(f, r, []string{"every"}))
	switch r.Shape {
	case schema.OneRow:
		return fmt.Sprintf("resolve.WatchOne(ctx, r.Views, %s, %s, %s)", query, o, maker)
	case schema.Number:
		return fmt.Sprintf("resolve.WatchCount(ctx, r.Views, %s, %s)", query, o)
	case schema.Wrapper:
		return fmt.Sprintf("resolve.WatchRows(ctx, r.Views, %s, %s, %s, func(sgRows []*%s, sgFresh *resolve.Freshness) *%s { return %s })", query, o, maker, r.View.Name, f.Type.Name(), w.wrap(f))
	case schema.Connection:
		return fmt.Sprintf("resolve.WatchPage(ctx, r.Views, %s, %s, %s, make%s)", query, o, maker, f.Type.Name())
	}
	return fmt.Sprintf("resolve.WatchList(ctx, r.Views, %s, %s, %s)", query, o, maker)
}

// wrap makes the type with rows and freshness.
func (w *writer) wrap(f *codegen.Field) string {
	o := w.data.Objects.ByName(f.Type.Name())
	var fields []string
	for _, x := range o.Fields {
		switch {
		case x.Name == "rows":
			fields = append(fields, x.GoFieldName+": sgRows")
		case x.Type.Name() == "Freshness":
			fields = append(fields, x.GoFieldName+": sgFresh")
		}
	}
	return fmt.Sprintf("&%s{%s}", o.Name, strings.Join(fields, ", "))
}

// query is the expression of the query; what must come before it is written
// to b.
func (w *writer) query(b *strings.Builder, f *codegen.Field, r *schema.Read) string {
	o := fmt.Sprintf("&resolve.Options{%s}", options(f, r, nil))
	key := keyOf(f, r)
	switch r.Op {
	case schema.Lookup:
		if r.ListArg != "" {
			return fmt.Sprintf("resolve.LookupQuery(%q, %s...)", r.View.Store, w.listKeys(f, r))
		}
		return fmt.Sprintf("resolve.LookupQuery(%q, []view.Value{%s})", r.View.Store, key)
	case schema.Windows:
		return fmt.Sprintf("resolve.WindowsQuery(%q, %t, %s, []view.Value{%s})", r.View.Store, r.Shape == schema.OneRow, o, key)
	case schema.Top:
		return fmt.Sprintf("resolve.TopQuery(%q, %q, %s%s)", r.View.Store, rankingOf(r), o, more(key))
	case schema.Size:
		return fmt.Sprintf("resolve.SizeQuery(%q%s)", r.View.Store, more(key))
	}
	fmt.Fprintf(b, "\tsgQuery, sgErr := resolve.RangeQuery(%q, %s%s)\n\tif sgErr != nil {\n\t\treturn nil, sgErr\n\t}\n", r.View.Store, o, more(key))
	return "sgQuery"
}

func more(s string) string {
	if s == "" {
		return ""
	}
	return ", " + s
}

func rankingOf(r *schema.Read) string {
	order := view.Ranking{By: r.View.Column(r.By), WhereText: r.Where}
	return order.Name(r.View)
}

// keyOf are the values of the key columns that arguments fix.
func keyOf(f *codegen.Field, r *schema.Read) string {
	var parts []string
	for _, a := range r.Args {
		parts = append(parts, keyExpr(argByName(f, a.Name)))
	}
	return strings.Join(parts, ", ")
}

func keyExpr(a *codegen.FieldArgument) string {
	if a.TypeReference.IsPtr() || a.TypeReference.IsNilable() {
		return fmt.Sprintf("resolve.KeyOf(%s)", a.VarName)
	}
	return fmt.Sprintf("resolve.Key(%s)", a.VarName)
}

// listKeys is the expression of the keys of a lookup of many.
func (w *writer) listKeys(f *codegen.Field, r *schema.Read) string {
	a := argByName(f, r.ListArg)
	elem := "resolve.Key(sgKey)"
	switch {
	case r.ListOf != nil:
		var parts []string
		input := w.data.Inputs.ByName(a.Type.Name())
		for _, name := range r.ListOf {
			field := input.Fields[slices.IndexFunc(input.Fields, func(f *codegen.Field) bool { return f.Name == name })]
			fn := "Key"
			if field.TypeReference.IsPtr() {
				fn = "KeyOf"
			}
			parts = append(parts, fmt.Sprintf("resolve.%s(sgKey.%s)", fn, field.GoFieldName))
		}
		elem = strings.Join(parts, ", ")
	case !a.Type.Elem.NonNull:
		elem = "resolve.KeyOf(sgKey)"
	}
	typ := templates.CurrentImports.LookupType(a.TypeReference.Elem().GO)
	return fmt.Sprintf("resolve.Keys(%s, func(sgKey %s) []view.Value { return []view.Value{%s} })", a.VarName, typ, elem)
}

// options are the fields of resolve.Options that the field's arguments give;
// with only, those alone.
func options(f *codegen.Field, r *schema.Read, only []string) string {
	var parts []string
	for _, name := range r.Options {
		if only != nil && !slices.Contains(only, name) || only == nil && name == "every" {
			continue
		}
		a := argByName(f, name)
		expr := a.VarName
		if !a.TypeReference.IsPtr() {
			expr = "resolve.Ptr(" + a.VarName + ")"
		}
		parts = append(parts, strings.ToUpper(name[:1])+name[1:]+": "+expr)
	}
	return strings.Join(parts, ", ")
}

func argByName(f *codegen.Field, name string) *codegen.FieldArgument {
	for _, a := range f.Args {
		if a.Name == name {
			return a
		}
	}
	panic("gen: no argument " + name + " of " + f.Name)
}

// nested is the body of a batch resolver: one read for all parents.
func (w *writer) nested(f *codegen.Field, r *schema.Read) string {
	var parts []string
	parent := w.schema.Topology.View(r.Parent)
	for _, name := range r.Columns {
		fn := "KeyOf"
		if c := parent.Column(name); parent.Columns[c].NonNull {
			fn = "Key"
		}
		parts = append(parts, fmt.Sprintf("resolve.%s(p.%s)", fn, findField(w.data, r.Parent, name).GoFieldName))
	}
	key := fmt.Sprintf("func(p *%s) []view.Value { return []view.Value{%s} }", r.Parent, strings.Join(parts, ", "))
	query := fmt.Sprintf("resolve.LookupQuery(%q, keys...)", r.View.Store)
	if r.Op == schema.Windows {
		query = fmt.Sprintf("resolve.WindowsQuery(%q, %t, &resolve.Options{%s}, keys...)", r.View.Store, r.Shape == schema.OneRow, options(f, r, nil))
	}
	call := "ListEach"
	if r.Shape == schema.OneRow {
		call = "OneEach"
	}
	return fmt.Sprintf("\treturn resolve.%s(ctx, r.Views, objs, %s, func(keys ...[]view.Value) *read.Query {\n\t\treturn %s\n\t}, %s)\n", call, key, query, makerName(r.View.Name))
}
