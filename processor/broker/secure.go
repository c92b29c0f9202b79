package broker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/segmentio/kafka-go/protocol"
)

// TLSError is a connection to a broker that failed in its TLS handshake.
type TLSError struct {
	Address string
	Err     error
}

func (e *TLSError) Error() string {
	return fmt.Sprintf("TLS with the broker at %s: %v", e.Address, e.Err)
}

func (e *TLSError) Unwrap() error { return e.Err }

// ErrTLSPort says that a broker answered plain text with TLS.
var ErrTLSPort = errors.New("broker: the port speaks TLS, and this client plain text")

// secure makes TLS of a new connection, with the configuration as it is now.
// The handshake is done here, and not with the first bytes, so that its errors
// are told from all others.
func (c *Client) secure(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	config, err := c.cfg.TLS()
	if err != nil {
		return nil, &TLSError{Address: address, Err: err}
	}
	if config.ServerName == "" {
		config = config.Clone()
		if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
			return nil, &TLSError{Address: address, Err: err}
		}
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, &TLSError{Address: address, Err: err}
	}
	return secured, nil
}

// sniff looks at the first bytes that a broker sends over plain text: a TLS
// record (RFC 8446, 5.1: alert or handshake, version 3.x) is no size of an
// answer.
func sniff(b []byte) error {
	if len(b) >= 2 && (b[0] == 21 || b[0] == 22) && b[1] == 3 {
		return ErrTLSPort
	}
	return nil
}

// explain says what a person needs to know of a connection that failed, and
// what to do. What it does not know it returns.
func (c *Client) explain(ctx context.Context, err error) error {
	var handshake *TLSError
	var secret *SecretError
	switch {
	case errors.As(err, &handshake):
		return explainTLS(handshake)
	case errors.Is(err, ErrTLSPort):
		return errors.New("the port speaks TLS: set kafka.tls.enabled, or use the brokers' plain port")
	case errors.As(err, &secret):
		return secret
	case isCode(err, errUnsupportedMechanism):
		return fmt.Errorf("the brokers do not take SASL mechanism %s here%s: correct kafka.sasl.mechanism", c.mechanism(), c.offered(ctx))
	case isCode(err, errIllegalSASLState):
		return errors.New("the port takes no SASL: leave out kafka.sasl.mechanism, or use the brokers' SASL port")
	case isCode(err, ErrSASLFailed):
		return fmt.Errorf("authentication failed (%s): check kafka.sasl: %w", c.mechanism(), err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return c.explainEOF(err)
	}
	return dialReason(err)
}

func (c *Client) explainEOF(err error) error {
	if c.cfg.SASL != nil {
		return fmt.Errorf("the broker closed the connection, as some do when authentication failed (%s): check kafka.sasl, and kafka.tls.enabled if the port speaks TLS: %w", c.mechanism(), err)
	}
	return fmt.Errorf("the broker closed the connection: if the port wants SASL set kafka.sasl.mechanism, if it speaks TLS kafka.tls.enabled: %w", err)
}

func (c *Client) mechanism() string {
	if c.cfg.SASL == nil {
		return "none"
	}
	if m, ok := c.cfg.SASL.(*credentials); ok && m.user != "" {
		return m.name + ", user " + m.user
	}
	return c.cfg.SASL.Name()
}

func explainTLS(e *TLSError) error {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	remedy := ""
	switch {
	case errors.As(e, &unknown):
		remedy = "the authorities in kafka.tls.ca (the system's when it is empty) did not sign the broker's certificate"
	case errors.As(e, &host):
		remedy = "the certificate is for another name: set kafka.tls.serverName to the one that it is for, or use that name in kafka.brokers"
	case errors.As(e, &invalid):
		remedy = "the broker's certificate is not valid"
	case errors.As(e, &record), errors.Is(e, io.EOF), errors.Is(e, io.ErrUnexpectedEOF), isReset(e):
		remedy = "the port seems to speak plain text: use the brokers' TLS port, or set kafka.tls.enabled to false"
	case errors.As(e, &alert), strings.Contains(e.Error(), "remote error: tls"):
		remedy = "the broker refused the handshake: it may want a client's certificate that it knows (kafka.tls.cert and kafka.tls.key)"
	default:
		return e
	}
	return fmt.Errorf("%w; %s", e, remedy)
}

func isReset(err error) bool {
	var call *os.SyscallError
	return errors.As(err, &call) && strings.Contains(call.Err.Error(), "connection reset")
}

// dialReason digs out what a person needs of a failed dial: "connection refused"
// without the layers above it.
func dialReason(err error) error {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		return err
	}
	var call *os.SyscallError
	if errors.As(op.Err, &call) {
		return call.Err
	}
	return op.Err
}

// apiSASLHandshake lists a broker's mechanisms when it refuses one.
var apiSASLHandshake = api{protocol.SaslHandshake, 1, false}

// offered asks a broker for the mechanisms that it takes, on a connection of its
// own: the transport keeps the list to itself. Empty when there is no answer.
func (c *Client) offered(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := c.dial(ctx, "tcp", c.cfg.Brokers[0])
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return ""
	}
	var e encoder
	e.string(c.cfg.SASL.Name())
	id := c.sequence.Add(1)
	x := &exchange{api: apiSASLHandshake, id: id, frame: c.frame(apiSASLHandshake, id, e.b), ctx: ctx}
	if err := x.roundTrip(conn); err != nil {
		return ""
	}
	d := x.decoder()
	d.int16() // the code that is known already
	var names []string
	for range d.items() {
		names = append(names, d.string())
	}
	if d.err != nil || len(names) == 0 {
		return ""
	}
	return " (they take " + strings.Join(names, ", ") + ")"
}
