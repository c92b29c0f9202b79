// Package settings reads settings into a structure: a YAML file over the
// defaults, then the environment over both. Fields are found by their yaml tag;
// a mistake is an error of one line that says where it is, and never shows a
// secret.
package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Secret is a text that nothing prints.
type Secret string

const hidden = "(hidden)"

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the secret from a log.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON hides the secret.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// File reads a file over what the structure that into points to has. Top-level
// settings other than those in only are passed over; none given: all are taken,
// and one that is unknown is an error.
func File(into any, path string, only ...string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if err := decode(into, b, only); err != nil {
		return fmt.Errorf("configuration: %s:%s", path, mistake(b, err))
	}
	return nil
}

// decode reads a file. A section without a setting would clear all of it: it
// changes nothing.
func decode(into any, file []byte, only []string) error {
	f, err := parser.ParseBytes(file, 0)
	if err != nil {
		return err
	}
	for _, doc := range f.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		if m, ok := doc.Body.(*ast.MappingNode); ok {
			prune(m, only)
			if len(m.Values) == 0 {
				continue
			}
		}
		if err := yaml.NewDecoder(bytes.NewReader(nil), yaml.Strict()).DecodeFromNode(doc.Body, into); err != nil {
			return err
		}
	}
	return nil
}

// prune takes out what is not wanted, and sections without a setting, however
// deep.
func prune(m *ast.MappingNode, only []string) {
	m.Values = slices.DeleteFunc(m.Values, func(v *ast.MappingValueNode) bool {
		if inner, ok := v.Value.(*ast.MappingNode); ok {
			prune(inner, nil)
		}
		unwanted := len(only) > 0 && !slices.Contains(only, strings.TrimSpace(v.Key.String()))
		return unwanted || v.Value.Type() == ast.NullType
	})
}
