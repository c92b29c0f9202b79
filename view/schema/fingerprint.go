package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/streamgauge/streamgauge/view"
)

// digest is a short, stable hash of parts that are kept apart.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(fmt.Appendf(nil, "%d:%s,", len(p), p))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// meaningOf is a program by its text and by what the fields it names are.
func (r *rowDef) meaningOf(p *program) string {
	parts := []string{p.text}
	for _, i := range p.used {
		f := r.source.source.Fields[i]
		parts = append(parts, fmt.Sprintf("%s=%s %s", f.Name, f.Type, pathText(f.Path)))
	}
	return strings.Join(parts, "; ")
}

// fingerprintColumns gives each column the hash of its meaning. What all the
// state of a view depends on goes into each of its aggregates.
func (c *compiler) fingerprintColumns(r *rowDef) {
	state := r.stateMeaning()
	for i := range r.view.Columns {
		col := &r.view.Columns[i]
		parts := []string{roleName(col.Role), col.Type.String(), r.meaning[col.Name]}
		if col.Role == view.AggRole {
			parts = append(parts, state)
		}
		col.Fingerprint = digest(parts...)
	}
}

// stateMeaning is what every aggregate of a view depends on: the source and
// its event time, the key, the condition, the window.
func (r *rowDef) stateMeaning() string {
	if r.source == nil {
		return ""
	}
	s := r.source.source
	parts := []string{s.Topic, "time $timestamp"}
	if s.Time >= 0 {
		parts[1] = "time " + pathText(s.Fields[s.Time].Path)
	}
	for _, k := range r.keys {
		parts = append(parts, "by "+r.meaningOf(k))
	}
	if r.where != nil {
		parts = append(parts, "where "+r.meaningOf(r.where))
	}
	if w := r.view.Window; w != nil {
		parts = append(parts, "window "+view.FormatDuration(w.Size))
	}
	return strings.Join(parts, "\n")
}

func roleName(r view.Role) string {
	return [...]string{"key", "aggregate", "field", "expr", "start", "end", "final", "id"}[r]
}

// fingerprint of the topology: its parts sorted by name, so that neither the
// order of the file nor its comments matter. Fields of a source keep their
// order: repartition records are written in it.
func (c *compiler) fingerprint() string {
	var parts []string
	for _, s := range c.topology.Sources {
		line := fmt.Sprintf("source %s of %s time %d key %v %s %s", s.Name, s.Topic, s.Time, s.Key, s.KeyFormat, s.Partitioner)
		for _, f := range s.Fields {
			line += fmt.Sprintf("\n%s %s %t %s", f.Name, f.Type, f.NonNull, pathText(f.Path))
		}
		parts = append(parts, line)
	}
	for _, v := range c.topology.Views {
		parts = append(parts, viewMeaning(v))
	}
	for _, s := range c.topology.Subtopologies {
		if rep := s.Repartition; rep != nil {
			parts = append(parts, fmt.Sprintf("repartition %s of %s %v %s %v %v", rep.Name, rep.Source.Name, rep.Types, rep.Format, rep.Required, rep.Carry))
		}
	}
	slices.Sort(parts)
	return digest(parts...)
}

func viewMeaning(v *view.View) string {
	columns := make([]string, len(v.Columns))
	for i, col := range v.Columns {
		columns[i] = fmt.Sprintf("%s %s %t", col.Name, col.Fingerprint, col.NonNull)
	}
	slices.Sort(columns)
	window := "none"
	if w := v.Window; w != nil {
		window = fmt.Sprint(w.Size, w.Grace, w.Retain)
	}
	keys := ""
	for _, k := range v.Keys {
		keys += " " + v.Columns[k].Name
	}
	return fmt.Sprintf("view %s in %s of %s %q by%s window %s %s %s\n%s", v.Name, v.Store, v.Subtopology, v.Topic, keys, window, v.KeyFormat, v.Partitioner, strings.Join(columns, "\n"))
}
