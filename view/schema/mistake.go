package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
)

// Mistake is one thing wrong in a schema file.
type Mistake struct {
	File         string
	Line, Column int    // from 1; columns count characters
	Message      string // what is wrong, what is allowed
}

func (m Mistake) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, m.Message)
}

// Mistakes are all that is wrong in a schema, in the order of the file. It is
// the error of Load.
type Mistakes []Mistake

// Error is a line a mistake.
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i := range m {
		lines[i] = m[i].String()
	}
	return strings.Join(lines, "\n")
}

// maxMistakes bounds what one load reports.
const maxMistakes = 200

// add notes a mistake at a position of the syntax tree.
func (m *Mistakes) add(at *ast.Position, format string, args ...any) {
	one := Mistake{File: "schema", Line: 1, Column: 1, Message: fmt.Sprintf(format, args...)}
	if at != nil {
		one.Line, one.Column = at.Line, at.Column
		if at.Src != nil {
			one.File = at.Src.Name
		}
	}
	if len(*m) < maxMistakes && !slices.Contains(*m, one) {
		*m = append(*m, one)
	}
}

// sorted is the list in the order of the file, nil when there is none.
func (m Mistakes) sorted() error {
	if len(m) == 0 {
		return nil
	}
	slices.SortStableFunc(m, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return m
}

// fromLexer is the lexical error of a text; the parser says only that it found
// something invalid.
func fromLexer(src *ast.Source) error {
	l := lexer.New(src)
	for {
		tok, err := l.ReadToken()
		if err != nil {
			return err
		}
		if tok.Kind == lexer.EOF {
			return nil
		}
	}
}

// fromParser turns the GraphQL parser's error into a mistake.
func fromParser(name string, err error) Mistakes {
	m := Mistake{File: name, Line: 1, Column: 1, Message: err.Error()}
	var g *gqlerror.Error
	if errors.As(err, &g) {
		m.Message = strings.TrimSuffix(g.Message, ".")
		if file, ok := g.Extensions["file"].(string); ok {
			m.File = file
		}
		if len(g.Locations) > 0 {
			m.Line, m.Column = max(1, g.Locations[0].Line), max(1, g.Locations[0].Column)
		}
	}
	return Mistakes{m}
}

// directiveAt is the position of a directive's @: the tree has its name's.
func directiveAt(d *ast.Directive) *ast.Position { return before(d.Position) }

// valueAt is the position of a value; a text's is that of its quote, where the
// tree has its first character, or, of a block, some place near its end.
func valueAt(v *ast.Value) *ast.Position {
	switch {
	case v.Kind == ast.StringValue:
		return before(v.Position)
	case v.Kind == ast.BlockValue && v.Position != nil && v.Position.Src != nil:
		return atOffset(v.Position)
	}
	return v.Position
}

// atOffset counts line and column anew from where the token starts.
func atOffset(p *ast.Position) *ast.Position {
	q := *p
	q.Line, q.Column = 1, 1
	n := 0
	for _, r := range p.Src.Input {
		if n >= p.Start {
			break
		}
		n++
		q.Column++
		if r == '\n' {
			q.Line++
			q.Column = 1
		}
	}
	return &q
}

// typeAt is the position of a type reference; a list's is that of its bracket.
func typeAt(t *ast.Type) *ast.Position {
	if t.Elem != nil {
		return before(t.Position)
	}
	return t.Position
}

func before(p *ast.Position) *ast.Position {
	if p == nil || p.Column < 2 {
		return p
	}
	q := *p
	q.Column--
	return &q
}

// insideAt is the position of a character within a text value: exact when the
// text is written plainly, without escapes and on one line; otherwise where
// the value begins.
func insideAt(v *ast.Value, runes int) *ast.Position {
	p := v.Position
	if v.Kind != ast.StringValue || p == nil || p.End-p.Start != utf8.RuneCountInString(v.Raw)+2 {
		return valueAt(v)
	}
	q := *p
	q.Column += runes
	return &q
}

// an puts the article before a type's name.
func an(name any) string {
	s := fmt.Sprint(name)
	if strings.HasPrefix(s, "I") {
		return "an " + s
	}
	return "a " + s
}

// oneOf lists names as a message does: "a, b or c".
func oneOf(names []string) string {
	switch n := len(names); n {
	case 0:
		return "nothing"
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " or " + names[n-1]
	}
}
