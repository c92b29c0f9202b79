package schema

import (
	"slices"
	"strings"

	"github.com/streamgauge/streamgauge/view"
)

// maxSubtopology is the longest name of a subtopology: its topic adds the
// application's name and "-repartition".
const maxSubtopology = 180

// placement puts views into subtopologies: on the source's own task when the
// producer's key is theirs, otherwise behind a repartition that all views of
// one source and key share.
type placement struct {
	c            *compiler
	sources      map[string]*Subtopology // by topic
	repartitions map[string]*Subtopology // by name
	identity     map[string]string       // of a repartition's name: what it means
	feeds        map[*Subtopology][]*rowDef
}

func (c *compiler) place() {
	p := &placement{
		c:            c,
		sources:      map[string]*Subtopology{},
		repartitions: map[string]*Subtopology{},
		identity:     map[string]string{},
		feeds:        map[*Subtopology][]*rowDef{},
	}
	for _, r := range c.keyed {
		switch {
		case r.table != nil:
		case r.atSource():
			p.keepAtSource(r)
		default:
			p.keepBehindRepartition(r)
		}
	}
	for _, s := range c.topology.Subtopologies {
		if s.Repartition != nil {
			p.complete(s)
			if p.sources[s.Name] != nil {
				c.mistakes.add(p.feeds[s][0].def.Position, "subtopology %s is named like the topic %s; a topic that ends in -by-… needs another key column's name", s.Name, s.Name)
			}
		}
	}
	for _, r := range c.keyed {
		c.fingerprintColumns(r)
	}
}

// atSource says whether the view's key is the producer's, so that a source
// partition holds all of a key's records.
func (r *rowDef) atSource() bool {
	s := r.source.source
	return len(s.Key) == 1 && len(r.keys) == 1 && r.keys[0].text == s.Fields[s.Key[0]].Name && r.keys[0].typ.Kind() == s.Fields[s.Key[0]].Type.Kind()
}

// sourceTask is the subtopology of the view's source topic, with the source
// type on it.
func (p *placement) sourceTask(r *rowDef) *Subtopology {
	source := r.source.source
	s := p.sources[source.Topic]
	if s == nil {
		s = &Subtopology{Name: source.Topic, Topic: source.Topic}
		p.sources[source.Topic] = s
		p.c.topology.Subtopologies = append(p.c.topology.Subtopologies, s)
	}
	if !slices.Contains(s.Sources, source) {
		s.Sources = append(s.Sources, source)
	}
	return s
}

func (p *placement) keepAtSource(r *rowDef) {
	s := p.sourceTask(r)
	v := r.view
	v.Topic, v.Subtopology = s.Topic, s.Name
	v.KeyFormat, v.Partitioner = r.source.source.KeyFormat, r.source.source.Partitioner
	p.feed(s, r)
}

func (p *placement) feed(s *Subtopology, r *rowDef) {
	f := &Feed{View: r.view, Source: r.source.source}
	if r.where != nil {
		f.Where = r.where.eval
	}
	s.Feeds = append(s.Feeds, f)
	p.feeds[s] = append(p.feeds[s], r)
}

func (p *placement) keepBehindRepartition(r *rowDef) {
	name := p.repartitionName(r)
	if len(name) > maxSubtopology {
		p.c.mistakes.add(argAt(r.dir, "by"), "subtopology %s has %d characters, the limit is %d; use a shorter topic or column", shorten(name), len(name), maxSubtopology)
		return
	}
	identity := r.keyIdentity()
	s := p.repartitions[name]
	switch {
	case s == nil:
		source := p.sourceTask(r)
		s = &Subtopology{Name: name, Repartition: r.repartition(name)}
		p.repartitions[name], p.identity[name] = s, identity
		source.Forwards = append(source.Forwards, s.Repartition)
		p.c.topology.Subtopologies = append(p.c.topology.Subtopologies, s)
	case p.identity[name] != identity:
		p.c.mistakes.add(argAt(r.dir, "by"), "%s and %s call their key columns %s and compute them differently; rename the column in one of them", p.feeds[s][0].def.Name, r.def.Name, strings.Join(r.by, ", "))
		return
	}
	v := r.view
	v.Subtopology, v.KeyFormat, v.Partitioner = name, s.Repartition.Format, view.Murmur2
	p.feed(s, r)
}

// repartitionName is <topic>-by-<columns>, with the source type in it when
// others read the topic too: it follows from content, never from order.
func (p *placement) repartitionName(r *rowDef) string {
	source := r.source.source
	name := source.Topic
	for _, other := range p.c.sources {
		if other.source != source && other.source.Topic == source.Topic {
			name += "-" + kebab(source.Name)
			break
		}
	}
	return name + "-by-" + strings.Join(r.by, "-")
}

// keyIdentity tells keys apart by what they compute.
func (r *rowDef) keyIdentity() string {
	parts := []string{r.source.def.Name}
	for _, k := range r.keys {
		t := k.typ
		if t == view.ID {
			t = view.String
		}
		parts = append(parts, t.String()+" "+k.text)
	}
	return strings.Join(parts, "\x00")
}

func (r *rowDef) repartition(name string) *Repartition {
	out := &Repartition{Name: name, Source: r.source.source}
	for _, k := range r.keys {
		out.By = append(out.By, k.eval)
		out.Types = append(out.Types, k.typ)
	}
	out.Format = repartitionFormat(out.Types)
	return out
}

// repartitionFormat is how the key of a repartition is written.
func repartitionFormat(types []view.Type) view.KeyFormat {
	if len(types) == 1 {
		switch types[0] {
		case view.String, view.ID:
			return view.TextKey
		case view.Int:
			return view.IntKey
		case view.Long, view.DateTime, view.Duration:
			return view.LongKey
		}
	}
	return view.TupleKey
}

// complete works out what a repartition needs of all its views: the fields to
// carry, and the key columns that none of them lets be null.
func (p *placement) complete(s *Subtopology) {
	rep := s.Repartition
	used := map[int]bool{}
	if rep.Source.Time >= 0 {
		used[rep.Source.Time] = true
	}
	rep.Required = slices.Repeat([]bool{true}, len(rep.By))
	for _, r := range p.feeds[s] {
		for i := range r.used {
			used[i] = true
		}
		for i, k := range r.view.Keys {
			rep.Required[i] = rep.Required[i] && r.view.Columns[k].NonNull
		}
	}
	for i := range used {
		rep.Carry = append(rep.Carry, i)
	}
	slices.Sort(rep.Carry)
}
