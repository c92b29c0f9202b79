package streamgauge

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/streamgauge/streamgauge/auth"
)

// authorize makes what tells tokens apart, and the tokens.
func (d *demo) authorize() error {
	if d.auth == "off" {
		v, err := auth.New(auth.Config{Off: true, Logger: d.log})
		d.verifier = v
		return err
	}
	return d.signTokens()
}

const demoIssuer, demoAudience = "streamgauge-demo", "streamgauge"

// signTokens signs the two tokens with a secret that the folder keeps.
func (d *demo) signTokens() error {
	path := filepath.Join(d.dir, "secret")
	secret, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		b := make([]byte, 32)
		if _, err := rand.Read(b); err != nil {
			return err
		}
		secret = []byte(hex.EncodeToString(b))
		err = os.WriteFile(path, secret, 0o600)
	}
	if err != nil {
		return fmt.Errorf("secret of the demo: %w", err)
	}
	d.verifier, err = auth.New(auth.Config{
		Algorithms: []string{"HS256"}, Keys: []auth.Key{{Secret: secret}}, Issuer: demoIssuer, Audience: demoAudience, Logger: d.log,
	})
	if err != nil {
		return err
	}
	var all, some []string
	for _, v := range d.topology.Views {
		all = append(all, v.Scope)
		if slices.Contains(d.app.Demo.Limited, v.Store) {
			some = append(some, v.Scope)
		}
	}
	tokens := make(map[string]string)
	for name, scopes := range map[string][]string{"viewer": all, "limited": some} {
		tokens[name], err = auth.Sign(secret, auth.Grant{
			Issuer: demoIssuer, Audience: demoAudience, Subject: name, Scopes: scopes, Issued: time.Now(), Expires: time.Now().Add(24 * time.Hour),
		})
		if err != nil {
			return err
		}
	}
	d.viewer = tokens["viewer"]
	b, err := json.MarshalIndent(tokens, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.dir, "tokens.json"), append(b, '\n'), 0o600)
}
