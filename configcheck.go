package streamgauge

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/streamgauge/streamgauge/internal/load"
)

// check says what is wrong with the settings.
func (c *Config) check() error {
	if c.App == "" || c.Instance == "" || c.State.Dir == "" || len(c.Kafka.Brokers) == 0 {
		return errors.New("configuration: app, instance, state.dir and kafka.brokers must be set")
	}
	for _, check := range []func() error{c.checkWords, c.checkTimes, c.checkSizes, c.checkAddresses, c.checkTLS, c.Kafka.Check} {
		if err := check(); err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
	}
	_, err := c.proxies()
	return err
}

func (c *Config) checkWords() error {
	if load.CheckTopic(c.App) != nil {
		return fmt.Errorf("app is %.60q: it begins the names of topics; allowed: letters, digits, '.', '_' and '-'", c.App)
	}
	for _, s := range []struct {
		name, value string
		allowed     []string
	}{
		{"processing.onError", c.Processing.OnError, []string{"deadLetter", "fail"}},
		{"processing.onLoss", c.Processing.OnLoss, []string{"stop", "skip"}},
		{"auth.mode", c.Auth.Mode, []string{"jwt", "off"}},
		{"log.level", c.Log.Level, []string{"debug", "info", "warn", "error"}},
		{"log.format", c.Log.Format, []string{"text", "json"}},
	} {
		if !slices.Contains(s.allowed, s.value) {
			return fmt.Errorf("%s is %q; allowed: %s", s.name, s.value, strings.Join(s.allowed, ", "))
		}
	}
	return nil
}

func (c *Config) checkTimes() error {
	for _, s := range []struct {
		name  string
		value time.Duration
	}{
		{"kafka.sessionTimeout", c.Kafka.SessionTimeout},
		{"kafka.heartbeatInterval", c.Kafka.HeartbeatInterval},
		{"state.commitInterval", c.State.CommitInterval},
		{"state.checkpointInterval", c.State.CheckpointInterval},
		{"processing.maxAhead", c.Processing.MaxAhead},
		{"reads.timeout", c.Reads.Timeout},
		{"reads.maxAge", c.Reads.MaxAge},
		{"stopTimeout", c.StopTimeout},
	} {
		if s.value < time.Millisecond {
			return fmt.Errorf("%s is %s; allowed: 1ms and more", s.name, s.value)
		}
	}
	if c.Kafka.HeartbeatInterval > c.Kafka.SessionTimeout/3 {
		return fmt.Errorf("kafka.heartbeatInterval is %s; allowed: up to a third of kafka.sessionTimeout, which is %s", c.Kafka.HeartbeatInterval, c.Kafka.SessionTimeout)
	}
	return nil
}

func (c *Config) checkSizes() error {
	for _, s := range []struct {
		name  string
		value int64
	}{
		{"state.overlayBytes", c.State.OverlayBytes},
		{"reads.maxRows", int64(c.Reads.MaxRows)},
		{"reads.maxPoints", int64(c.Reads.MaxPoints)},
		{"state.acceptableLag", c.State.AcceptableLag},
		{"state.warmUps", int64(c.State.WarmUps)},
		{"limits.pageSize", int64(c.Limits.PageSize)},
	} {
		if s.value < 1 {
			return fmt.Errorf("%s is %d; allowed: 1 and more", s.name, s.value)
		}
	}
	if n := c.State.Standbys; n < 0 || n > 10 {
		return fmt.Errorf("state.standbys is %d; allowed: 0 to 10", n)
	}
	if r := c.Kafka.Replication; r != -1 && (r < 1 || r > 32767) {
		return fmt.Errorf("kafka.replication is %d; allowed: 1 to 32767, or -1 for the brokers' default", r)
	}
	l := &c.Limits
	for _, s := range []struct {
		name  string
		value float64
	}{
		{"body", float64(l.Body)}, {"tokens", float64(l.Tokens)}, {"depth", float64(l.Depth)},
		{"aliases", float64(l.Aliases)}, {"rootFields", float64(l.RootFields)}, {"complexity", float64(l.Complexity)},
		{"subscriptions", float64(l.Subscriptions)}, {"sockets", float64(l.Sockets)},
		{"rate", l.Rate}, {"anonymousRate", l.AnonymousRate},
	} {
		if !(s.value > 0) && s.value != -1 { // NaN too
			return fmt.Errorf("limits.%s is %v; allowed: more than 0, or -1 for no limit", s.name, s.value)
		}
	}
	return nil
}

func (c *Config) checkAddresses() error {
	for _, s := range []struct{ name, value string }{{"listen.http", c.Listen.HTTP}, {"listen.grpc", c.Listen.GRPC}} {
		if _, _, err := splitAddr(s.value); err != nil {
			return fmt.Errorf("%s is %.60q: %w", s.name, s.value, err)
		}
	}
	reached := []struct{ name, value string }{{"listen.advertise", c.Listen.Advertise}, {"listen.advertiseHTTP", c.Listen.AdvertiseHTTP}}
	for _, b := range c.Kafka.Brokers {
		reached = append(reached, struct{ name, value string }{"kafka.brokers", b})
	}
	for _, seed := range c.Gateway.Seeds {
		reached = append(reached, struct{ name, value string }{"gateway.seeds", seed})
	}
	for _, s := range reached {
		if s.value == "" && strings.HasPrefix(s.name, "listen.") {
			continue
		}
		host, port, err := splitAddr(s.value)
		if err == nil && (host == "" || port == 0) {
			err = errors.New("want a host and a port that others can reach")
		}
		if err != nil {
			return fmt.Errorf("%s is %.60q: %w", s.name, s.value, err)
		}
	}
	return nil
}

// splitAddr takes host:port apart. The host may be empty and the port 0.
func splitAddr(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		var n uint64
		n, err = strconv.ParseUint(text, 10, 16)
		port = int(n)
	}
	if err != nil {
		return "", 0, errors.New("want host:port, with a port from 0 to 65535")
	}
	return host, port, nil
}

// checkTLS says what is missing of listen.tls; the files are read at start.
func (c *Config) checkTLS() error {
	t := &c.Listen.TLS
	if t.Cert == "" && t.Key == "" && t.CA == "" && len(t.Names) == 0 {
		return nil
	}
	for _, s := range []struct{ name, value string }{{"cert", t.Cert}, {"key", t.Key}, {"ca", t.CA}} {
		if s.value == "" {
			return fmt.Errorf("listen.tls.%s is not set: cert, key and ca go together", s.name)
		}
	}
	if slices.Contains(t.Names, "") {
		return errors.New("listen.tls.names has an empty name")
	}
	return nil
}
