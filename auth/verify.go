package auth

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"
)

// Verifier turns tokens into principals. Safe for concurrent use.
type Verifier struct {
	off      bool
	nobody   *Principal // who shows no token; nil: refused
	leeway   time.Duration
	paths    []string
	now      func() time.Time
	log      *slog.Logger
	keys     []*key
	parser   *jwt.Parser
	machines *machines

	// verified remembers principals by the SHA-256 of their token until they
	// end, so that a client's second request costs no signature check.
	verified *lru.Cache[[32]byte, *Principal]
}

// maxToken is the longest token looked at, in bytes: HTTP servers take headers
// of this size at most.
const maxToken = 16 << 10

// maxTried is how many keys are tried for a token that does not say which.
const maxTried = 8

var (
	errNoToken  = errors.New("no token")
	errLong     = fmt.Errorf("token longer than %d bytes", maxToken)
	errNoKeys   = errors.New("a JSON Web Token, but no keys are configured")
	errCritical = errors.New("header has crit: no extension is understood")
)

// Anonymous is the principal of a request without a token, nil when a token is
// required.
func (v *Verifier) Anonymous() *Principal { return v.nobody }

// Off says whether authentication is off.
func (v *Verifier) Off() bool { return v.off }

// Verify is the principal of a token. Any error is ErrUnauthenticated, with the
// reason behind Cause. An empty token is refused here: see Anonymous. When
// authentication is off, every token is good.
func (v *Verifier) Verify(_ context.Context, bearer string) (*Principal, error) {
	switch {
	case v.off:
		return v.nobody, nil
	case bearer == "":
		return nil, refuse(errNoToken)
	case len(bearer) > maxToken:
		return nil, refuse(errLong)
	case strings.HasPrefix(bearer, machinePrefix):
		return v.machines.verify(bearer)
	case v.keys == nil:
		return nil, refuse(errNoKeys)
	}
	sum := sha256.Sum256([]byte(bearer))
	if p, ok := v.verified.Get(sum); ok && !p.Expired(v.now()) {
		return p, nil
	}
	p, err := v.verifyJWT(bearer)
	if err != nil {
		return nil, refuse(err)
	}
	v.verified.Add(sum, p)
	return p, nil
}

// verifyJWT checks signature, issuer, audience, exp and nbf (RFC 7519). iat is
// no reason to refuse.
func (v *Verifier) verifyJWT(bearer string) (*Principal, error) {
	claims := jwt.MapClaims{}
	if _, err := v.parser.ParseWithClaims(bearer, claims, v.candidates); err != nil {
		return nil, err
	}
	exp, err := numericDate(claims, "exp")
	if err != nil {
		return nil, err
	}
	if _, err := numericDate(claims, "nbf"); err != nil {
		return nil, err
	}
	subject, err := claims.GetSubject()
	if err != nil {
		return nil, err
	}
	if !v.now().Before(exp) {
		exp = exp.Add(v.leeway)
	}
	return &Principal{
		Subject: subject,
		Scopes:  scopesOf(claims, v.paths),
		Expires: exp,
		Claims:  claims,
		now:     v.now,
	}, nil
}

// candidates are the keys that may have signed the token: of its kid if some
// key has it, else those without a kid; only those its algorithm fits. A token
// without a kid is tried with every key of its algorithm, maxTried at most.
func (v *Verifier) candidates(t *jwt.Token) (any, error) {
	if _, ok := t.Header["crit"]; ok {
		return nil, errCritical
	}
	id, ok := t.Header["kid"].(string)
	if !ok && t.Header["kid"] != nil {
		return nil, errors.New("kid is not a text")
	}
	alg := t.Method.Alg()
	var set jwt.VerificationKeySet
	known := false
	for _, k := range v.keys {
		if id != "" && k.id == id {
			known = true
		}
		if (id == "" || k.id == id) && k.fits(alg) && len(set.Keys) < maxTried {
			set.Keys = append(set.Keys, k.public)
		}
	}
	if id != "" && !known {
		for _, k := range v.keys {
			if k.id == "" && k.fits(alg) && len(set.Keys) < maxTried {
				set.Keys = append(set.Keys, k.public)
			}
		}
	}
	if len(set.Keys) == 0 {
		return nil, fmt.Errorf("no key %.64q for algorithm %s", id, alg)
	}
	return set, nil
}

// latestDate is the end of the year 9999, beyond which a date is a mistake.
const latestDate = 253402300800

// numericDate is a claim's date (RFC 7519 section 2: seconds, perhaps with a
// fraction); the zero time when there is none.
func numericDate(claims jwt.MapClaims, name string) (time.Time, error) {
	v, ok := claims[name]
	if !ok {
		return time.Time{}, nil
	}
	n, ok := v.(json.Number)
	if !ok {
		return time.Time{}, fmt.Errorf("%s is not a number", name)
	}
	f, err := n.Float64()
	if err != nil || math.Abs(f) > latestDate {
		return time.Time{}, fmt.Errorf("%s is out of range", name)
	}
	sec, frac := math.Modf(f)
	return time.Unix(int64(sec), int64(frac*1e9)), nil
}
