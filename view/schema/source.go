package schema

import (
	"regexp"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/streamgauge/streamgauge/view"
)

// sourceDef is a source type while it is compiled.
type sourceDef struct {
	def    *ast.Definition
	dir    *ast.Directive
	source *Source
	scope  *scope
}

func (c *compiler) addSource(def *ast.Definition) {
	d := def.Directives.ForName("source")
	s := &sourceDef{def: def, dir: d, source: &Source{
		Name:        def.Name,
		Topic:       stringOf(d, "topic"),
		Time:        -1,
		KeyFormat:   keyFormatOf(d),
		Partitioner: partitionerOf(d),
	}}
	s.scope = &scope{what: "fields of " + def.Name, broken: map[string]bool{}}
	c.checkTopic(d)
	for _, f := range def.Fields {
		c.addSourceField(s, f)
	}
	c.sourceTime(s)
	c.sourceKey(s)
	c.sources[def.Name] = s
	c.topology.Sources = append(c.topology.Sources, s.source)
}

func (c *compiler) addSourceField(s *sourceDef, f *ast.FieldDefinition) {
	field, ok := c.recordField(f, s.source.KeyFormat)
	if !ok {
		s.scope.broken[f.Name] = true
	}
	s.source.Fields = append(s.source.Fields, field)
	s.scope.fields = append(s.scope.fields, variable{f.Name, field.Type})
}

// recordField is a field of a record: its type and where it comes from.
func (c *compiler) recordField(f *ast.FieldDefinition, key view.KeyFormat) (Field, bool) {
	field := Field{Name: f.Name, NonNull: f.Type.NonNull, Path: Path{Names: []string{f.Name}}}
	if len(f.Arguments) > 0 {
		c.mistakes.add(f.Arguments[0].Position, "%s is a field of a record, it takes no arguments", f.Name)
	}
	t, ok := scalarOf(f.Type)
	if !ok {
		if f.Directives.ForName("join") == nil && c.known(f.Type) {
			c.mistakes.add(typeAt(f.Type), "a field of a record cannot be %s; allowed: %s", an(f.Type), columnTypes)
		}
		return field, false
	}
	field.Type = t
	v := textOf(f.Directives.ForName("field"), "path")
	if v == nil {
		return field, true
	}
	path, err := parsePath(v.Raw)
	if err == nil {
		field.Path = path
		err = pathAllows(path, t, key)
	}
	if err != nil {
		c.mistakes.add(valueAt(v), "%s", err)
	}
	return field, true
}

// known says whether a type reference's name exists: where not, it was noted.
func (c *compiler) known(t *ast.Type) bool {
	n := t.Name()
	if _, scalar := view.TypeOf(n); scalar || c.types[n] != nil || c.connectionRow(n) != "" {
		return true
	}
	for _, i := range injectedNames {
		if i == n {
			return true
		}
	}
	return false
}

// sourceTime finds the event time: a field, or the record's own timestamp.
func (c *compiler) sourceTime(s *sourceDef) {
	v := textOf(s.dir, "time")
	if v == nil || v.Raw == "$timestamp" {
		return
	}
	i := s.scope.find(v.Raw)
	switch {
	case i < 0 && s.scope.broken[v.Raw]:
	case i < 0:
		c.mistakes.add(valueAt(v), "time: unknown field %q; %s: %s; or $timestamp", v.Raw, s.scope.what, s.scope.names())
	case s.source.Fields[i].Type != view.DateTime || !s.source.Fields[i].NonNull:
		c.mistakes.add(valueAt(v), "time: %s must be a DateTime!, every record needs its time", v.Raw)
	default:
		s.source.Time = i
	}
}

func (c *compiler) sourceKey(s *sourceDef) {
	list, given := listOf(s.dir, "key")
	switch {
	case !given:
		return
	case len(list) != 1:
		c.mistakes.add(argAt(s.dir, "key"), "key of @source must be one field; keys of several are not supported yet")
		return
	}
	i := s.scope.find(list[0].Raw)
	if i < 0 {
		if !s.scope.broken[list[0].Raw] {
			c.mistakes.add(valueAt(list[0]), "key: unknown field %q; %s: %s", list[0].Raw, s.scope.what, s.scope.names())
		}
		return
	}
	if err := keyHolds(s.source.KeyFormat, s.source.Fields[i].Type); err != nil {
		c.mistakes.add(valueAt(list[0]), "key: %s", err)
		return
	}
	s.source.Key = []int{i}
}

var topicName = regexp.MustCompile(`^[a-zA-Z0-9._-]{1,249}$`)

func (c *compiler) checkTopic(d *ast.Directive) {
	v := textOf(d, "topic")
	if v != nil && (!topicName.MatchString(v.Raw) || v.Raw == "." || v.Raw == "..") {
		c.mistakes.add(valueAt(v), "topic %q is no name of a topic; allowed: letters, digits, '.', '_' and '-', up to 249", shorten(v.Raw))
	}
}

// checkTopics wants the source types of one topic to agree about its key.
func (c *compiler) checkTopics() {
	first := map[string]*sourceDef{}
	for _, def := range c.order {
		s := c.sources[def.Name]
		if s == nil || s.source.Key == nil {
			continue
		}
		other := first[s.source.Topic]
		if other == nil {
			first[s.source.Topic] = s
			continue
		}
		if s.source.KeyFormat != other.source.KeyFormat || s.source.Partitioner != other.source.Partitioner {
			c.mistakes.add(directiveAt(s.dir), "%s and %s read the topic %s with different keyFormat or partitioner; a topic has one", other.def.Name, def.Name, s.source.Topic)
		}
	}
}
