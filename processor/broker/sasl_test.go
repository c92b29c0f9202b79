package broker

import (
	"errors"
	"strings"
	"testing"
)

func TestSASLMechanisms(t *testing.T) {
	for _, name := range SASLMechanisms() {
		m, err := NewSASL(name, "app", func() (string, error) { return "S3CRET", nil })
		if err != nil {
			t.Fatal(err)
		}
		_, first, err := m.Start(t.Context())
		if err != nil || m.Name() != name {
			t.Fatalf("%s: %v", m.Name(), err)
		}
		if strings.HasPrefix(name, "SCRAM") == strings.Contains(string(first), "S3CRET") {
			t.Errorf("%s begins with %q", name, first)
		}
	}
	if _, err := NewSASL("GSSAPI", "app", nil); err == nil || !strings.Contains(err.Error(), "allowed are PLAIN, SCRAM-SHA-256") {
		t.Errorf("got %v", err)
	}
	gone, err := NewSASL(SASLPlain, "app", func() (string, error) { return "", errors.New("no file") })
	if err != nil {
		t.Fatal(err)
	}
	var secret *SecretError
	if _, _, err := gone.Start(t.Context()); !errors.As(err, &secret) {
		t.Errorf("a secret that cannot be had: %v", err)
	}
	odd, err := NewSASL(SASLScram256, "app", func() (string, error) { return "S3CRET\x00", nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := odd.Start(t.Context()); err != nil && strings.Contains(err.Error(), "S3CRET") {
		t.Errorf("the password is in the error: %v", err)
	}
}

func TestBearerVerdicts(t *testing.T) {
	m, err := NewSASL(SASLOAuthBearer, "", func() (string, error) { return "a.b.c", nil })
	if err != nil {
		t.Fatal(err)
	}
	s, first, err := m.Start(t.Context())
	if want := "n,,\x01auth=Bearer a.b.c\x01\x01"; err != nil || string(first) != want {
		t.Fatalf("got %q, %v", first, err)
	}
	if done, _, err := s.Next(t.Context(), nil); !done || err != nil {
		t.Errorf("taken: %v, %v", done, err)
	}
	if _, _, err := s.Next(t.Context(), []byte(`{"status":"invalid_token"}`)); !errors.Is(err, ErrSASLFailed) || !strings.Contains(err.Error(), "invalid_token") {
		t.Errorf("refused: %v", err)
	}
	if _, _, err := bearer(t.Context(), "a\nb"); err == nil {
		t.Error("a token of two lines was taken")
	}
}

func TestSniff(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes []byte
		tls   bool
	}{
		{"an alert", []byte{21, 3, 3, 0, 2, 2, 80}, true},
		{"a handshake", []byte{22, 3, 1}, true},
		{"an answer of 300 bytes", []byte{0, 0, 1, 44}, false},
		{"one byte", []byte{21}, false},
	} {
		if got := sniff(c.bytes) != nil; got != c.tls {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
