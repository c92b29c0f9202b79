// Package kafka is the part of the settings that says how to reach Kafka, which
// instances and the toolbox share, and the client that is made of it. Files with
// certificates, passwords and tokens are read for each connection, so what is
// replaced holds from the next one on.
package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/streamgauge/streamgauge/internal/settings"
	"github.com/streamgauge/streamgauge/processor/broker"
)

// Config is the section kafka of the settings.
type Config struct {
	Brokers           []string      `yaml:"brokers"`
	TLS               TLS           `yaml:"tls"`
	SASL              SASL          `yaml:"sasl"`
	Replication       int           `yaml:"replication"`
	StaticMember      bool          `yaml:"staticMember"`
	SessionTimeout    time.Duration `yaml:"sessionTimeout"`
	HeartbeatInterval time.Duration `yaml:"heartbeatInterval"`
}

// TLS says how connections to brokers are secured.
type TLS struct {
	Enabled    bool   `yaml:"enabled"`
	CA         string `yaml:"ca"`   // file; "": the system's authorities
	Cert       string `yaml:"cert"` // file of a client's certificate; "": none
	Key        string `yaml:"key"`
	ServerName string `yaml:"serverName"` // that certificates are for; "": each broker's host
}

// SASL says who the client is to the brokers.
type SASL struct {
	Mechanism    string          `yaml:"mechanism"` // "": none
	User         string          `yaml:"user"`
	Password     settings.Secret `yaml:"password"`
	PasswordFile string          `yaml:"passwordFile"`
	TokenFile    string          `yaml:"tokenFile"` // of OAUTHBEARER
}

// Default has every default.
func Default() Config {
	return Config{
		Brokers: []string{"127.0.0.1:9092"}, Replication: -1,
		SessionTimeout: 10 * time.Second, HeartbeatInterval: 3 * time.Second,
	}
}

// Check says what is wrong with TLS and SASL, files that cannot be read
// included.
func (c *Config) Check() error {
	t := &c.TLS
	switch {
	case !t.Enabled && *t != TLS{}:
		return errors.New("kafka.tls has settings but is not enabled: set kafka.tls.enabled to true, or leave them out")
	case (t.Cert == "") != (t.Key == ""):
		return errors.New("kafka.tls.cert and kafka.tls.key go together: set both or neither")
	}
	if t.Enabled {
		if _, err := t.config(); err != nil {
			return err
		}
	}
	if err := c.SASL.check(); err != nil {
		return err
	}
	if c.SASL.Mechanism != "" {
		_, err := c.SASL.secret()
		return err
	}
	return nil
}

func (s *SASL) check() error {
	bearer := s.Mechanism == broker.SASLOAuthBearer
	switch {
	case s.Mechanism == "" && *s != SASL{}:
		return fmt.Errorf("kafka.sasl has settings but no mechanism: set kafka.sasl.mechanism to one of %s, or leave them out", strings.Join(broker.SASLMechanisms(), ", "))
	case s.Mechanism == "":
		return nil
	case !slices.Contains(broker.SASLMechanisms(), s.Mechanism):
		return fmt.Errorf("kafka.sasl.mechanism is %.60q; allowed: %s", s.Mechanism, strings.Join(broker.SASLMechanisms(), ", "))
	case bearer && (s.TokenFile == "" || s.User != "" || s.Password != "" || s.PasswordFile != ""):
		return errors.New("kafka.sasl.mechanism is OAUTHBEARER, which takes a tokenFile, and no user or password")
	case !bearer && s.TokenFile != "":
		return fmt.Errorf("kafka.sasl.tokenFile is for OAUTHBEARER, and the mechanism is %s", s.Mechanism)
	case !bearer && s.User == "":
		return fmt.Errorf("kafka.sasl.mechanism is %s, which wants kafka.sasl.user", s.Mechanism)
	case !bearer && (s.Password == "") == (s.PasswordFile == ""):
		return fmt.Errorf("kafka.sasl.mechanism is %s, which wants one of kafka.sasl.password and kafka.sasl.passwordFile", s.Mechanism)
	}
	return nil
}

// secret is the password or the token as it is now. White space around what a
// file holds does not count: editors end files with a line's end.
func (s *SASL) secret() (string, error) {
	name, path := "kafka.sasl.passwordFile", s.PasswordFile
	if s.Mechanism == broker.SASLOAuthBearer {
		name, path = "kafka.sasl.tokenFile", s.TokenFile
	}
	if path == "" {
		return string(s.Password), nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	text := strings.TrimSpace(string(b))
	if text == "" {
		return "", fmt.Errorf("%s: %s is empty", name, path)
	}
	return text, nil
}

// config reads the files.
func (t *TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("kafka.tls.ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("kafka.tls.ca: no certificate in PEM form in %s", t.CA)
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("kafka.tls.cert and kafka.tls.key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Client makes a client. It connects to nothing.
func (c *Config) Client(id string, log *slog.Logger) (*broker.Client, error) {
	b := broker.Config{Brokers: c.Brokers, ClientID: id, Logger: log}
	if c.TLS.Enabled {
		b.TLS = c.TLS.config
	}
	if c.SASL.Mechanism != "" {
		m, err := broker.NewSASL(c.SASL.Mechanism, c.SASL.User, c.SASL.secret)
		if err != nil {
			return nil, err
		}
		b.SASL = m
	}
	return broker.New(b)
}

// Local says whether every broker is on this machine's loopback.
func (c *Config) Local() bool {
	return !slices.ContainsFunc(c.Brokers, func(addr string) bool {
		host, _, err := net.SplitHostPort(addr)
		ip, failed := netip.ParseAddr(host)
		return err != nil || !strings.EqualFold(host, "localhost") && (failed != nil || !ip.Unmap().IsLoopback())
	})
}
