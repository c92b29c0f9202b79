package schema

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/streamgauge/streamgauge/view"
)

// String is Describe for an application without a name yet.
func (t *Topology) String() string {
	var b strings.Builder
	_ = t.Describe(&b, "<app>") // a Builder takes everything
	return b.String()
}

// Describe writes the topology of an application as text: subtopologies with
// their topics, stores, scopes and changelogs, global tables, and the fields
// that read. The error is w's.
func (t *Topology) Describe(w io.Writer, app string) error {
	b := &strings.Builder{}
	for i, s := range t.Subtopologies {
		if i > 0 {
			b.WriteByte('\n')
		}
		s.describe(b, app)
	}
	for _, table := range t.Tables {
		table.describe(b)
	}
	if len(t.Reads) > 0 {
		b.WriteString("\nfields\n")
	}
	for _, r := range t.Reads {
		r.describe(b)
	}
	fmt.Fprintf(b, "\nfingerprint %s\n", t.Fingerprint)
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Subtopology) describe(b *strings.Builder, app string) {
	fmt.Fprintf(b, "subtopology %s\n  reads topic %s\n", s.Name, s.TopicOf(app))
	for _, source := range s.Sources {
		source.describe(b)
	}
	if rep := s.Repartition; rep != nil {
		fmt.Fprintf(b, "  records of %s by %s, keys as %s, with %s\n", rep.Source.Name, rep.describeKey(), rep.Format, fieldNames(rep.Source, rep.Carry))
	}
	for _, rep := range s.Forwards {
		fmt.Fprintf(b, "  forwards %s to %s-%s-repartition\n", rep.Source.Name, app, rep.Name)
	}
	for _, f := range s.Feeds {
		describeView(b, f.View)
		fmt.Fprintf(b, "    changelog %s\n", Changelog(app, f.View.Store))
	}
}

func (s *Source) describe(b *strings.Builder) {
	time := "$timestamp"
	if s.Time >= 0 {
		time = s.Fields[s.Time].Name
	}
	fmt.Fprintf(b, "  source %s, event time %s", s.Name, time)
	if len(s.Key) > 0 {
		fmt.Fprintf(b, ", keyed by %s as %s with %s", fieldNames(s, s.Key), s.KeyFormat, s.Partitioner)
	}
	b.WriteByte('\n')
	for _, f := range s.Fields {
		fmt.Fprintf(b, "    %s %s from %s\n", f.Name, typeName(f.Type, f.NonNull), pathText(f.Path))
	}
}

// describeKey is the types of the key; ! where null is dropped.
func (r *Repartition) describeKey() string {
	names := make([]string, len(r.Types))
	for i, t := range r.Types {
		names[i] = typeName(t, r.Required[i])
	}
	return strings.Join(names, ", ")
}

func fieldNames(s *Source, fields []int) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = s.Fields[f].Name
	}
	return strings.Join(names, ", ")
}

func typeName(t view.Type, nonNull bool) string {
	if nonNull {
		return t.String() + "!"
	}
	return t.String()
}

func (t *Table) describe(b *strings.Builder) {
	fmt.Fprintf(b, "\nglobal table\n  reads topic %s\n", t.Topic)
	describeView(b, t.View)
}

func describeView(b *strings.Builder, v *view.View) {
	fmt.Fprintf(b, "  %s\n    store %s, scope %s\n    key", v.Name, v.Store, v.Scope)
	for i, k := range v.Keys {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, " %s %s", v.Columns[k].Name, typeName(v.Columns[k].Type, v.Columns[k].NonNull))
	}
	fmt.Fprintf(b, ", as %s with %s\n", v.KeyFormat, v.Partitioner)
	if w := v.Window; w != nil {
		fmt.Fprintf(b, "    window %s, grace %s, retained %s\n", view.FormatDuration(w.Size), view.FormatDuration(w.Grace), view.FormatDuration(w.Retain))
	}
	for _, r := range v.Rankings {
		fmt.Fprintf(b, "    ranked by %s\n", r.Name(v))
	}
}

func (r *Read) describe(b *strings.Builder) {
	var args []string
	for _, a := range r.Args {
		args = append(args, a.Name)
	}
	if r.ListArg != "" {
		args = append(args, "["+r.ListArg+"]")
	}
	fmt.Fprintf(b, "  %s.%s(%s): %s of %s", r.Parent, r.Field, strings.Join(slices.Concat(args, r.Options), ", "), r.Op, r.View.Name)
	if len(r.Columns) > 0 {
		fmt.Fprintf(b, " by %s", strings.Join(r.Columns, ", "))
	}
	if r.By != "" {
		fmt.Fprintf(b, " by %s", r.By)
	}
	if r.Where != "" {
		fmt.Fprintf(b, " where %s", r.Where)
	}
	fmt.Fprintf(b, ", %s\n", r.Shape)
}

func (s Shape) String() string {
	return [...]string{"one row", "a list", "a connection", "rows and freshness", "a number"}[s]
}
