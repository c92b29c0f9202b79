package auth

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"
)

// Config says how a Verifier knows who asks. With Off, nothing else counts.
type Config struct {
	// Algorithms a token may be signed with: HS256, HS384, HS512, RS256, RS384,
	// RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA. Required when
	// there are Keys; what a token's header says never widens it.
	Algorithms []string
	Keys       []Key

	// Issuer and Audience must be in every token, exactly; required when there
	// are Keys. A token's audience may be a list that holds Audience.
	Issuer   string
	Audience string

	// Leeway for exp and nbf between our clock and the issuer's. Zero: 30 s.
	Leeway time.Duration

	// ScopeClaims are the paths of the claims that hold scopes; nil: scope, scp,
	// permissions, realm_access.roles. A path is a claim's name, or names with
	// dots between them; a name may hold dots itself. Elements of a list are
	// scopes as they stand, a text is split at spaces, all else is ignored.
	ScopeClaims []string

	// TokensFile holds hashed machine tokens, a line each; empty: none. It is
	// read again when it changes.
	TokensFile string

	// AnonymousScopes are what one who shows no token may do; nil: a token is
	// required. An empty list that is not nil lets anonymous callers in, with
	// no scope.
	AnonymousScopes []string

	// Off lets everyone do everything.
	Off bool

	Now    func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: none
}

// Key is where the key, or the keys, for tokens come from.
type Key struct {
	// File holds a public key or certificate (PEM), a JSON Web Key or a set of
	// them, or, for the HS algorithms, a secret: its bytes without the line end.
	File string
	// Secret, instead of File, for the HS algorithms.
	Secret []byte
	// ID is the kid of tokens signed with this key. Without one the key is tried
	// for tokens of any kid that no other key has. Keys of a set have their own.
	ID string
	// Algorithm confines the key to one; empty: all that fit its type.
	Algorithm string
}

const defaultLeeway = 30 * time.Second

// verifiedTokens is how many verified tokens are remembered.
const verifiedTokens = 4096

// New makes a Verifier, reading the files named. The error says which setting
// is wrong and what it needs.
func New(c Config) (*Verifier, error) {
	v := &Verifier{leeway: c.Leeway, now: c.Now, log: c.Logger, paths: c.ScopeClaims}
	if v.now == nil {
		v.now = time.Now
	}
	if v.log == nil {
		v.log = slog.New(slog.DiscardHandler)
	}
	if c.Off {
		v.log.Warn("authentication is off: everyone may read everything")
		v.nobody, v.off = Unrestricted(), true
		return v, nil
	}
	if v.leeway == 0 {
		v.leeway = defaultLeeway
	}
	if v.paths == nil {
		v.paths = []string{"scope", "scp", "permissions", "realm_access.roles"}
	}
	if c.AnonymousScopes != nil {
		v.nobody = &Principal{Scopes: sortScopes(c.AnonymousScopes), Anonymous: true}
	}
	if err := v.setKeys(c); err != nil {
		return nil, err
	}
	if c.TokensFile != "" {
		m, err := openMachines(c.TokensFile, v.now, v.log)
		if err != nil {
			return nil, err
		}
		v.machines = m
	}
	if v.keys == nil && v.machines == nil && v.nobody == nil {
		return nil, errors.New("auth: no keys, no tokens file and no anonymous scopes: nobody could ask anything; " +
			"give one of them, or say that authentication is off")
	}
	return v, nil
}

func (v *Verifier) setKeys(c Config) error {
	if c.Leeway < 0 || c.Leeway > time.Hour {
		return fmt.Errorf("auth: leeway %v: need between 0 and 1h", c.Leeway)
	}
	if len(c.Keys) == 0 {
		if len(c.Algorithms) > 0 {
			return fmt.Errorf("auth: algorithms %s without keys: name the files of the keys", strings.Join(c.Algorithms, ", "))
		}
		return nil
	}
	if len(c.Algorithms) == 0 {
		return fmt.Errorf("auth: keys without algorithms: name those that tokens are signed with, of %s", strings.Join(algorithmNames(), ", "))
	}
	for _, a := range c.Algorithms {
		if !slices.Contains(algorithmNames(), a) {
			return fmt.Errorf("auth: algorithm %q: need one of %s", a, strings.Join(algorithmNames(), ", "))
		}
	}
	if c.Issuer == "" || c.Audience == "" {
		return errors.New("auth: keys without issuer and audience: both are required, as the tokens' iss and aud have them")
	}
	for _, k := range c.Keys {
		if err := v.addKey(k, c.Algorithms); err != nil {
			return fmt.Errorf("auth: %w", err)
		}
	}
	v.parser = jwt.NewParser(
		jwt.WithValidMethods(c.Algorithms),
		jwt.WithIssuer(c.Issuer), jwt.WithAudience(c.Audience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(v.leeway),
		jwt.WithJSONNumber(), jwt.WithTimeFunc(v.now),
	)
	cache, err := lru.New[[32]byte, *Principal](verifiedTokens)
	if err != nil {
		return fmt.Errorf("auth: %w", err)
	}
	v.verified = cache
	return nil
}
