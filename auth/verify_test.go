package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var now = time.Unix(1700000000, 0)

func fixed() time.Time { return now }

func write(t *testing.T, name string, b []byte) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(f, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func publicPEM(t *testing.T, public any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func newRSA(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0") // to make the weak key that must be refused
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newEC(t *testing.T, c elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(c, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// web is a key as a JSON Web Key, with more members.
func web(t *testing.T, public any, more map[string]any) map[string]any {
	t.Helper()
	m := map[string]any{}
	switch k := public.(type) {
	case *rsa.PublicKey:
		m["kty"], m["n"], m["e"] = "RSA", b64(k.N.Bytes()), b64(big.NewInt(int64(k.E)).Bytes())
	case *ecdsa.PublicKey:
		point, err := k.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		half := (len(point) - 1) / 2
		m["kty"], m["crv"], m["x"], m["y"] = "EC", k.Curve.Params().Name, b64(point[1:1+half]), b64(point[1+half:])
	case ed25519.PublicKey:
		m["kty"], m["crv"], m["x"] = "OKP", "Ed25519", b64(k)
	case []byte:
		m["kty"], m["k"] = "oct", b64(k)
	}
	maps.Copy(m, more)
	return m
}

func set(t *testing.T, keys ...map[string]any) []byte {
	t.Helper()
	b, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func good() jwt.MapClaims {
	return jwt.MapClaims{
		"iss": "https://issuer", "aud": "gauge", "sub": "ann", "exp": now.Unix() + 100,
		"scope": "flights:read",
	}
}

func sign(t *testing.T, m jwt.SigningMethod, key any, kid string, claims jwt.Claims) string {
	t.Helper()
	token := jwt.NewWithClaims(m, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	s, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func verifier(t *testing.T, c Config) *Verifier {
	t.Helper()
	c.Issuer, c.Audience, c.Now = "https://issuer", "gauge", fixed
	v, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func refusedOnly(t *testing.T, p *Principal, err error) {
	t.Helper()
	if p != nil || !errors.Is(err, ErrUnauthenticated) {
		t.Fatalf("got %+v, %v; want ErrUnauthenticated", p, err)
	}
	if err.Error() != ErrUnauthenticated.Error() {
		t.Errorf("the refusal says %q", err)
	}
	if Cause(err) == nil {
		t.Error("no cause for the log")
	}
}

func TestWhichKey(t *testing.T) {
	a, b, ec := newRSA(t, 2048), newRSA(t, 2048), newEC(t, elliptic.P256())
	kid := func(id string) map[string]any { return map[string]any{"kid": id} }
	sig := func(id string) map[string]any { return map[string]any{"kid": id, "use": "sig"} }
	spare := web(t, &ec.PublicKey, kid("spare"))
	rs, es := jwt.SigningMethodRS256, jwt.SigningMethodES256
	one := set(t, web(t, &a.PublicKey, kid("a")))

	tests := []struct {
		name  string
		set   []byte
		token string
		want  bool
	}{
		{"one key without kid, token without", set(t, web(t, &a.PublicKey, nil)), sign(t, rs, a, "", good()), true},
		{"one key, token without kid", one, sign(t, rs, a, "", good()), true},
		{
			"a key for encryption",
			set(t, web(t, &a.PublicKey, sig("a")), web(t, &b.PublicKey, map[string]any{"kid": "b", "use": "enc"})),
			sign(t, rs, b, "b", good()), false,
		},
		{
			"a key for signing only", set(t, web(t, &a.PublicKey, map[string]any{"kid": "a", "key_ops": []string{"encrypt"}}), spare),
			sign(t, rs, a, "a", good()), false,
		},
		{
			"no kid, one candidate of the algorithm", set(t, web(t, &a.PublicKey, sig("a")), web(t, &ec.PublicKey, sig("c"))),
			sign(t, rs, a, "", good()), true,
		},
		{
			"no kid, the second of two", set(t, web(t, &a.PublicKey, sig("a")), web(t, &b.PublicKey, sig("b"))),
			sign(t, rs, b, "", good()), true,
		},
		{"kid of a key without alg", one, sign(t, rs, a, "a", good()), true},
		{
			"key confined to another algorithm", set(t, web(t, &a.PublicKey, map[string]any{"kid": "a", "alg": "RS512"}), spare),
			sign(t, rs, a, "a", good()), false,
		},
		{"HS256 under the public key", one, sign(t, jwt.SigningMethodHS256, publicPEM(t, &a.PublicKey), "a", good()), false},
		{"alg none", one, sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "a", good()), false},
		{"alg none without kid", one, sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "", good()), false},
		{"algorithm not configured", one, sign(t, jwt.SigningMethodRS512, a, "a", good()), false},
		{"unknown kid", one, sign(t, rs, a, "z", good()), false},
		{"kid of another key", set(t, web(t, &a.PublicKey, kid("a")), web(t, &b.PublicKey, kid("b"))), sign(t, rs, a, "b", good()), false},
		{"kid of a key of another type", set(t, web(t, &a.PublicKey, kid("a")), spare), sign(t, rs, a, "spare", good()), false},
		{"unknown kid, a key without one", set(t, web(t, &a.PublicKey, nil)), sign(t, rs, a, "z", good()), true},
		{"the other algorithm", set(t, spare), sign(t, es, ec, "spare", good()), true},
		{"forged", one, sign(t, rs, b, "a", good()), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := verifier(t, Config{
				Algorithms: []string{"RS256", "ES256"},
				Keys:       []Key{{File: write(t, "keys.json", tt.set)}},
			})
			p, err := v.Verify(context.Background(), tt.token)
			if !tt.want {
				refusedOnly(t, p, err)
				return
			}
			if err != nil {
				t.Fatalf("refused: %v", Cause(err))
			}
			if p.Subject != "ann" || !p.Has("flights:read") || !p.Expires.Equal(now.Add(100*time.Second)) {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestTriesAreBounded(t *testing.T) {
	var keys []map[string]any
	last := newEC(t, elliptic.P256())
	for range maxTried {
		keys = append(keys, web(t, &newEC(t, elliptic.P256()).PublicKey, nil))
	}
	keys = append(keys, web(t, &last.PublicKey, map[string]any{"kid": "last"}))
	v := verifier(t, Config{Algorithms: []string{"ES256"}, Keys: []Key{{File: write(t, "keys.json", set(t, keys...))}}})
	p, err := v.Verify(context.Background(), sign(t, jwt.SigningMethodES256, last, "", good()))
	refusedOnly(t, p, err)
	if _, err := v.Verify(context.Background(), sign(t, jwt.SigningMethodES256, last, "last", good())); err != nil {
		t.Errorf("by its kid: %v", Cause(err))
	}
}

func TestEveryAlgorithm(t *testing.T) {
	r := newRSA(t, 2048)
	p256, p384, p521 := newEC(t, elliptic.P256()), newEC(t, elliptic.P384()), newEC(t, elliptic.P521())
	edPublic, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret := []byte(strings.Repeat("s", 64))
	tests := []struct {
		method      jwt.SigningMethod
		key, public any
	}{
		{jwt.SigningMethodHS256, secret, secret}, {jwt.SigningMethodHS384, secret, secret}, {jwt.SigningMethodHS512, secret, secret},
		{jwt.SigningMethodRS256, r, &r.PublicKey}, {jwt.SigningMethodRS384, r, &r.PublicKey}, {jwt.SigningMethodRS512, r, &r.PublicKey},
		{jwt.SigningMethodPS256, r, &r.PublicKey}, {jwt.SigningMethodPS384, r, &r.PublicKey}, {jwt.SigningMethodPS512, r, &r.PublicKey},
		{jwt.SigningMethodES256, p256, &p256.PublicKey}, {jwt.SigningMethodES384, p384, &p384.PublicKey}, {jwt.SigningMethodES512, p521, &p521.PublicKey},
		{jwt.SigningMethodEdDSA, ed, edPublic},
	}
	for _, tt := range tests {
		t.Run(tt.method.Alg(), func(t *testing.T) {
			plain, ok := tt.public.([]byte)
			if ok {
				plain = append(plain[:len(plain):len(plain)], '\n')
			} else {
				plain = publicPEM(t, tt.public)
			}
			token := sign(t, tt.method, tt.key, "", good())
			for form, b := range map[string][]byte{"plain": plain, "jwk": set(t, web(t, tt.public, nil))} {
				v := verifier(t, Config{Algorithms: []string{tt.method.Alg()}, Keys: []Key{{File: write(t, "key", b)}}})
				if _, err := v.Verify(context.Background(), token); err != nil {
					t.Errorf("%s: %v", form, Cause(err))
				}
				other := token[:len(token)-8] + "AAAAAAAA"
				if _, err := v.Verify(context.Background(), other); err == nil {
					t.Errorf("%s: a broken signature is good", form)
				}
			}
		})
	}
}

func TestClaims(t *testing.T) {
	secret := []byte(strings.Repeat("s", 32))
	v := verifier(t, Config{
		Algorithms:  []string{"HS256"},
		Keys:        []Key{{Secret: secret}},
		ScopeClaims: []string{"scope", "scp", "realm.roles"},
	})
	const (
		allowed = "allowed"
		forbid  = "FORBIDDEN"
		unauth  = "UNAUTHENTICATED"
	)
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	tests := []struct {
		name string
		with map[string]any // nil removes
		want string
	}{
		{"aud text", map[string]any{"aud": "gauge"}, allowed},
		{"aud list", map[string]any{"aud": []string{"other", "gauge"}}, allowed},
		{"aud another", map[string]any{"aud": []string{"gauges"}}, unauth},
		{"aud empty", map[string]any{"aud": []string{}}, unauth},
		{"aud missing", map[string]any{"aud": nil}, unauth},
		{"aud in capitals", map[string]any{"aud": "GAUGE"}, unauth},
		{"iss another", map[string]any{"iss": "https://issuer/"}, unauth},
		{"iss missing", map[string]any{"iss": nil}, unauth},
		{"exp fraction", map[string]any{"exp": raw("1700000100.5")}, allowed},
		{"exp exponent", map[string]any{"exp": raw("1.7000001e+09")}, allowed},
		{"exp 20 s ago", map[string]any{"exp": raw("1699999980")}, allowed},
		{"exp 100 s ago", map[string]any{"exp": raw("1699999900")}, unauth},
		{"exp missing", map[string]any{"exp": nil}, unauth},
		{"exp null", map[string]any{"exp": raw("null")}, unauth},
		{"exp zero", map[string]any{"exp": raw("0")}, unauth},
		{"exp text", map[string]any{"exp": "1700000100"}, unauth},
		{"exp beyond time", map[string]any{"exp": raw("1e300")}, unauth},
		{"exp beyond numbers", map[string]any{"exp": raw("1e400")}, unauth},
		{"iat ahead", map[string]any{"iat": raw("1700000005")}, allowed},
		{"iat far ahead", map[string]any{"iat": raw("1800000000")}, allowed},
		{"nbf within leeway", map[string]any{"nbf": raw("1700000010")}, allowed},
		{"nbf ahead", map[string]any{"nbf": raw("1700000600")}, unauth},
		{"nbf beyond numbers", map[string]any{"nbf": raw("1e400")}, unauth},
		{"scope text", map[string]any{"scope": "openid flights:read"}, allowed},
		{"scope list", map[string]any{"scope": []string{"openid", "flights:read"}}, allowed},
		{"scp list", map[string]any{"scope": nil, "scp": []string{"flights:read"}}, allowed},
		{"scp text", map[string]any{"scope": nil, "scp": "a flights:read"}, allowed},
		{"nested", map[string]any{"scope": nil, "realm": map[string]any{"roles": []string{"flights:read"}}}, allowed},
		{"longer", map[string]any{"scope": "flights:reader"}, forbid},
		{"with a front", map[string]any{"scope": "xflights:read"}, forbid},
		{"element with a space", map[string]any{"scope": []string{"flights:read x"}}, forbid},
		{"empty text", map[string]any{"scope": ""}, forbid},
		{"scp null", map[string]any{"scope": nil, "scp": raw("null")}, forbid},
		{"scp number", map[string]any{"scope": nil, "scp": 5}, forbid},
		{"scp mixed", map[string]any{"scope": nil, "scp": []any{5, "flights:read"}}, allowed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			claims := good()
			for k, c := range tt.with {
				if claims[k] = c; c == nil {
					delete(claims, k)
				}
			}
			p, err := v.Verify(context.Background(), sign(t, jwt.SigningMethodHS256, secret, "", claims))
			if tt.want == unauth {
				refusedOnly(t, p, err)
				return
			}
			if err != nil {
				t.Fatalf("refused: %v", Cause(err))
			}
			got := allowed
			switch err := Allow(With(context.Background(), p), "flights:read"); {
			case errors.Is(err, ErrForbidden):
				got = forbid
			case err != nil:
				got = unauth
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestExpires(t *testing.T) {
	secret := []byte(strings.Repeat("s", 32))
	for exp, want := range map[string]time.Time{
		"1700000100.5": now.Add(100*time.Second + 500*time.Millisecond),
		"1699999980":   now.Add(10 * time.Second), // the end of the leeway
	} {
		clock := now
		v, err := New(Config{
			Algorithms: []string{"HS256"}, Keys: []Key{{Secret: secret}}, Issuer: "https://issuer", Audience: "gauge",
			Now: func() time.Time { return clock },
		})
		if err != nil {
			t.Fatal(err)
		}
		claims := good()
		claims["exp"] = json.RawMessage(exp)
		token := sign(t, jwt.SigningMethodHS256, secret, "", claims)
		p, err := v.Verify(context.Background(), token)
		if err != nil {
			t.Fatal(Cause(err))
		}
		if !p.Expires.Equal(want) {
			t.Errorf("exp %s: ends %v, want %v", exp, p.Expires.UTC(), want.UTC())
		}
		again, err := v.Verify(context.Background(), token)
		if err != nil || again != p {
			t.Errorf("exp %s: the second time %p, %v; want the same principal", exp, again, err)
		}
		ctx := With(context.Background(), p)
		if err := Allow(ctx, "flights:read"); err != nil {
			t.Errorf("exp %s: before its end %v", exp, err)
		}
		clock = want
		if err := Allow(ctx, "flights:read"); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("exp %s: at its end %v", exp, err)
		}
		clock = want.Add(time.Minute)
		if p, err := v.Verify(context.Background(), token); err == nil {
			t.Errorf("exp %s: remembered beyond its end: %+v", exp, p)
		}
	}
}

func TestMalformedTokens(t *testing.T) {
	secret := []byte(strings.Repeat("s", 32))
	v := verifier(t, Config{Algorithms: []string{"HS256"}, Keys: []Key{{Secret: secret}}})
	critical := jwt.NewWithClaims(jwt.SigningMethodHS256, good())
	critical.Header["crit"] = []string{"b64"}
	c, err := critical.SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	number := jwt.NewWithClaims(jwt.SigningMethodHS256, good())
	number.Header["kid"] = 7
	n, err := number.SignedString(secret)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{
		"", "x", "..", "a.b", "a.b.c.d", strings.Repeat("a", maxToken+1), c, n, machinePrefix + "x",
		b64([]byte("null")) + "." + b64([]byte("null")) + ".", b64([]byte(`{"alg":5}`)) + "." + b64([]byte("{}")) + ".AA",
	} {
		p, err := v.Verify(context.Background(), token)
		refusedOnly(t, p, err)
	}
}

func FuzzVerify(f *testing.F) {
	secret := []byte(strings.Repeat("s", 32))
	v, err := New(Config{
		Algorithms: []string{"HS256"}, Keys: []Key{{Secret: secret}}, Issuer: "i", Audience: "a", Now: fixed,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(`{"alg":"HS256"}`, `{"iss":"i","aud":["a"],"exp":1700000100,"scope":"x"}`)
	f.Add(`{"alg":"none","kid":null}`, `{"exp":1e999,"scp":[{}]}`)
	f.Fuzz(func(t *testing.T, header, claims string) {
		text := b64([]byte(header)) + "." + b64([]byte(claims))
		sum, err := jwt.SigningMethodHS256.Sign(text, secret)
		if err != nil {
			t.Fatal(err)
		}
		p, err := v.Verify(context.Background(), text+"."+b64(sum))
		if (p == nil) == (err == nil) {
			t.Fatalf("got %+v, %v", p, err)
		}
		if p != nil && p.Expires.IsZero() {
			t.Errorf("never ends: %s", claims)
		}
	})
}
