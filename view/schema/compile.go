package schema

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
)

// compiler checks one schema and builds its topology. Each pass notes what is
// wrong and goes on, so that a file's mistakes come all at once; a part that is
// wrong is marked broken, and later passes say nothing more about it.
type compiler struct {
	file     string
	doc      *ast.SchemaDocument
	mistakes Mistakes

	types         map[string]*ast.Definition // the file's, with their extensions
	order         []*ast.Definition          // the same, in the order of the file
	ownDirectives map[string]bool            // defined in the file
	connections   []string                   // row types whose Connection is injected

	sources map[string]*sourceDef
	rows    map[string]*rowDef
	keyed   []*rowDef // views and tables, in the order of the file
	reads   []*readSite

	topology *Topology
}

func newCompiler(doc *ast.SchemaDocument) *compiler {
	c := &compiler{
		file:          "schema",
		doc:           doc,
		types:         map[string]*ast.Definition{},
		ownDirectives: map[string]bool{},
		sources:       map[string]*sourceDef{},
		rows:          map[string]*rowDef{},
		topology:      &Topology{},
	}
	for _, d := range doc.Directives {
		c.ownDirectives[d.Name] = true
	}
	return c
}

// run makes the passes in the order in which they lean on each other. The
// topology is whole only when no mistake was noted.
func (c *compiler) run() *Topology {
	c.gather()
	c.checkDefinitions()
	c.checkRoots()
	for _, def := range c.order {
		switch c.kindOf(def) {
		case sourceKind:
			c.addSource(def)
		case tableKind:
			c.addTable(def)
		}
	}
	c.checkTopics()
	for _, def := range c.order {
		if c.kindOf(def) == viewKind {
			c.addView(def)
		}
	}
	c.sortRows()
	c.checkStores()
	for _, site := range c.sites() {
		c.addRead(site)
	}
	c.checkWrappers()
	if len(c.mistakes) > 0 {
		return nil
	}
	c.place()
	if len(c.mistakes) > 0 {
		return nil
	}
	c.topology.Fingerprint = c.fingerprint()
	return c.topology
}

// sortRows puts views and tables in the order of the file.
func (c *compiler) sortRows() {
	for _, def := range c.order {
		if r := c.rows[def.Name]; r != nil {
			c.keyed = append(c.keyed, r)
			c.topology.Views = append(c.topology.Views, r.view)
		}
	}
}

// needConnection notes that a row type's Connection is used.
func (c *compiler) needConnection(row string) {
	if i, found := slices.BinarySearch(c.connections, row); !found {
		c.connections = slices.Insert(c.connections, i, row)
	}
}
