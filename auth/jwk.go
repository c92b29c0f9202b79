package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// jwk is a JSON Web Key (RFC 7517, parameters of RFC 7518 and 8037).
type jwk struct {
	Type       string   `json:"kty"`
	ID         string   `json:"kid"`
	Use        string   `json:"use"`
	Operations []string `json:"key_ops"`
	Algorithm  string   `json:"alg"`
	Curve      string   `json:"crv"`
	N          string   `json:"n"`
	E          string   `json:"e"`
	X          string   `json:"x"`
	Y          string   `json:"y"`
	K          string   `json:"k"`
	D          string   `json:"d"`
}

// maxSet is how many keys a set may have.
const maxSet = 256

// parseJWKs reads a key or a set of them. Keys for other uses than signatures
// and of unknown types are left out, as RFC 7517 section 5 wants; one that
// cannot be read is an error. id is given to a single key that has none.
func parseJWKs(b []byte, id string) ([]*foundKey, error) {
	var set struct {
		Keys *[]jwk `json:"keys"`
		jwk
	}
	if err := json.Unmarshal(b, &set); err != nil {
		return nil, fmt.Errorf("is not a JSON Web Key: %w", err)
	}
	list := []jwk{set.jwk}
	if set.Keys != nil {
		list = *set.Keys
	} else if set.ID == "" {
		list[0].ID = id
	}
	if len(list) > maxSet {
		return nil, fmt.Errorf("%d keys: need %d or fewer", len(list), maxSet)
	}
	var found []*foundKey
	for i := range list {
		k := &list[i]
		if !k.signs() {
			continue
		}
		public, err := k.public()
		if err != nil {
			return nil, fmt.Errorf("key %d (kid %.64q): %w", i+1, k.ID, err)
		}
		f := &foundKey{key: key{id: k.ID, public: public}}
		if k.Algorithm != "" {
			f.algorithms = []string{k.Algorithm}
		}
		found = append(found, f)
	}
	return found, nil
}

// signs says whether the key is of a known type and meant for signatures.
func (k *jwk) signs() bool {
	if !slices.Contains([]string{"RSA", "EC", "OKP", "oct"}, k.Type) {
		return false
	}
	if k.Type == "OKP" && k.Curve != "Ed25519" {
		return false
	}
	return (k.Use == "" || k.Use == "sig") && (len(k.Operations) == 0 || slices.Contains(k.Operations, "verify"))
}

func (k *jwk) public() (any, error) {
	if k.D != "" {
		return nil, errors.New("is a private key: give the public one")
	}
	switch k.Type {
	case "RSA":
		return k.rsa()
	case "EC":
		return k.ec()
	case "OKP":
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || len(x) != ed25519.PublicKeySize {
			return nil, errors.New("x is not an Ed25519 key in base64url")
		}
		return ed25519.PublicKey(x), nil
	}
	secret, err := base64.RawURLEncoding.DecodeString(k.K)
	if err != nil || len(secret) == 0 {
		return nil, errors.New("k is not a secret in base64url")
	}
	return secret, nil
}

func (k *jwk) rsa() (any, error) {
	n, errN := base64.RawURLEncoding.DecodeString(k.N)
	e, errE := base64.RawURLEncoding.DecodeString(k.E)
	if errN != nil || errE != nil || len(n) == 0 || len(e) == 0 {
		return nil, errors.New("n and e are not numbers in base64url")
	}
	exponent := new(big.Int).SetBytes(e)
	if !exponent.IsInt64() || exponent.Int64() < 3 || exponent.Int64() > 1<<31-1 || exponent.Bit(0) == 0 {
		return nil, errors.New("e is not a usable exponent")
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(exponent.Int64())}, nil
}

func (k *jwk) ec() (any, error) {
	var curve elliptic.Curve
	switch k.Curve {
	case "P-256":
		curve = elliptic.P256()
	case "P-384":
		curve = elliptic.P384()
	case "P-521":
		curve = elliptic.P521()
	default:
		return nil, fmt.Errorf("curve %.16q: need P-256, P-384 or P-521", k.Curve)
	}
	x, errX := base64.RawURLEncoding.DecodeString(k.X)
	y, errY := base64.RawURLEncoding.DecodeString(k.Y)
	size := (curve.Params().BitSize + 7) / 8
	if errX != nil || errY != nil || len(x) > size || len(y) > size {
		return nil, errors.New("x and y are not coordinates in base64url")
	}
	// The uncompressed form of SEC 1: ParseUncompressedPublicKey checks that
	// the point is on the curve.
	point := make([]byte, 1+2*size)
	point[0] = 4
	copy(point[1+size-len(x):], x)
	copy(point[1+2*size-len(y):], y)
	p, err := ecdsa.ParseUncompressedPublicKey(curve, point)
	if err != nil {
		return nil, errors.New("x and y are not a point of the curve")
	}
	return p, nil
}
