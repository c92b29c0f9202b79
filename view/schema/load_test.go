package schema

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/streamgauge/streamgauge/view"
)

const example = "../../schema.graphqls"

func load(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := Load("s.graphqls", []byte(text))
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return s
}

// golden compares with a file of testdata; -update rewrites it.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := "testdata/" + file
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; got\n%s", path, got)
	}
}

// The example at the root compiles whole, to this topology and public schema.
func TestExample(t *testing.T) {
	s, err := LoadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Topology.Describe(&b, "flights"); err != nil {
		t.Fatal(err)
	}
	golden(t, "example.topology", b.String())
	golden(t, "example.public.graphqls", s.PublicSDL())
	golden(t, "example.injected.graphqls", s.InjectedSDL())
}

// The public schema is GraphQL that stands by itself, without a trace of the
// language.
func TestPublic(t *testing.T) {
	s, err := LoadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	public := s.PublicSDL()
	alone, gerr := gqlparser.LoadSchema(&ast.Source{Name: "public", Input: public})
	if gerr != nil {
		t.Fatalf("public schema: %v", gerr)
	}
	for _, absent := range []string{"Flight", "RecordFormat", "Partitioner", "Decimal"} {
		if alone.Types[absent] != nil {
			t.Errorf("%s is public, and no root field reaches it", absent)
		}
	}
	if strings.Count(public, "@") != 1 || alone.Directives[readDirective] == nil {
		t.Error("the only directive to be public is @read")
	}
	for name := range s.Public().Directives {
		if findDirective(name) != nil {
			t.Errorf("@%s is public", name)
		}
	}
	if again, _ := LoadFile(example); again.PublicSDL() != public {
		t.Error("the public schema differs from load to load")
	}
	query := `query($o: String!, $t: String) @read(maxAge: "5s", from: ACTIVE, atLeast: $t, complete: true) { airportTotals(origin: $o) { flights airport { city } freshness { missing { reason } } } __schema { types { name } } }`
	doc, err := parser.ParseQuery(&ast.Source{Input: query})
	if err != nil {
		t.Fatal(err)
	}
	if errs := validator.ValidateWithRules(s.Public(), doc, nil); len(errs) > 0 {
		t.Errorf("query against the public schema: %v", errs)
	}
}

// What a schema compiled into a binary carries is enough to compile it again.
func TestFromAST(t *testing.T) {
	s, err := LoadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	compiled, gerr := gqlparser.LoadSchema(
		&ast.Source{Name: "injected.graphqls", Input: s.InjectedSDL(), BuiltIn: true},
		&ast.Source{Name: "../schema.graphqls", Input: string(text)},
		&ast.Source{Name: "../more.graphqls", Input: `extend type Query { mine: String @resolver }`},
	)
	if gerr != nil {
		t.Fatal(gerr)
	}
	again, err := FromAST(compiled)
	if err != nil {
		t.Fatal(err)
	}
	if again.Topology.String() != s.Topology.String() {
		t.Errorf("got\n%s\nwant\n%s", again.Topology, s.Topology)
	}
	if _, err := FromAST(&ast.Schema{}); err == nil {
		t.Error("a schema without text was taken")
	}
}

// A syntax error and a missing file are told apart.
func TestLoadFile(t *testing.T) {
	_, err := LoadFile("testdata/no-such-file.graphqls")
	var m Mistakes
	if err == nil || errors.As(err, &m) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gave %v", err)
	}
	if _, err := LoadSources(); !errors.As(err, &m) {
		t.Errorf("no file at all gave %v", err)
	}
	if _, err := Load("big.graphqls", make([]byte, maxSchemaBytes+1)); !errors.As(err, &m) {
		t.Errorf("a huge file gave %v", err)
	}
}

// Schemas of the field's odd cases compile, and say what is right about nulls.
func TestFieldCases(t *testing.T) {
	s := load(t, `
type Trade @source(topic: "trades", time: "at", format: JSON) { sym: String! at: DateTime! p: Float }
type Day @view(from: "Trade", by: ["sym"]) @window(size: "1d", grace: "1h", retain: "3650d") {
  sym: String!  open: Float @first(of: "p")  close: Float @last(of: "p")  n: Long! @count  priced: Long! @count(of: "p") }
type Post @source(topic: "posts", time: "at", format: JSON) { acct: Long! at: DateTime! id: Long! }
type Acct @view(from: "Post", by: ["acct"]) { acct: Long!  n: Long! @count  newer: Long! @count(where: "id > 1780921717355446272")  top: Long @max(of: "id")  total: Long @sum(of: "id") }
type M @source(topic: "m", time: "$timestamp", format: JSON) { s: String! v: Float }
type MS @view(from: "M", by: ["s"]) { s: String!  n: Long! @count  lo: Float @min(of: "v")  hi: Float @max(of: "v")  avg: Float @avg(of: "v") }
type Fee @source(topic: "fees", time: "$timestamp", format: JSON) { acct: String! amt: Decimal! }
type FeeSum @view(from: "Fee", by: ["acct"]) { acct: String!  sum: Decimal @sum(of: "amt")  max: Decimal @max(of: "amt") }
type T @source(topic: "t", time: "$timestamp", format: JSON) { k: String! tag: String }
type ByK @view(from: "T", by: ["k"]) { k: String!  n: Long! @count  tagged: Long! @count(of: "tag") }
type ByTag @view(from: "T", by: ["tag"]) { tag: String  n: Long! @count }
type Sale @source(topic: "sales", time: "at", format: JSON) { item: String! at: DateTime! q: Long! }
type ItemSum @view(from: "Sale", by: ["item"]) { item: String! q: Long @sum  r: Float @avg(of: "q", where: "q > 5") }
type Query {
  acct(acct: Long!): Acct @lookup
  byTag(tag: String): ByTag @lookup
  best(first: Int!): [ItemSum!] @top(by: "q")
  rated(first: Int!): [ItemSum!] @top(by: "r")
  days(sym: String!): [Day!] @windows
}`)
	byTag, byK := repartition(t, s, "t-by-tag"), repartition(t, s, "t-by-k")
	if byTag.Required[0] || !byK.Required[0] {
		t.Errorf("null tag dropped: %t, null k dropped: %t; want false, true", byTag.Required[0], byK.Required[0])
	}
	if f := repartition(t, s, "posts-by-acct").Format; f != view.LongKey {
		t.Errorf("a Long key is written as %s", f)
	}
	newer := s.Topology.View("Acct").Columns[2].Agg.Where
	for id, want := range map[int64]bool{1780921717355446273: true, 1780921717355446272: false} {
		v, err := newer([]view.Value{view.OfInt(1), view.OfTime(0), view.OfInt(id)})
		if err != nil || v.Bool() != want {
			t.Errorf("id %d newer: %s, %v; want %t", id, v, err, want)
		}
	}
	if s.Topology.View("Day").Columns[4].Agg.Of == nil || s.Topology.View("Day").Columns[3].Agg.Of != nil {
		t.Error("count(of:) counts values, count counts records")
	}
}

func repartition(t *testing.T, s *Schema, name string) *Repartition {
	t.Helper()
	for _, sub := range s.Topology.Subtopologies {
		if sub.Name == name && sub.Repartition != nil {
			return sub.Repartition
		}
	}
	t.Fatalf("no repartition %s in\n%s", name, s.Topology)
	return nil
}

func FuzzLoad(f *testing.F) {
	if text, err := os.ReadFile(example); err == nil {
		f.Add(string(text))
	}
	data, err := os.ReadFile("testdata/wrong.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, section := range strings.Split(string(data), "\n=== ") {
		_, body, _ := strings.Cut(section, "\n")
		text, _, _ := strings.Cut(body, "\n---\n")
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Load("f.graphqls", []byte(text))
		var m Mistakes
		switch {
		case err == nil:
			if s.Topology == nil || s.Topology.String() == "" || s.PublicSDL() == "" {
				t.Fatal("a schema without a result")
			}
		case !errors.As(err, &m) || len(m) == 0:
			t.Fatalf("error of type %T", err)
		default:
			for _, one := range m {
				if one.Line < 1 || one.Column < 1 || one.Message == "" {
					t.Fatalf("mistake %#v", one)
				}
			}
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	text, err := os.ReadFile(example)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Load("schema.graphqls", text); err != nil {
			b.Fatal(err)
		}
	}
}
