package auth

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Grant is what a signed token says.
type Grant struct {
	Issuer, Audience, Subject string
	Scopes                    []string // the scope claim; none holds a space
	Issued, Expires           time.Time
	Claims                    map[string]any // more claims; those above win
	KeyID                     string         // the header's kid; empty: none
}

// Sign makes a token for the grant, signed with HS256 under the secret (32
// bytes or more). It is for those who have no identity provider: trials, tests,
// a first installation.
func Sign(secret []byte, g Grant) (string, error) {
	if err := strongEnough(secret); err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	for _, s := range g.Scopes {
		if s == "" || strings.Contains(s, " ") {
			return "", fmt.Errorf("signing a token: scope %q: need a text without spaces", s)
		}
	}
	claims := jwt.MapClaims{}
	maps.Copy(claims, g.Claims)
	claims["iss"] = g.Issuer
	claims["aud"] = g.Audience
	claims["sub"] = g.Subject
	claims["scope"] = strings.Join(g.Scopes, " ")
	claims["iat"] = g.Issued.Unix()
	claims["exp"] = g.Expires.Unix()
	t := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
	if g.KeyID != "" {
		t.Header["kid"] = g.KeyID
	}
	s, err := t.SignedString(secret)
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	return s, nil
}
