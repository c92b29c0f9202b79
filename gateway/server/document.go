package server

import (
	"context"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/complexity"
	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"
)

// document is a parsed and validated document, within the limits. It is shared
// by all requests that send it and never changes.
type document struct {
	ast *ast.QueryDocument
	// costs of the operations without variables, whose complexity is fixed.
	costs map[*ast.OperationDefinition]int
}

// maxProblems is how many mistakes of a document are reported.
const maxProblems = 10

// document parses, measures and validates a document, or finds it in the cache.
// What is too large is refused before validation, whose time grows with the
// square of what is in one selection.
func (s *Server) document(ctx context.Context, text string) (*document, gqlerror.List) {
	if d := s.documents.get(text); d != nil {
		s.metrics.cacheHits.Inc()
		return d, nil
	}
	s.metrics.cacheMisses.Inc()
	parsed, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: text}, max(s.limits.Tokens, 0))
	if err != nil {
		return nil, parseProblem(err)
	}
	if len(parsed.Operations) == 0 {
		return nil, problem(CodeValidation, "the document has no operation")
	}
	if errs := s.measure(parsed); errs != nil {
		return nil, errs
	}
	if errs := s.validate(parsed); errs != nil {
		return nil, errs
	}
	d := &document{ast: parsed, costs: map[*ast.OperationDefinition]int{}}
	for _, op := range parsed.Operations {
		if len(op.VariableDefinitions) == 0 {
			d.costs[op] = complexity.Calculate(ctx, s.schema, op, nil)
		}
	}
	s.documents.add(text, d)
	return d, nil
}

func parseProblem(err error) gqlerror.List {
	e := gqlerror.WrapIfUnwrapped(err)
	code := CodeParse
	if strings.HasPrefix(e.Message, "exceeded ") { // the parser's limits on tokens and nesting
		code = CodeLimit
	}
	return gqlerror.List{{Message: shorten(e.Message), Locations: e.Locations, Extensions: map[string]any{"code": code}}}
}

// validate applies the rules of the GraphQL specification, section 5, and binds
// the document to the schema.
func (s *Server) validate(doc *ast.QueryDocument) gqlerror.List {
	var errs gqlerror.List
	events := &core.Events{}
	for _, rule := range s.rules {
		rule.RuleFunc(events, func(options ...core.ErrorOption) {
			if len(errs) >= maxProblems {
				return
			}
			e := &gqlerror.Error{}
			for _, o := range options {
				o(e)
			}
			errs = append(errs, &gqlerror.Error{
				Message: shorten(e.Message), Locations: e.Locations,
				Extensions: map[string]any{"code": CodeValidation},
			})
		})
	}
	core.Walk(s.schema.Schema(), doc, events)
	return errs
}

// validationRules are the specification's, in those variants that do not look
// for similar names: that costs time, and tells of fields one did not ask for.
func validationRules() []core.Rule {
	return []core.Rule{
		rules.FieldsOnCorrectTypeRuleWithoutSuggestions,
		rules.FragmentsOnCompositeTypesRule,
		rules.KnownArgumentNamesRuleWithoutSuggestions,
		rules.KnownDirectivesRule,
		rules.KnownFragmentNamesRule,
		rules.KnownRootTypeRule,
		rules.KnownTypeNamesRuleWithoutSuggestions,
		rules.LoneAnonymousOperationRule,
		rules.MaxIntrospectionDepth,
		rules.NoFragmentCyclesRule,
		rules.NoUndefinedVariablesRule,
		rules.NoUnusedFragmentsRule,
		rules.NoUnusedVariablesRule,
		rules.OverlappingFieldsCanBeMergedRule,
		rules.PossibleFragmentSpreadsRule,
		rules.ProvidedRequiredArgumentsRule,
		rules.ScalarLeafsRuleWithoutSuggestions,
		rules.UniqueArgumentNamesRule,
		rules.UniqueDirectivesPerLocationRule,
		rules.UniqueFragmentNamesRule,
		rules.UniqueInputFieldNamesRule,
		rules.UniqueOperationNamesRule,
		rules.UniqueVariableNamesRule,
		rules.ValuesOfCorrectTypeRuleWithoutSuggestions,
		rules.VariablesAreInputTypesRule,
		rules.VariablesInAllowedPositionRule,
	}
}

// maxDocumentBytes bounds the texts of the cached documents together; a parsed
// one takes some hundred times its text.
const maxDocumentBytes = 2 << 20

// documents is the cache, by text: the longest unused are forgotten.
type documents struct {
	mu    sync.Mutex // guards both
	lru   *simplelru.LRU[string, *document]
	bytes int
}

func newDocuments(size int) (*documents, error) {
	d := &documents{}
	if size < 0 {
		return d, nil
	}
	var err error
	d.lru, err = simplelru.NewLRU(size, func(text string, _ *document) { d.bytes -= len(text) })
	return d, err
}

func (d *documents) get(text string) *document {
	if d.lru == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	doc, _ := d.lru.Get(text)
	return doc
}

func (d *documents) add(text string, doc *document) {
	if d.lru == nil || len(text) > maxDocumentBytes/16 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lru.Contains(text) {
		return
	}
	d.lru.Add(text, doc)
	for d.bytes += len(text); d.bytes > maxDocumentBytes; {
		d.lru.RemoveOldest()
	}
}
