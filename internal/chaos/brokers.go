package chaos

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// brokers are Kafka's processes, run by deploy/kafka/kafka.sh. Broker N listens for this
// process at plain(N) and for each instance at a port of its own.
type brokers struct {
	script string
	env    []string
	cfg    *Config
}

// Ports of a run, after its two digits; N is a broker from 1, S a slot from 1.
const (
	plainPort    = 90  // 09N
	slotPort     = 500 // 5SN: broker N's listener for slot S
	slotVia      = 600 // 6SN: the proxy before it
	instancePort = 700 // 7S1 HTTP, 7S2 gRPC, 7S3 the proxy before it
)

func newBrokers(cfg *Config, dir string) *brokers {
	protocol := "PLAINTEXT"
	if cfg.TLS {
		protocol = "SASL_SSL"
	}
	var listeners []string
	for s := 1; s <= cfg.Instances; s++ {
		listeners = append(listeners, fmt.Sprintf("SLOT%d:%s:%d%d:%d%d", s, protocol, cfg.Ports*10+slotPort/100, s, cfg.Ports*10+slotVia/100, s))
	}
	return &brokers{
		script: filepath.Join(cfg.Root, "deploy", "kafka", "kafka.sh"), cfg: cfg,
		env: append(os.Environ(), "KAFKA_DIR="+filepath.Join(dir, "kafka"), "KAFKA_PORTS="+strconv.Itoa(cfg.Ports),
			"KAFKA_HEAP=256m", "KAFKA_LISTENERS="+strings.Join(listeners, " ")),
	}
}

// plain are the brokers as this process reaches them.
func (k *brokers) plain() []string {
	var out []string
	for n := 1; n <= k.cfg.Brokers; n++ {
		out = append(out, k.cfg.port(plainPort+n))
	}
	return out
}

// via are the brokers as an instance reaches them.
func via(cfg *Config, slot int) []string {
	var out []string
	for b := 1; b <= cfg.Brokers; b++ {
		out = append(out, cfg.port(slotVia+10*(slot+1)+b))
	}
	return out
}

func (k *brokers) do(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, k.script, args...)
	cmd.Env = k.env
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kafka.sh %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(said))
	}
	return nil
}

func (k *brokers) up(ctx context.Context) error { return k.do(ctx, "up", strconv.Itoa(k.cfg.Brokers)) }

// down ends the brokers at once: nothing of them is kept.
func (k *brokers) down() {
	for n := 1; n <= k.cfg.Brokers; n++ {
		_ = k.do(context.Background(), "kill", strconv.Itoa(n)) // one that is gone is what is wanted
	}
}

func (k *brokers) kill(ctx context.Context, n int) error  { return k.do(ctx, "kill", strconv.Itoa(n)) }
func (k *brokers) stop(ctx context.Context, n int) error  { return k.do(ctx, "stop", strconv.Itoa(n)) }
func (k *brokers) start(ctx context.Context, n int) error { return k.do(ctx, "start", strconv.Itoa(n)) }
