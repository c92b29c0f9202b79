package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamgauge/streamgauge/view"
)

const pathsAllowed = "allowed: names joined by dots, $key, $value, $timestamp, $headers.name"

// parsePath reads a @field path. What is not said with $ leads into the
// value's JSON; everything after "$headers." is one name.
func parsePath(text string) (Path, error) {
	switch {
	case text == "$key":
		return Path{Origin: TheKey}, nil
	case text == "$value":
		return Path{Origin: TheValue}, nil
	case text == "$timestamp":
		return Path{Origin: TheTime}, nil
	case strings.HasPrefix(text, "$headers.") && text != "$headers.":
		return Path{Origin: TheHeader, Names: []string{strings.TrimPrefix(text, "$headers.")}}, nil
	case strings.HasPrefix(text, "$key."):
		return Path{}, fmt.Errorf("path %q: parts of a key are not supported yet; %s", text, pathsAllowed)
	case strings.HasPrefix(text, "^."):
		return Path{}, fmt.Errorf("path %q: the parent of an element is not supported yet; %s", text, pathsAllowed)
	case strings.HasPrefix(text, "$"):
		return Path{}, fmt.Errorf("path %q: there is no such part of a record; %s", text, pathsAllowed)
	}
	names := strings.Split(text, ".")
	if slices.Contains(names, "") {
		return Path{}, fmt.Errorf("path %q has an empty name; %s", text, pathsAllowed)
	}
	return Path{Names: names}, nil
}

// pathText is the path as written.
func pathText(p Path) string {
	switch p.Origin {
	case TheKey:
		return strings.Join(append([]string{"$key"}, p.Names...), ".")
	case TheValue:
		return "$value"
	case TheTime:
		return "$timestamp"
	case TheHeader:
		return "$headers." + strings.Join(p.Names, ".")
	}
	return strings.Join(p.Names, ".")
}

// pathAllows says whether what the path leads to can be of the type; an error
// names the types that can.
func pathAllows(p Path, t view.Type, key view.KeyFormat) error {
	switch p.Origin {
	case TheTime:
		if t != view.DateTime {
			return fmt.Errorf("$timestamp is a DateTime, not %s", an(t))
		}
	case TheHeader:
		if !slices.Contains(headerTypes, t) {
			return fmt.Errorf("a header is a text, it cannot be %s; allowed: %s", an(t), typeNames(headerTypes))
		}
	case TheKey:
		return keyHolds(key, t)
	}
	return nil
}

// headerTypes are those that view.ParseText reads.
var headerTypes = []view.Type{view.String, view.ID, view.Long, view.Decimal, view.DateTime, view.Duration}

// keyTypes are the types that each format of a key can hold.
func keyTypes(f view.KeyFormat) []view.Type {
	switch f {
	case view.IntKey:
		return []view.Type{view.Int}
	case view.LongKey:
		return []view.Type{view.Long, view.DateTime}
	}
	return []view.Type{view.String, view.ID, view.Int, view.Long}
}

func keyHolds(f view.KeyFormat, t view.Type) error {
	if types := keyTypes(f); !slices.Contains(types, t) {
		return fmt.Errorf("a key of format %s cannot be %s; allowed: %s", f, an(t), typeNames(types))
	}
	return nil
}

func typeNames(types []view.Type) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.String()
	}
	return oneOf(names)
}
