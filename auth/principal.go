package auth

import (
	"context"
	"errors"
	"slices"
	"time"
)

// The two refusals. Neither says more to the one refused.
var (
	// ErrUnauthenticated: no principal, a bad token, or one that has ended.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrForbidden: the principal lacks the scope.
	ErrForbidden = errors.New("forbidden")
)

// Principal is someone who asks. It is immutable once made and may be shared
// between goroutines.
type Principal struct {
	// Subject is the token's sub, a machine token's name, or empty for an
	// anonymous principal.
	Subject string
	// Scopes are sorted and without repetitions.
	Scopes []string
	// Expires is when the principal ends; zero: never. For a JWT it is exp, or,
	// when the token was accepted within the leeway after exp, the end of the
	// leeway.
	Expires time.Time
	// Anonymous: no token was given.
	Anonymous bool
	// Claims of a JWT, numbers as json.Number; nil for others.
	Claims map[string]any

	everything bool
	now        func() time.Time // nil: time.Now
}

// Unrestricted is the principal when authentication is off: it has every scope
// and never ends.
func Unrestricted() *Principal { return &Principal{Anonymous: true, everything: true} }

// NewPrincipal makes a principal with the scopes given, for those who know by
// other means than a token who asks.
func NewPrincipal(subject string, scopes ...string) *Principal {
	return &Principal{Subject: subject, Scopes: sortScopes(scopes)}
}

// Has says whether the principal has the scope. It does not look at Expires.
func (p *Principal) Has(scope string) bool {
	if p == nil {
		return false
	}
	if p.everything {
		return true
	}
	_, ok := slices.BinarySearch(p.Scopes, scope)
	return ok
}

// Unrestricted says whether authentication is off for this principal: every
// scope is had and no claim confines it.
func (p *Principal) Unrestricted() bool { return p != nil && p.everything }

// Expired says whether the principal has ended at now.
func (p *Principal) Expired(now time.Time) bool {
	return !p.Expires.IsZero() && !now.Before(p.Expires)
}

// Claim is the claim at a path (see Config.ScopeClaims), and whether there is
// one that is not null.
func (p *Principal) Claim(path string) (any, bool) {
	if p == nil {
		return nil, false
	}
	v := claimAt(p.Claims, path)
	return v, v != nil
}

func (p *Principal) clock() time.Time {
	if p.now != nil {
		return p.now()
	}
	return time.Now()
}

type contextKey struct{}

// With puts a principal into a context.
func With(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From is the context's principal, nil when there is none.
func From(ctx context.Context) *Principal {
	p, _ := ctx.Value(contextKey{}).(*Principal)
	return p
}

// Allow says whether the context's principal may do what needs the scope: nil,
// ErrUnauthenticated when there is no principal or it has ended, ErrForbidden
// when it lacks the scope. It is asked before each read, also for each event of
// a subscription, whose token may have ended meanwhile.
func Allow(ctx context.Context, scope string) error {
	p := From(ctx)
	switch {
	case p == nil, !p.Expires.IsZero() && p.Expired(p.clock()):
		return ErrUnauthenticated
	case !p.Has(scope):
		return ErrForbidden
	}
	return nil
}

// refusal is ErrUnauthenticated with a cause for the log.
type refusal struct{ cause error }

func (r *refusal) Error() string        { return ErrUnauthenticated.Error() }
func (r *refusal) Is(target error) bool { return target == ErrUnauthenticated }

func refuse(cause error) error { return &refusal{cause} }

// Cause is why a token was refused, for the log alone: it may tell an attacker
// what to try next. It is nil when err carries none.
func Cause(err error) error {
	var r *refusal
	if errors.As(err, &r) {
		return r.cause
	}
	return nil
}
