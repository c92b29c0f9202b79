package auth

import (
	"slices"
	"strings"
)

// claimAt is the claim at a path: the claim of that very name, else, for each
// way to cut the path at a dot, the rest of it within the object named by the
// front. Names with dots of their own (https://example.org/roles) so need no
// escaping. It is nil when there is none.
func claimAt(claims map[string]any, path string) any {
	if v, ok := claims[path]; ok {
		return v
	}
	for i := 0; i < len(path); i++ {
		if path[i] != '.' {
			continue
		}
		if inner, ok := claims[path[:i]].(map[string]any); ok {
			if v := claimAt(inner, path[i+1:]); v != nil {
				return v
			}
		}
	}
	return nil
}

// scopesOf collects the scopes at all paths. The elements of a list are scopes
// as they stand; a text is split at spaces (RFC 8693 section 4.2); all else is
// ignored.
func scopesOf(claims map[string]any, paths []string) []string {
	var scopes []string
	for _, path := range paths {
		switch v := claimAt(claims, path).(type) {
		case string:
			scopes = append(scopes, strings.Split(v, " ")...)
		case []any:
			for _, e := range v {
				if s, ok := e.(string); ok {
					scopes = append(scopes, s)
				}
			}
		}
	}
	return sortScopes(scopes)
}

// sortScopes copies scopes, sorted, without repetitions and empty ones.
func sortScopes(scopes []string) []string {
	s := slices.Clone(scopes)
	slices.Sort(s)
	s = slices.Compact(s)
	if len(s) > 0 && s[0] == "" {
		s = s[1:]
	}
	return s
}
