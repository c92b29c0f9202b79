package rpc

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/internal/certs"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines collects a log.
type lines struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func identity(t *testing.T, f certs.Files, log *lines, names ...string) *Identity {
	t.Helper()
	i, err := NewIdentity(IdentityConfig{Cert: f.Cert, Key: f.Key, CA: f.CA, Names: names, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// serve answers as "self" until the test ends.
func serve(t *testing.T, c credentials.TransportCredentials, svc Service) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	options := ServerOptions()
	if c != nil {
		options = append(options, grpc.Creds(c))
	}
	s := grpc.NewServer(options...)
	Register(s, svc)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // before it began
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// hello asks the address once, over a connection of its own.
func hello(t *testing.T, addr string, c credentials.TransportCredentials) (string, error) {
	t.Helper()
	client, err := NewClient(addr, Options{TLS: c})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	g, err := client.Hello(ctx)
	return g.Instance, err
}

func TestPeersKnowEachOther(t *testing.T) {
	ca, other := certs.NewAuthority(t, "ours"), certs.NewAuthority(t, "another")
	named := certs.Leaf{Names: []string{"flights"}}
	log := &lines{}
	addr := serve(t, identity(t, ca.Write(t, t.TempDir(), ca, named), log, "flights", "flights-gateway").Server(), Service{Greeting: Greeting{Instance: "self"}})

	for _, c := range []struct {
		name   string
		by, ca *certs.Authority
		leaf   certs.Leaf
		allow  string // whom the client allows
		want   string // in the client's error or the server's log; "": taken
	}{
		{"a peer", ca, ca, named, "flights", ""},
		{"another allowed name", ca, ca, certs.Leaf{Names: []string{"flights-gateway", "flights"}}, "flights", ""},
		{"a client of another authority", other, ca, named, "flights", "another authority signed it"},
		{"a server of another authority", ca, other, named, "flights", "another authority signed it"},
		{"a client of another name", ca, ca, certs.Leaf{Names: []string{"payments"}}, "flights", `it is for the DNS names [\"payments\"]; allowed are [\"flights\" \"flights-gateway\"]`},
		{"a server of another name", ca, ca, named, "payments", `it is for the DNS names [\"flights\"]; allowed are [\"payments\"]`},
		{"an expired client", ca, ca, certs.Leaf{Names: named.Names, NotAfter: time.Now().Add(-time.Minute)}, "flights", "it is valid from"},
		{"a client's certificate for servers", ca, ca, certs.Leaf{Names: named.Names, Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, "flights", "it is not for clients"},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Such a client would not start: its own check is left out here.
			i := &Identity{names: []string{c.allow}, log: slog.New(slog.DiscardHandler)}
			f := c.by.Write(t, t.TempDir(), c.ca, c.leaf)
			var err error
			if i.files, err = openFiles(f.Cert, f.Key, f.CA, func(*material) error { return nil }, i.log); err != nil {
				t.Fatal(err)
			}
			before := len(log.String())
			who, err := hello(t, addr, i.Client())
			if c.want == "" {
				if err != nil || who != "self" {
					t.Errorf("got %q, %v", who, err)
				}
				return
			}
			eventually(t, func() bool {
				if err == nil {
					t.Fatal("it was let in")
				}
				if strings.Contains(err.Error()+log.String()[before:], c.want) {
					return true
				}
				_, err = hello(t, addr, i.Client())
				return false
			}, func() string { return "got " + err.Error() + "\nserver " + log.String()[before:] })
		})
	}
	t.Run("plain text", func(t *testing.T) {
		eventually(t, func() bool {
			if _, err := hello(t, addr, nil); err == nil {
				t.Fatal("it was let in")
			}
			return strings.Contains(log.String(), "it does not speak TLS")
		}, log.String)
	})
}

// eventually polls: a server's log line may come after the client's error, and
// one is written a second at most.
func eventually(t *testing.T, ok func() bool, say func() string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal(say())
		}
		<-time.After(20 * time.Millisecond)
	}
}

func TestPlainServerIsNamed(t *testing.T) {
	ca := certs.NewAuthority(t, "ours")
	i := identity(t, ca.Write(t, t.TempDir(), ca, certs.Leaf{Names: []string{"flights"}}), &lines{}, "flights")
	addr := serve(t, nil, Service{})
	if _, err := hello(t, addr, i.Client()); err == nil || !strings.Contains(err.Error(), "the instance does not speak TLS") {
		t.Errorf("got %v", err)
	}
}

// Certificates and authority are replaced while the server runs; what cannot be
// read leaves the old ones in force.
func TestRotation(t *testing.T) {
	old, fresh := certs.NewAuthority(t, "old"), certs.NewAuthority(t, "fresh")
	named, dir := certs.Leaf{Names: []string{"flights"}}, t.TempDir()
	log := &lines{}
	server := identity(t, old.Write(t, dir, old, named), log, "flights")
	addr := serve(t, server.Server(), Service{Greeting: Greeting{Instance: "self"}})
	before := identity(t, old.Write(t, t.TempDir(), old, named), &lines{}, "flights").Client()
	after := identity(t, fresh.Write(t, t.TempDir(), fresh, named), &lines{}, "flights").Client()

	if _, err := hello(t, addr, before); err != nil {
		t.Fatal(err)
	}
	if _, err := hello(t, addr, after); err == nil {
		t.Fatal("a client of the new authority came in before the rotation")
	}
	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("half written"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		if _, err := hello(t, addr, before); err != nil {
			t.Fatalf("a torn rotation broke the server: %v", err)
		}
		return strings.Contains(log.String(), "certificates not read again")
	}, log.String)
	fresh.Write(t, dir, fresh, named)
	eventually(t, func() bool {
		_, err := hello(t, addr, after)
		return err == nil
	}, log.String)
	if _, err := hello(t, addr, before); err == nil {
		t.Error("a client of the old authority came in after the rotation")
	}
}

func TestIdentityMistakes(t *testing.T) {
	ca, other := certs.NewAuthority(t, "ours"), certs.NewAuthority(t, "another")
	named := certs.Leaf{Names: []string{"flights"}}
	good := ca.Write(t, t.TempDir(), ca, named)
	for name, c := range map[string]struct {
		files certs.Files
		want  string
	}{
		"no file":           {certs.Files{Cert: "nowhere.pem", Key: good.Key, CA: good.CA}, "nowhere.pem: no such file"},
		"key of another":    {certs.Files{Cert: good.Cert, Key: ca.Write(t, t.TempDir(), ca, named).Key, CA: good.CA}, "private key does not match"},
		"no authority":      {certs.Files{Cert: good.Cert, Key: good.Key, CA: good.Key}, "no certificate in PEM form in it"},
		"another authority": {ca.Write(t, t.TempDir(), other, named), "the others would refuse this instance's certificate: another authority signed it"},
		"another name":      {ca.Write(t, t.TempDir(), ca, certs.Leaf{Names: []string{"x"}}), `it is for the DNS names ["x"]; allowed are ["flights"]`},
		"expired":           {ca.Write(t, t.TempDir(), ca, certs.Leaf{Names: named.Names, NotAfter: time.Now().Add(-time.Hour)}), "it is valid from"},
		"servers alone":     {ca.Write(t, t.TempDir(), ca, certs.Leaf{Names: named.Names, Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}), "it is not for clients (extended key usage)"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewIdentity(IdentityConfig{Cert: c.files.Cert, Key: c.files.Key, CA: c.files.CA, Names: []string{"flights"}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
