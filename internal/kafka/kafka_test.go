package kafka

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamgauge/streamgauge/internal/certs"
)

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	ca := certs.NewAuthority(t, "kafka")
	files := ca.Write(t, dir, ca, certs.Leaf{})
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret, empty := write("secret", "S3CRET\n"), write("empty", " \n")
	for _, c := range []struct {
		name string
		cfg  Config
		want string // "": taken
	}{
		{"nothing", Config{}, ""},
		{"TLS by the system's authorities", Config{TLS: TLS{Enabled: true}}, ""},
		{"TLS both ways", Config{TLS: TLS{Enabled: true, CA: files.CA, Cert: files.Cert, Key: files.Key, ServerName: "kafka"}}, ""},
		{"TLS not enabled", Config{TLS: TLS{CA: files.CA}}, "kafka.tls has settings but is not enabled"},
		{"no key", Config{TLS: TLS{Enabled: true, Cert: files.Cert}}, "kafka.tls.cert and kafka.tls.key go together"},
		{"no such authority", Config{TLS: TLS{Enabled: true, CA: "nowhere"}}, "kafka.tls.ca: open nowhere"},
		{"no authority", Config{TLS: TLS{Enabled: true, CA: secret}}, "kafka.tls.ca: no certificate in PEM form"},
		{"no such certificate", Config{TLS: TLS{Enabled: true, Cert: "nowhere", Key: files.Key}}, "kafka.tls.cert and kafka.tls.key: open nowhere"},
		{"PLAIN", Config{SASL: SASL{Mechanism: "PLAIN", User: "app", Password: "S3CRET"}}, ""},
		{"by file", Config{SASL: SASL{Mechanism: "SCRAM-SHA-512", User: "app", PasswordFile: secret}}, ""},
		{"token", Config{SASL: SASL{Mechanism: "OAUTHBEARER", TokenFile: secret}}, ""},
		{"no mechanism", Config{SASL: SASL{User: "app"}}, "kafka.sasl has settings but no mechanism"},
		{"another mechanism", Config{SASL: SASL{Mechanism: "GSSAPI"}}, `kafka.sasl.mechanism is "GSSAPI"; allowed: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER`},
		{"no user", Config{SASL: SASL{Mechanism: "PLAIN", Password: "S3CRET"}}, "which wants kafka.sasl.user"},
		{"no password", Config{SASL: SASL{Mechanism: "PLAIN", User: "app"}}, "wants one of kafka.sasl.password and kafka.sasl.passwordFile"},
		{"two passwords", Config{SASL: SASL{Mechanism: "PLAIN", User: "app", Password: "S3CRET", PasswordFile: secret}}, "wants one of"},
		{"token for PLAIN", Config{SASL: SASL{Mechanism: "PLAIN", User: "app", Password: "S3CRET", TokenFile: secret}}, "kafka.sasl.tokenFile is for OAUTHBEARER"},
		{"password for a token", Config{SASL: SASL{Mechanism: "OAUTHBEARER", Password: "S3CRET"}}, "which takes a tokenFile"},
		{"no such file", Config{SASL: SASL{Mechanism: "PLAIN", User: "app", PasswordFile: "nowhere"}}, "kafka.sasl.passwordFile: open nowhere"},
		{"empty file", Config{SASL: SASL{Mechanism: "OAUTHBEARER", TokenFile: empty}}, "kafka.sasl.tokenFile: " + empty + " is empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.cfg.Check()
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "S3CRET") {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// Files are read as they are when a connection is made.
func TestFilesAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	s := SASL{Mechanism: "OAUTHBEARER", TokenFile: path}
	for _, want := range []string{"first", "second"} {
		if err := os.WriteFile(path, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := s.secret(); got != want || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	old, fresh := certs.NewAuthority(t, "old"), certs.NewAuthority(t, "fresh")
	dir := t.TempDir()
	f := old.Write(t, dir, old, certs.Leaf{})
	c := TLS{Enabled: true, CA: f.CA, Cert: f.Cert, Key: f.Key}
	before, err := c.config()
	if err != nil {
		t.Fatal(err)
	}
	fresh.Write(t, dir, fresh, certs.Leaf{})
	after, err := c.config()
	if err != nil || before.RootCAs.Equal(after.RootCAs) || string(before.Certificates[0].Certificate[0]) == string(after.Certificates[0].Certificate[0]) {
		t.Errorf("the old files hold on: %v", err)
	}
}

func TestLocal(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1:9092": true, "localhost:9092": true, "[::1]:9092": true, "10.0.0.1:9092": false, "kafka:9092": false} {
		if got := (&Config{Brokers: []string{addr}}).Local(); got != want {
			t.Errorf("%s: %v", addr, got)
		}
	}
}
