package auth

import (
	"bytes"
	"context"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNewRefuses(t *testing.T) {
	weak, private := newRSA(t, 1024), newEC(t, elliptic.P256())
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	privatePEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	long := []byte(strings.Repeat("s", 32))
	file := func(b []byte) []Key { return []Key{{File: write(t, "key", b)}} }
	full := func(alg string, keys []Key) Config {
		return Config{Algorithms: []string{alg}, Keys: keys, Issuer: "i", Audience: "a"}
	}
	tests := []struct {
		name string
		c    Config
		want string
	}{
		{"nothing", Config{}, "nobody could ask"},
		{"keys without algorithms", Config{Keys: file(long), Issuer: "i", Audience: "a"}, "keys without algorithms"},
		{"algorithms without keys", Config{Algorithms: []string{"HS256"}}, "without keys"},
		{"algorithm none", full("none", file(long)), `algorithm "none"`},
		{"no issuer", Config{Algorithms: []string{"HS256"}, Keys: file(long), Audience: "a"}, "issuer and audience"},
		{"no audience", Config{Algorithms: []string{"HS256"}, Keys: file(long), Issuer: "i"}, "issuer and audience"},
		{"short secret", full("HS256", file(long[:31])), "a secret of 31 bytes: need 32"},
		{"short RSA", full("RS256", file(publicPEM(t, &weak.PublicKey))), "an RSA key of 1024 bits: need 2048"},
		{"short RSA in a set", full("RS256", file(set(t, web(t, &weak.PublicKey, nil)))), "1024 bits"},
		{"private key", full("ES256", file(privatePEM)), "private key"},
		{"private key in a set", full("ES256", file(set(t, web(t, &private.PublicKey, map[string]any{"d": "AA"})))), "private key"},
		{"wrong type", full("RS256", file(publicPEM(t, &private.PublicKey))), "nothing in it verifies"},
		{"PEM for a secret", full("HS256", file(publicPEM(t, &private.PublicKey))), "nothing in it verifies"},
		{"alg of the set", full("ES256", file(set(t, web(t, &private.PublicKey, map[string]any{"alg": "ES512"})))), "nothing in it verifies"},
		{"key's algorithm", full("ES256", []Key{{File: file(publicPEM(t, &private.PublicKey))[0].File, Algorithm: "RS256"}}), "not among"},
		{"no point", full("ES256", file(set(t, web(t, &private.PublicKey, map[string]any{"x": "AQ"})))), "not a point"},
		{"no key", full("ES256", file([]byte("hello"))), "neither PEM"},
		{"empty", full("ES256", file(nil)), "is empty"},
		{"missing", full("ES256", []Key{{File: "/nowhere/key.pem"}}), "/nowhere/key.pem"},
		{"no file", full("HS256", []Key{{}}), "file or a secret"},
		{"negative leeway", Config{Leeway: -1, AnonymousScopes: []string{}}, "leeway"},
		{"tokens file", Config{TokensFile: "/nowhere/tokens"}, "tokens file"},
		{"tokens file's line", Config{TokensFile: write(t, "tokens", []byte("# ours\n\nx abc\n"))}, "tokens:3:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := New(tt.c)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), string(long)) {
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

func TestAnonymousAndOff(t *testing.T) {
	v, err := New(Config{AnonymousScopes: []string{"b:read", "a:read", "a:read", ""}})
	if err != nil {
		t.Fatal(err)
	}
	p := v.Anonymous()
	if !p.Anonymous || !slices.Equal(p.Scopes, []string{"a:read", "b:read"}) || p.Has("c:read") || p.Has("") {
		t.Errorf("anonymous: %+v", p)
	}
	if _, err := v.Verify(context.Background(), "x.y.z"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a token without keys: %v", err)
	}

	var log bytes.Buffer
	off, err := New(Config{Off: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "authentication is off") {
		t.Errorf("no warning: %q", log.String())
	}
	for _, token := range []string{"", "junk"} {
		p, err := off.Verify(context.Background(), token)
		if err != nil || Allow(With(context.Background(), p), "anything") != nil || !p.Unrestricted() {
			t.Errorf("off, token %q: %+v, %v", token, p, err)
		}
	}
}

func TestAllow(t *testing.T) {
	bg := context.Background()
	if err := Allow(bg, "a"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("nobody: %v", err)
	}
	ctx := With(bg, NewPrincipal("ann", "a", "b"))
	if err := Allow(ctx, "a"); err != nil {
		t.Errorf("had: %v", err)
	}
	err := Allow(ctx, "secret-store:read")
	if !errors.Is(err, ErrForbidden) || strings.Contains(err.Error(), "secret") {
		t.Errorf("not had: %v", err)
	}
	past := &Principal{Scopes: []string{"a"}, Expires: time.Now().Add(-time.Second)}
	if err := Allow(With(bg, past), "a"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("ended: %v", err)
	}
}

func TestClaimPaths(t *testing.T) {
	p := &Principal{Claims: map[string]any{
		"tenant": "acme", "https://example.org/org": "dotted",
		"realm":        map[string]any{"a.b": map[string]any{"c": "deep"}},
		"resource.app": map[string]any{"roles": []any{"x"}},
		"null":         nil,
	}}
	for path, want := range map[string]any{
		"tenant": "acme", "https://example.org/org": "dotted", "realm.a.b.c": "deep", "nothing": nil, "null": nil, "tenant.x": nil, "realm.": nil,
	} {
		got, ok := p.Claim(path)
		if got != want || ok != (want != nil) {
			t.Errorf("%s: got %v, %v; want %v", path, got, ok, want)
		}
	}
	if got := scopesOf(p.Claims, []string{"resource.app.roles", "tenant"}); !slices.Equal(got, []string{"acme", "x"}) {
		t.Errorf("scopes: %q", got)
	}
}

func TestMachineTokens(t *testing.T) {
	secret, line, err := GenerateToken("grafana", []string{"flights:read", "airports:read"})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(line, secret) {
		t.Errorf("the line tells the secret: %s", line)
	}
	file := write(t, "tokens", []byte("# ours\n\n"+line+"\n"))
	clock := now
	var log bytes.Buffer
	v, err := New(Config{
		TokensFile: file, Now: func() time.Time { return clock }, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	verify := func(token string) *Principal {
		t.Helper()
		p, err := v.Verify(context.Background(), token)
		if err != nil {
			refusedOnly(t, p, err)
		}
		return p
	}
	p := verify(secret)
	if p == nil || p.Subject != "grafana" || !p.Has("flights:read") || p.Has("x") || !p.Expires.IsZero() {
		t.Fatalf("got %+v", p)
	}
	if verify(secret+"x") != nil || verify(machinePrefix) != nil {
		t.Error("another token is good")
	}

	replace := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	second, line2, err := GenerateToken("cron", nil)
	if err != nil {
		t.Fatal(err)
	}
	replace(line2+"\n", now.Add(time.Hour))
	if verify(secret) == nil || verify(second) != nil {
		t.Error("read again within a second")
	}
	clock = clock.Add(time.Second)
	if verify(secret) != nil {
		t.Error("a removed token is still good")
	}
	if p := verify(second); p == nil || len(p.Scopes) != 0 {
		t.Errorf("the new token: %+v", p)
	}
	clock = clock.Add(time.Second)
	replace("broken\n", now.Add(2*time.Hour))
	if verify(second) == nil || !strings.Contains(log.String(), "tokens:1") {
		t.Errorf("a broken file: log %q", log.String())
	}
}

func TestGenerateTokenRefuses(t *testing.T) {
	for _, bad := range []struct {
		name   string
		scopes []string
	}{{"", nil}, {"a b", nil}, {"a#", nil}, {"a", []string{""}}, {"a", []string{"x y"}}, {"a", []string{"x,y"}}} {
		if _, _, err := GenerateToken(bad.name, bad.scopes); err == nil {
			t.Errorf("%q %q: no error", bad.name, bad.scopes)
		}
	}
}

func TestSign(t *testing.T) {
	secret := []byte(strings.Repeat("s", 32))
	v := verifier(t, Config{Algorithms: []string{"HS256"}, Keys: []Key{{Secret: secret, ID: "dev"}}})
	token, err := Sign(secret, Grant{
		Issuer: "https://issuer", Audience: "gauge", Subject: "viewer", Scopes: []string{"a:read", "b:read"},
		Issued: now, Expires: now.Add(time.Hour), KeyID: "dev", Claims: map[string]any{"tenant": 9007199254740993, "sub": "other"},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := v.Verify(context.Background(), token)
	if err != nil {
		t.Fatal(Cause(err))
	}
	tenant, _ := p.Claim("tenant")
	if p.Subject != "viewer" || !p.Has("b:read") || !p.Expires.Equal(now.Add(time.Hour)) {
		t.Errorf("got %+v", p)
	}
	if n, ok := tenant.(interface{ String() string }); !ok || n.String() != "9007199254740993" {
		t.Errorf("a long number became %v", tenant)
	}
	if _, err := Sign(secret[:31], Grant{}); err == nil {
		t.Error("signed with a short secret")
	}
	if _, err := Sign(secret, Grant{Scopes: []string{"a b"}}); err == nil {
		t.Error("signed a scope with a space")
	}
}
