package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// IdentityConfig is mutual TLS between instances. All but Logger are required.
type IdentityConfig struct {
	Cert, Key string // files, PEM: what this instance shows
	CA        string // file, PEM: who signs the instances' certificates
	// Names are those of peers, as DNS names in their certificates; one of them
	// suffices. An instance is not known by its address, which comes and goes.
	Names  []string
	Logger *slog.Logger
}

// Identity is who an instance is to others, and whom it believes. Both sides
// show a certificate of the authority that has one of the names. The files are
// read again when they change, for the handshakes that follow; connections that
// stand, stay. Safe for concurrent use.
type Identity struct {
	files *files
	names []string
	log   *slog.Logger
	told  atomic.Int64 // when a refused peer was last logged, ns
}

// NewIdentity reads the files. A certificate that the others would refuse is an
// error.
func NewIdentity(c IdentityConfig) (*Identity, error) {
	if len(c.Names) == 0 {
		return nil, errors.New("an identity needs the names of peers")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	i := &Identity{names: c.Names, log: c.Logger}
	var err error
	i.files, err = openFiles(c.Cert, c.Key, c.CA, i.own, c.Logger)
	return i, err
}

// own refuses a certificate of this instance's that others would refuse.
func (i *Identity) own(m *material) error {
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		var chain []*x509.Certificate
		for _, der := range m.pair.Certificate {
			cert, err := x509.ParseCertificate(der)
			if err != nil {
				return fmt.Errorf("this instance's certificate: %w", err)
			}
			chain = append(chain, cert)
		}
		if err := i.verify(chain, m.roots, usage); err != nil {
			return fmt.Errorf("the others would refuse this instance's certificate: %w", err)
		}
	}
	return nil
}

// verify checks a chain, the peer's own certificate first.
func (i *Identity) verify(chain []*x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage) error {
	if len(chain) == 0 {
		return errors.New("the peer shows no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{usage}})
	if err != nil {
		return reasonOf(err, usage)
	}
	if !slices.ContainsFunc(i.names, func(name string) bool { return chain[0].VerifyHostname(name) == nil }) {
		return fmt.Errorf("it is for the DNS names %q; allowed are %q", chain[0].DNSNames, i.names)
	}
	return nil
}

// reasonOf says what a person needs to know of a chain that does not hold.
func reasonOf(err error, usage x509.ExtKeyUsage) error {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("another authority signed it: %w", err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("it is valid from %s to %s", invalid.Cert.NotBefore.Format(time.RFC3339), invalid.Cert.NotAfter.Format(time.RFC3339))
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		what := "servers"
		if usage == x509.ExtKeyUsageClientAuth {
			what = "clients"
		}
		return fmt.Errorf("it is not for %s (extended key usage): an instance is both a server and a client", what)
	}
	return err
}

// Server are the credentials of a grpc.Server: it requires the client's
// certificate. A peer that is refused is logged, at most one a second.
func (i *Identity) Server() credentials.TransportCredentials {
	c := i.config(x509.ExtKeyUsageClientAuth)
	c.ClientAuth = tls.RequireAnyClientCert // and VerifyConnection looks at it
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &i.files.get().pair, nil }
	return &server{TransportCredentials: credentials.NewTLS(c), identity: i}
}

// Client are the credentials of a Client.
func (i *Identity) Client() credentials.TransportCredentials {
	c := i.config(x509.ExtKeyUsageServerAuth)
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &i.files.get().pair, nil }
	return &client{credentials.NewTLS(c)}
}

func (i *Identity) config(peer x509.ExtKeyUsage) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13, // both ends are ours
		SessionTicketsDisabled: true,             // every connection shows its certificate
		InsecureSkipVerify:     true,             // verified below, by name and not by address
		VerifyConnection: func(s tls.ConnectionState) error {
			if err := i.verify(s.PeerCertificates, i.files.get().roots, peer); err != nil {
				return fmt.Errorf("the peer's certificate is refused: %w", err)
			}
			return nil
		},
	}
}

// server logs whom it refuses: grpc keeps that to itself.
type server struct {
	credentials.TransportCredentials
	identity *Identity
}

func (s *server) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := s.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		s.identity.refused(conn, err)
	}
	return secure, info, err
}

func (s *server) Clone() credentials.TransportCredentials {
	return &server{TransportCredentials: s.TransportCredentials.Clone(), identity: s.identity}
}

func (i *Identity) refused(conn net.Conn, err error) {
	last, now := i.told.Load(), time.Now().UnixNano()
	if now-last < int64(time.Second) || !i.told.CompareAndSwap(last, now) {
		return
	}
	var record tls.RecordHeaderError
	if errors.As(err, &record) {
		err = errors.New("it does not speak TLS: has it no listen.tls?")
	}
	i.log.Warn("a peer was refused", "host", conn.RemoteAddr().String(), "reason", err)
}

// client says in words what a handshake failed of.
type client struct {
	credentials.TransportCredentials
}

func (c *client) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, conn)
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		err = fmt.Errorf("the instance does not speak TLS (has it no listen.tls?): %w", err)
	case err != nil && strings.Contains(err.Error(), "tls: "):
		err = fmt.Errorf("TLS between instances: %w", err)
	}
	return secure, info, err
}

func (c *client) Clone() credentials.TransportCredentials {
	return &client{c.TransportCredentials.Clone()}
}
