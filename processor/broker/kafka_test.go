package broker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// realKafka is the Kafka of deploy/kafka/kafka.sh: the plain address of its
// first broker is in STREAMGAUGE_TEST_KAFKA, and the others follow from it.
type realKafka struct {
	plain, tls, sasl, both string
	roots                  *x509.CertPool
}

func theKafka(t *testing.T) realKafka {
	t.Helper()
	addr := os.Getenv("STREAMGAUGE_TEST_KAFKA")
	if addr == "" {
		t.Skip("needs a real Kafka: make kafka-up, and STREAMGAUGE_TEST_KAFKA=127.0.0.1:29091")
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	at := func(plus int) string { return net.JoinHostPort(host, strconv.Itoa(n+plus)) }
	k := realKafka{plain: addr, tls: at(100), sasl: at(200), both: at(400), roots: x509.NewCertPool()}
	ca, err := os.ReadFile("../../.cache/kafka/tls/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	if !k.roots.AppendCertsFromPEM(ca) {
		t.Fatal("no authority in ca.pem")
	}
	return k
}

func (k realKafka) trust() (*tls.Config, error) { return &tls.Config{RootCAs: k.roots}, nil }

// secured is a client's configuration with SASL.
func secured(t *testing.T, addr, mechanism, user, secret string) Config {
	t.Helper()
	m, err := NewSASL(mechanism, user, func() (string, error) { return secret, nil })
	if err != nil {
		t.Fatal(err)
	}
	return Config{Brokers: []string{addr}, SASL: m}
}

// unsigned is a token as Kafka's unsecured validator takes it.
func unsigned(user string, lives time.Duration) string {
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	now := time.Now()
	return encode(`{"alg":"none"}`) + "." + encode(fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, user, now.Add(-time.Minute).Unix(), now.Add(lives).Unix())) + "."
}

func ping(t *testing.T, cfg Config) error {
	t.Helper()
	cfg.RequestTimeout = 5 * time.Second
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return c.Ping(ctx)
}

func TestKafkaTakesEveryMechanism(t *testing.T) {
	k := theKafka(t)
	for _, m := range SASLMechanisms() {
		secret := "app-secret"
		if m == SASLOAuthBearer {
			secret = unsigned("app", time.Hour)
		}
		for name, addr := range map[string]string{"plain text": k.sasl, "TLS": k.both} {
			t.Run(m+" over "+name, func(t *testing.T) {
				cfg := secured(t, addr, m, "app", secret)
				if addr == k.both {
					cfg.TLS = k.trust
				}
				if err := ping(t, cfg); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if err := ping(t, Config{Brokers: []string{k.tls}, TLS: k.trust}); err != nil {
		t.Error(err)
	}
}

// Each mistake is named, with what to do, and without the secret.
func TestKafkaNamesMistakes(t *testing.T) {
	k := theKafka(t)
	with := func(cfg Config, f func() (*tls.Config, error)) Config {
		cfg.TLS = f
		return cfg
	}
	unreadable, err := NewSASL(SASLOAuthBearer, "", func() (string, error) { return "", errors.New("open token: no such file") })
	if err != nil {
		t.Fatal(err)
	}
	nobody := func() (*tls.Config, error) { return &tls.Config{RootCAs: x509.NewCertPool()}, nil }
	elsewhere := func() (*tls.Config, error) { return &tls.Config{RootCAs: k.roots, ServerName: "elsewhere"}, nil }
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"wrong password, PLAIN", secured(t, k.sasl, SASLPlain, "app", "S3CRET"), "authentication failed (PLAIN, user app): check kafka.sasl"},
		{"wrong password, SCRAM", secured(t, k.sasl, SASLScram256, "app", "S3CRET"), "authentication failed (SCRAM-SHA-256, user app): check kafka.sasl"},
		{"unknown user", secured(t, k.both, SASLScram512, "nobody", "S3CRET"), "the port speaks TLS: set kafka.tls.enabled"},
		{"unknown user over TLS", with(secured(t, k.both, SASLScram512, "nobody", "S3CRET"), k.trust), "authentication failed (SCRAM-SHA-512, user nobody)"},
		{"token out of date", secured(t, k.sasl, SASLOAuthBearer, "", unsigned("app", -time.Second)), "authentication failed (OAUTHBEARER)"},
		{"no token", Config{Brokers: []string{k.sasl}, SASL: unreadable}, "open token: no such file"},
		{"SASL to a port without", secured(t, k.plain, SASLPlain, "app", "S3CRET"), "the port takes no SASL: leave out kafka.sasl.mechanism"},
		{"no SASL to a port with", Config{Brokers: []string{k.sasl}}, "if the port wants SASL set kafka.sasl.mechanism"},
		{"plain text to TLS", Config{Brokers: []string{k.tls}}, "the port speaks TLS: set kafka.tls.enabled"},
		{"TLS to plain text", Config{Brokers: []string{k.plain}, TLS: k.trust}, "the port seems to speak plain text: use the brokers' TLS port, or set kafka.tls.enabled to false"},
		{"another authority", Config{Brokers: []string{k.tls}, TLS: nobody}, "the authorities in kafka.tls.ca (the system's when it is empty) did not sign the broker's certificate"},
		{"another name", Config{Brokers: []string{k.tls}, TLS: elsewhere}, "set kafka.tls.serverName to the one that it is for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := ping(t, c.cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "S3CRET") {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			t.Log(err)
		})
	}
	t.Run("mechanism", func(t *testing.T) {
		m := &credentials{name: "GSSAPI", secret: func() (string, error) { return "", nil }, start: bearer}
		err := ping(t, Config{Brokers: []string{k.sasl}, SASL: m})
		if want := "SASL mechanism GSSAPI here (they take "; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "SCRAM-SHA-256") {
			t.Errorf("got %v, want %s", err, want)
		}
		t.Log(err)
	})
}

// What ACLs keep from a user is listed before anything is done.
func TestKafkaNamesMissingACLs(t *testing.T) {
	k := theKafka(t)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	admin, err := New(Config{Brokers: []string{k.plain}})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	name := fmt.Sprintf("acl-%d", time.Now().UnixNano())
	if err := admin.CreateTopics(ctx, []TopicSpec{{Name: name, Partitions: 1, Replication: -1}, {Name: name + "-open", Partitions: 1, Replication: -1}}); err != nil {
		t.Fatal(err)
	}
	transport := &kafka.Transport{Context: ctx}
	defer transport.CloseIdleConnections()
	acls := &kafka.Client{Addr: kafka.TCP(k.plain), Transport: transport}
	entry := func(kind kafka.ResourceType, operation kafka.ACLOperationType, user string) kafka.ACLEntry {
		return kafka.ACLEntry{
			ResourceType: kind, ResourceName: name, ResourcePatternType: kafka.PatternTypeLiteral,
			Principal: user, Host: "*", Operation: operation, PermissionType: kafka.ACLPermissionTypeAllow,
		}
	}
	created, err := acls.CreateACLs(ctx, &kafka.CreateACLsRequest{ACLs: []kafka.ACLEntry{
		entry(kafka.ResourceTypeTopic, kafka.ACLOperationTypeRead, "User:app"),
		entry(kafka.ResourceTypeGroup, kafka.ACLOperationTypeRead, "User:another"),
		entry(kafka.ResourceTypeTransactionalID, kafka.ACLOperationTypeWrite, "User:another"),
	}})
	if err != nil || errors.Join(created.Errors...) != nil {
		t.Fatal(err, created)
	}
	client, err := New(secured(t, k.sasl, SASLPlain, "app", "app-secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	needs := Needs{
		Topics: map[string][]Operation{name: {OpRead, OpWrite}, name + "-open": {OpWrite}, name + "-missing": {OpWrite}},
		Group:  name, Transactionals: []string{name, name + "-open"},
	}
	want := []Grant{{OpWrite, "topic", name}, {OpRead, "group", name}, {OpWrite, "transactional-id", name}}
	for { // brokers learn of ACLs a moment later
		var missing *AccessError
		err := client.CheckAccess(ctx, needs)
		if errors.As(err, &missing) && fmt.Sprint(missing.Missing) == fmt.Sprint(want) {
			t.Log(err)
			break
		}
		if sleep(ctx, 100*time.Millisecond) != nil {
			t.Fatalf("got %v, want %v", err, want)
		}
	}
	if err := admin.CheckAccess(ctx, needs); err != nil {
		t.Errorf("a super user: %v", err)
	}
	_, err = client.DescribeGroup(ctx, name)
	if err == nil || !strings.Contains(err.Error(), "Kafka's ACLs do not allow it to this user") {
		t.Errorf("in passing: %v", err)
	}
}

// A password that was replaced holds for the next connection.
func TestKafkaRereadsSecrets(t *testing.T) {
	k := theKafka(t)
	secret := "old"
	m, err := NewSASL(SASLScram256, "app", func() (string, error) { return secret, nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := ping(t, Config{Brokers: []string{k.sasl}, SASL: m}); err == nil {
		t.Fatal("the old password was taken")
	}
	secret = "app-secret"
	if err := ping(t, Config{Brokers: []string{k.sasl}, SASL: m}); err != nil {
		t.Error(err)
	}
}
