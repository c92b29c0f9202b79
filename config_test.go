package streamgauge

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/internal/certs"
	"github.com/streamgauge/streamgauge/internal/kafka"
)

// The reference file says what the defaults are.
func TestReferenceFileHasTheDefaults(t *testing.T) {
	got, err := LoadConfig("flights", "deploy/streamgauge.yml", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig("flights")
	want.Instance = "host-1"
	normalize(reflect.ValueOf(got).Elem())
	normalize(reflect.ValueOf(want).Elem())
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// normalize makes empty lists nil.
func normalize(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Struct:
			normalize(f)
		case f.Kind() == reflect.Slice && f.Len() == 0:
			f.SetZero()
		}
	}
}

// Every setting is in the reference file.
func TestReferenceFileHasEverySetting(t *testing.T) {
	b, err := os.ReadFile("deploy/streamgauge.yml")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(v reflect.Type)
	walk = func(v reflect.Type) {
		for i := range v.NumField() {
			f := v.Field(i)
			if name := f.Tag.Get("yaml"); !strings.Contains(string(b), name+":") {
				t.Errorf("%s is missing", name)
			}
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[Config]())
}

func TestConfigOverrides(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yml")
	if err := os.WriteFile(file, []byte("kafka: {brokers: [\"x:1\"]}\nlimits: {depth: 7}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig("app", file, []string{"STREAMGAUGE_KAFKA_BROKERS=a:1,b:2", "STREAMGAUGE_STATE_COMMITINTERVAL=250ms", "STREAMGAUGE_WEB_PLAYGROUND=false", "OTHER=1"})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c.Kafka.Brokers, []string{"a:1", "b:2"}) || c.State.CommitInterval != 250*time.Millisecond || c.Web.Playground || c.Limits.Depth != 7 || c.Limits.Aliases != 30 {
		t.Errorf("got %+v", c)
	}
}

func TestConfigMistakes(t *testing.T) {
	for _, c := range []struct{ name, file, env, want string }{
		{"unknown setting", "app: x\nkafka: {broker: x}", "", "FILE:2:9: no such setting: broker"},
		{"unknown setting at the beginning", "kafka:\n  broker: x", "", "FILE:2:3: no such setting: broker"},
		{"type", "limits:\n  depth: deep", "", `FILE:2:10: depth: want a whole number, got "deep"`},
		{"boolean", "web: {playground: 7}", "", `FILE:1:19: playground: want true or false, got "7"`},
		{"duration", "reads:\n  timeout: soon", "", `FILE:2:12: timeout: want a duration such as 10s, got "soon"`},
		{"duration without a unit", "reads: {timeout: 10}", "", `FILE:1:18: timeout: want a duration such as 10s, got "10"`},
		{"syntax", "app: [x", "", "FILE:1:6: app: sequence end token ']' not found"},
		{"twice", "app: x\napp: y", "", `FILE:2:1: mapping key "app" already defined at [1:1]`},
		{"value", "processing: {onError: panic}", "", `processing.onError is "panic"; allowed: deadLetter, fail`},
		{"application", "app: a b", "", `app is "a b": it begins the names of topics; allowed: letters, digits, '.', '_' and '-'`},
		{"zero", "state: {commitInterval: 0s}", "", "state.commitInterval is 0s; allowed: 1ms and more"},
		{"negative", "reads: {timeout: -5s}", "", "reads.timeout is -5s; allowed: 1ms and more"},
		{"heartbeat", "kafka: {heartbeatInterval: 4s}", "", "kafka.heartbeatInterval is 4s; allowed: up to a third of kafka.sessionTimeout, which is 10s"},
		{"rows", "reads: {maxRows: 0}", "", "reads.maxRows is 0; allowed: 1 and more"},
		{"overlay", "state: {overlayBytes: -1}", "", "state.overlayBytes is -1; allowed: 1 and more"},
		{"replication", "kafka: {replication: 0}", "", "kafka.replication is 0; allowed: 1 to 32767, or -1 for the brokers' default"},
		{"limit", "limits: {depth: 0}", "", "limits.depth is 0; allowed: more than 0, or -1 for no limit"},
		{"rate", "limits: {rate: -2}", "", "limits.rate is -2; allowed: more than 0, or -1 for no limit"},
		{"address", "listen: {http: nonsense}", "", `listen.http is "nonsense": want host:port, with a port from 0 to 65535`},
		{"port", "listen: {grpc: \"127.0.0.1:65536\"}", "", `listen.grpc is "127.0.0.1:65536": want host:port, with a port from 0 to 65535`},
		{"advertised", "listen: {advertise: \":9090\"}", "", `listen.advertise is ":9090": want a host and a port that others can reach`},
		{"broker", "kafka: {brokers: [x]}", "", `kafka.brokers is "x": want host:port, with a port from 0 to 65535`},
		{"seed", "gateway: {seeds: [x]}", "", `gateway.seeds is "x": want host:port, with a port from 0 to 65535`},
		{"standbys", "state: {standbys: -1}", "", "state.standbys is -1; allowed: 0 to 10"},
		{"age", "reads: {maxAge: 0s}", "", "reads.maxAge is 0s; allowed: 1ms and more"},
		{"stop", "stopTimeout: -1s", "", "stopTimeout is -1s; allowed: 1ms and more"},
		{"half of TLS", "listen: {tls: {cert: x, key: y}}", "", "listen.tls.ca is not set: cert, key and ca go together"},
		{"names without TLS", "listen: {tls: {names: [x]}}", "", "listen.tls.cert is not set: cert, key and ca go together"},
		{"SASL", "kafka: {sasl: {user: x}}", "", "kafka.sasl has settings but no mechanism: set kafka.sasl.mechanism to one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, or leave them out"},
		{"environment's password", "", "STREAMGAUGE_KAFKA_SASL_PASSWORD=S3CRET", "kafka.sasl has settings but no mechanism: set kafka.sasl.mechanism to one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, or leave them out"},
		{"network", "web: {trustedProxies: [x]}", "", `web.trustedProxies: "x" is no network such as 10.0.0.0/8`},
		{"environment", "", "STREAMGAUGE_STATE_OVERLAYBYTES=lots", `environment variable STREAMGAUGE_STATE_OVERLAYBYTES: want a whole number, got "lots"`},
		{"environment's duration", "", "STREAMGAUGE_READS_TIMEOUT=5", `environment variable STREAMGAUGE_READS_TIMEOUT: want a duration such as 10s, got "5"`},
		{"environment's rate", "", "STREAMGAUGE_LIMITS_RATE=NaN", "limits.rate is NaN; allowed: more than 0, or -1 for no limit"},
		{"unknown variable", "", "STREAMGAUGE_KAFKA_BROKER=x:1", "environment variable STREAMGAUGE_KAFKA_BROKER: no such setting"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "c.yml")
			if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := LoadConfig("app", file, []string{c.env})
			if err == nil {
				t.Fatal("it was taken")
			}
			got := strings.TrimPrefix(strings.ReplaceAll(err.Error(), file, "FILE"), "configuration: ")
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	if _, err := LoadConfig("app", "nowhere.yml", nil); err == nil || !strings.Contains(err.Error(), "nowhere.yml") {
		t.Errorf("got %v", err)
	}
}

// Every setting of the transports has its variable.
func TestConfigOfTransports(t *testing.T) {
	dir := t.TempDir()
	ca := certs.NewAuthority(t, "kafka")
	f := ca.Write(t, dir, ca, certs.Leaf{})
	c, err := LoadConfig("app", "", []string{
		"STREAMGAUGE_KAFKA_TLS_ENABLED=true", "STREAMGAUGE_KAFKA_TLS_CA=" + f.CA, "STREAMGAUGE_KAFKA_TLS_CERT=" + f.Cert,
		"STREAMGAUGE_KAFKA_TLS_KEY=" + f.Key, "STREAMGAUGE_KAFKA_TLS_SERVERNAME=kafka",
		"STREAMGAUGE_KAFKA_SASL_MECHANISM=PLAIN", "STREAMGAUGE_KAFKA_SASL_USER=app", "STREAMGAUGE_KAFKA_SASL_PASSWORD=S3CRET",
		"STREAMGAUGE_LISTEN_TLS_CERT=c", "STREAMGAUGE_LISTEN_TLS_KEY=k", "STREAMGAUGE_LISTEN_TLS_CA=a", "STREAMGAUGE_LISTEN_TLS_NAMES=x,y",
		"STREAMGAUGE_GATEWAY_SEEDS=a:1,b:2", "STREAMGAUGE_RACK=r1", "STREAMGAUGE_STOPTIMEOUT=5s", "STREAMGAUGE_STATE_STANDBYS=0",
		"STREAMGAUGE_AUTH_KEYS=key.pem",
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Kafka.TLS != (kafka.TLS{Enabled: true, CA: f.CA, Cert: f.Cert, Key: f.Key, ServerName: "kafka"}) ||
		c.Kafka.SASL != (kafka.SASL{Mechanism: "PLAIN", User: "app", Password: "S3CRET"}) ||
		!reflect.DeepEqual(c.Listen.TLS, listenTLS{Cert: "c", Key: "k", CA: "a", Names: []string{"x", "y"}}) ||
		len(c.Gateway.Seeds) != 2 || c.Rack != "r1" || c.StopTimeout != 5*time.Second || c.State.Standbys != 0 ||
		len(c.Auth.Keys) != 1 || c.Auth.Keys[0].File != "key.pem" {
		t.Errorf("got %+v", c)
	}
	if text := fmt.Sprintf("%+v", c); strings.Contains(text, "S3CRET") {
		t.Error("the configuration shows its password")
	}
}

// A limit may be off, and variables that only look like settings do not matter.
func TestConfigTakes(t *testing.T) {
	c, err := LoadConfig("app", "", []string{
		"STREAMGAUGE_LIMITS_RATE=-1", "STREAMGAUGE_LIMITS_DEPTH=-1", "STREAMGAUGE_AUTH_ALGORITHMS=",
		"STREAMGAUGE_TEST_KAFKA=x", "STREAMGAUGE_SERVICE_HOST=10.0.0.1", "STREAMGAUGE_PORT=tcp://10.0.0.1:80", "STREAMGAUGE_PORT_80_TCP_PROTO=tcp",
	})
	if err != nil || c.Limits.Rate != -1 || c.Limits.Depth != -1 || len(c.Auth.Algorithms) > 0 {
		t.Errorf("got %+v, %v", c, err)
	}
}

// A file or a section of comments alone changes nothing.
func TestConfigWithoutSettings(t *testing.T) {
	for _, text := range []string{"", "\n", "# app: x\n", "---\n", "kafka:\n  # brokers: [x]\nlimits:\n", "limits: {}"} {
		file := filepath.Join(t.TempDir(), "c.yml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := LoadConfig("app", file, nil); err != nil || !reflect.DeepEqual(c, DefaultConfig("app")) {
			t.Errorf("%q: got %+v, %v", text, c, err)
		}
	}
}

func TestListenSaysWhatToDo(t *testing.T) {
	l, err := listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct{ addr, want string }{
		{l.Addr().String(), "address already in use; stop what uses the port, or choose another"},
		{"192.0.2.1:0", "cannot assign requested address; use an address or a name of this machine, such as 127.0.0.1"},
		{"nonsense", "missing port in address; want host:port, such as 127.0.0.1:8080"},
	} {
		if _, err := listen(c.addr); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.addr, err, c.want)
		}
	}
}
