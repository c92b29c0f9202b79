package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

// The mechanisms of NewSASL.
const (
	SASLPlain       = "PLAIN"
	SASLScram256    = "SCRAM-SHA-256"
	SASLScram512    = "SCRAM-SHA-512"
	SASLOAuthBearer = "OAUTHBEARER"
)

// SASLMechanisms lists them.
func SASLMechanisms() []string {
	return []string{SASLPlain, SASLScram256, SASLScram512, SASLOAuthBearer}
}

// NewSASL makes a mechanism. secret is asked for each connection, so that a
// password or token that is replaced holds from then on; it is the password, or
// the token of OAUTHBEARER, which has no user.
func NewSASL(mechanism, user string, secret func() (string, error)) (sasl.Mechanism, error) {
	m := &credentials{name: mechanism, user: user, secret: secret}
	switch mechanism {
	case SASLPlain:
		m.start = func(ctx context.Context, secret string) (sasl.StateMachine, []byte, error) {
			return plain.Mechanism{Username: user, Password: secret}.Start(ctx)
		}
	case SASLScram256:
		m.start = m.scram(scram.SHA256)
	case SASLScram512:
		m.start = m.scram(scram.SHA512)
	case SASLOAuthBearer:
		m.start = bearer
	default:
		return nil, fmt.Errorf("broker: SASL mechanism %q: allowed are %s", mechanism, strings.Join(SASLMechanisms(), ", "))
	}
	return m, nil
}

// credentials begin each authentication with the secret as it is then.
type credentials struct {
	name, user string
	secret     func() (string, error)
	start      func(ctx context.Context, secret string) (sasl.StateMachine, []byte, error)
}

func (m *credentials) Name() string { return m.name }

func (m *credentials) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	secret, err := m.secret()
	if err != nil {
		return nil, nil, &SecretError{Err: err}
	}
	return m.start(ctx, secret)
}

func (m *credentials) scram(algorithm scram.Algorithm) func(context.Context, string) (sasl.StateMachine, []byte, error) {
	return func(ctx context.Context, secret string) (sasl.StateMachine, []byte, error) {
		s, err := scram.Mechanism(algorithm, m.user, secret)
		if err != nil {
			// Its text might hold the password (SASLprep's do).
			return nil, nil, errors.New("SASL: the user or the password has characters that SCRAM does not allow")
		}
		return s.Start(ctx)
	}
}

// SecretError is a password or a token that could not be had.
type SecretError struct{ Err error }

func (e *SecretError) Error() string { return "SASL: " + e.Err.Error() }
func (e *SecretError) Unwrap() error { return e.Err }

// bearer is OAUTHBEARER (RFC 7628, as KIP-255 has it).
func bearer(_ context.Context, token string) (sasl.StateMachine, []byte, error) {
	if strings.ContainsAny(token, "\x00\x01\r\n") {
		return nil, nil, &SecretError{Err: errors.New("the token is no text of one line")}
	}
	return bearing{}, []byte("n,,\x01auth=Bearer " + token + "\x01\x01"), nil
}

// bearing waits for the broker's verdict: nothing is good, anything else says
// why not.
type bearing struct{}

func (bearing) Next(_ context.Context, challenge []byte) (bool, []byte, error) {
	if len(challenge) == 0 {
		return true, nil, nil
	}
	var verdict struct {
		Status string `json:"status"`
	}
	if json.Unmarshal(challenge, &verdict) != nil || verdict.Status == "" {
		verdict.Status = "refused"
	}
	return false, nil, fmt.Errorf("%w: the broker says of the token: %s", ErrSASLFailed, verdict.Status)
}
