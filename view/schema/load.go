package schema

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"
)

// Schema is a checked schema. It is immutable: whoever needs to change its AST
// loads it again.
type Schema struct {
	// AST is the whole schema: the file's, what is injected, GraphQL's own.
	AST      *ast.Schema
	Topology *Topology

	connections []string // row types whose Connection is used and not defined in the file
}

// Bounds of a schema's text.
const (
	maxSchemaBytes  = 1 << 20
	maxSchemaTokens = 200_000
)

// Load reads, checks and compiles a schema's text; name is the file's in
// messages. The error is of type Mistakes.
func Load(name string, text []byte) (*Schema, error) {
	return LoadSources(&ast.Source{Name: name, Input: string(text)})
}

// LoadFile is Load of a file. An error is of type Mistakes unless the file
// cannot be read.
func LoadFile(path string) (*Schema, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	return Load(path, text)
}

// LoadSources is Load of a schema that is divided over several files, in that
// order.
func LoadSources(sources ...*ast.Source) (*Schema, error) {
	doc := &ast.SchemaDocument{}
	var syntax Mistakes
	for _, s := range sources {
		if len(s.Input) > maxSchemaBytes {
			syntax = append(syntax, Mistake{File: s.Name, Line: 1, Column: 1, Message: fmt.Sprintf("the file has %d bytes, the limit is %d", len(s.Input), maxSchemaBytes)})
			continue
		}
		one, err := parser.ParseSchemaWithLimit(&ast.Source{Name: s.Name, Input: s.Input}, maxSchemaTokens)
		if err != nil {
			if lexical := fromLexer(&ast.Source{Name: s.Name, Input: s.Input}); lexical != nil {
				err = lexical
			}
			syntax = append(syntax, fromParser(s.Name, err)...)
			continue
		}
		doc.Merge(one)
	}
	if len(syntax) > 0 {
		return nil, syntax.sorted()
	}
	c := newCompiler(doc)
	if len(sources) > 0 {
		c.file = sources[0].Name
	}
	topology := c.run()
	if err := c.mistakes.sorted(); err != nil {
		return nil, err
	}
	whole, err := validate(doc, c.connections)
	if err != nil {
		return nil, fromParser(c.file, err)
	}
	return &Schema{AST: whole, Topology: topology, connections: c.connections}, nil
}

// FromAST is LoadSources of the files that a schema was made from, as generated
// code carries it: those not built in, by name.
func FromAST(s *ast.Schema) (*Schema, error) {
	found := map[string]*ast.Source{}
	note := func(p *ast.Position) {
		if p != nil && p.Src != nil && !p.Src.BuiltIn {
			found[p.Src.Name] = p.Src
		}
	}
	for _, d := range s.Types {
		note(d.Position)
		for _, f := range d.Fields {
			note(f.Position)
		}
	}
	sources := make([]*ast.Source, 0, len(found))
	for _, src := range found {
		sources = append(sources, src)
	}
	slices.SortFunc(sources, func(a, b *ast.Source) int { return cmp.Compare(a.Name, b.Name) })
	if len(sources) == 0 {
		return nil, Mistakes{{File: "schema", Line: 1, Column: 1, Message: "the schema carries no source text"}}
	}
	return LoadSources(sources...)
}

// validate runs GraphQL's own rules over the file, what is injected and the
// prelude.
func validate(doc *ast.SchemaDocument, connections []string) (*ast.Schema, error) {
	injected, err := parser.ParseSchema(&ast.Source{Name: injectedName, Input: InjectedSDL(connections...), BuiltIn: true})
	if err != nil {
		return nil, fmt.Errorf("parse the injected definitions: %w", err)
	}
	all := validator.PreludeDocument()
	all.Merge(injected)
	all.Merge(doc)
	return validator.ValidateSchemaDocument(all)
}

// InjectedSDL is what this schema is given beside its file.
func (s *Schema) InjectedSDL() string { return InjectedSDL(s.connections...) }

// Connections are the row types whose Connection is injected, by name.
func (s *Schema) Connections() []string { return slices.Clone(s.connections) }
