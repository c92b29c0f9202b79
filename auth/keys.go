package auth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// key verifies tokens: a secret ([]byte), *rsa.PublicKey, *ecdsa.PublicKey or
// ed25519.PublicKey.
type key struct {
	id         string
	public     any
	algorithms []string // of the configured ones
}

func (k *key) fits(algorithm string) bool { return slices.Contains(k.algorithms, algorithm) }

const (
	minSecret  = 32   // bytes: the output of SHA-256 (RFC 7518 section 3.2)
	minRSA     = 2048 // bits (RFC 7518 section 3.3)
	maxKeyFile = 1 << 20
)

func algorithmNames() []string {
	return []string{
		"HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512",
		"ES256", "ES384", "ES512", "EdDSA",
	}
}

// algorithmsOf are those a key's type can be used with.
func algorithmsOf(public any) []string {
	all := algorithmNames()
	switch k := public.(type) {
	case []byte:
		return all[:3]
	case *rsa.PublicKey:
		return all[3:9]
	case *ecdsa.PublicKey:
		switch k.Curve.Params().BitSize {
		case 256:
			return all[9:10]
		case 384:
			return all[10:11]
		case 521:
			return all[11:12]
		}
	case ed25519.PublicKey:
		return all[12:]
	}
	return nil
}

// addKey reads a Key and adds what is in it; none that fits the configured
// algorithms is an error.
func (v *Verifier) addKey(c Key, configured []string) error {
	name, found, err := readKey(c, configured)
	if err != nil {
		return fmt.Errorf("key %s: %w", name, err)
	}
	if c.Algorithm != "" && !slices.Contains(configured, c.Algorithm) {
		return fmt.Errorf("key %s: algorithm %q is not among the configured %s", name, c.Algorithm, strings.Join(configured, ", "))
	}
	added := 0
	for _, k := range found {
		able := algorithmsOf(k.public)
		for _, a := range configured {
			if slices.Contains(able, a) && (len(k.algorithms) == 0 || k.fits(a)) && (c.Algorithm == "" || c.Algorithm == a) {
				k.use = append(k.use, a)
			}
		}
		if len(k.use) == 0 {
			continue
		}
		if err := strongEnough(k.public); err != nil {
			return fmt.Errorf("key %s: %w", name, err)
		}
		v.keys = append(v.keys, &key{id: k.id, public: k.public, algorithms: k.use})
		added++
	}
	if added == 0 {
		return fmt.Errorf("key %s: nothing in it verifies any of the configured algorithms %s", name, strings.Join(configured, ", "))
	}
	return nil
}

// foundKey is a key as a file has it.
type foundKey struct {
	key          // algorithms: those the file confines it to, none for all
	use []string // of the configured algorithms
}

func readKey(c Key, configured []string) (name string, keys []*foundKey, err error) {
	if (c.File == "") == (len(c.Secret) == 0) {
		return fmt.Sprintf("%q", c.ID), nil, errors.New("needs either a file or a secret")
	}
	one := func(public any) []*foundKey { return []*foundKey{{key: key{id: c.ID, public: public}}} }
	if c.File == "" {
		return fmt.Sprintf("%q", c.ID), one(slices.Clone(c.Secret)), nil
	}
	b, err := os.ReadFile(c.File)
	if err != nil {
		return c.File, nil, err
	}
	text := bytes.TrimSpace(b)
	switch {
	case len(b) > maxKeyFile:
		return c.File, nil, fmt.Errorf("larger than %d bytes", maxKeyFile)
	case len(text) == 0:
		return c.File, nil, errors.New("is empty")
	case bytes.Contains(text, []byte("-----BEGIN ")):
		public, err := parsePEM(b)
		if err != nil {
			return c.File, nil, err
		}
		return c.File, one(public), nil
	case text[0] == '{':
		keys, err := parseJWKs(text, c.ID)
		return c.File, keys, err
	}
	if !slices.ContainsFunc(configured, func(a string) bool { return strings.HasPrefix(a, "HS") }) {
		return c.File, nil, errors.New("is neither PEM nor a JSON Web Key (set), and no HS algorithm is configured for a secret")
	}
	return c.File, one(bytes.TrimRight(b, "\r\n")), nil
}

func parsePEM(b []byte) (any, error) {
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			return nil, errors.New("has no public key in PEM")
		}
		switch block.Type {
		case "PUBLIC KEY":
			return x509.ParsePKIXPublicKey(block.Bytes)
		case "RSA PUBLIC KEY":
			return x509.ParsePKCS1PublicKey(block.Bytes)
		case "CERTIFICATE":
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, err
			}
			return c.PublicKey, nil
		}
		if strings.Contains(block.Type, "PRIVATE KEY") {
			return nil, errors.New("is a private key: give the public one (openssl pkey -in FILE -pubout)")
		}
	}
}

// strongEnough refuses keys that can be guessed.
func strongEnough(public any) error {
	switch k := public.(type) {
	case []byte:
		if len(k) < minSecret {
			return fmt.Errorf("a secret of %d bytes: need %d or more (openssl rand -base64 48)", len(k), minSecret)
		}
	case *rsa.PublicKey:
		if k.N.BitLen() < minRSA {
			return fmt.Errorf("an RSA key of %d bits: need %d or more", k.N.BitLen(), minRSA)
		}
	}
	return nil
}
