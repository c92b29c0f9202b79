package chaos

import (
	"fmt"
	"io"
	"time"
)

// Config is what a run is made of. The command's flags have the defaults.
type Config struct {
	Duration  time.Duration
	Seed      uint64
	Instances int
	Brokers   int // 1 or 3; 0 with Embedded
	Clients   int
	Keys      int     // generated keys
	Rate      float64 // generated records a second
	Flights   int     // real records at most, spread over Duration
	Slack     time.Duration
	Faults    []string // kinds; nil: all that the cluster allows; none: nothing
	Brutal    bool     // faults overlap
	Embedded  bool     // a broker in this process: no Java, and nothing of it is broken
	TLS       bool
	Keep      bool
	Ports     int    // the first two digits of every port
	Root      string // the checkout
	Binary    string // the application; built at Root/bin when empty
	Dir       string // the trail; empty: a new temporary folder
	LogLevel  string
	Out       io.Writer
}

func (c *Config) check() error {
	switch {
	case c.Instances < 2 || c.Instances > 9:
		return fmt.Errorf("-instances is 2 to 9, not %d", c.Instances)
	case c.Embedded && (c.Brokers != 0 || c.TLS):
		return fmt.Errorf("the embedded broker is one, without TLS: -embedded goes with -brokers 0")
	case !c.Embedded && c.Brokers != 1 && c.Brokers != 3:
		return fmt.Errorf("-brokers is 1 or 3, not %d", c.Brokers)
	case c.Duration < 10*time.Second:
		return fmt.Errorf("-duration is 10s or more, not %s", c.Duration)
	case c.Clients < 1 || c.Keys < 24 || c.Rate < 0 || c.Flights < 1:
		return fmt.Errorf("-clients and -flights must be 1 or more, -keys 24 or more, -rate 0 or more")
	case c.Ports < 11 || c.Ports > 31:
		return fmt.Errorf("-ports is 11 to 31, not %d", c.Ports)
	}
	_, err := c.kinds()
	return err
}

// none is how Faults says that nothing is to be broken.
const none = "none"

// kinds are the faults wanted; nil: all.
func (c *Config) kinds() ([]Kind, error) {
	var out []Kind
	for _, name := range c.Faults {
		if name == none {
			return []Kind{}, nil
		}
		k, err := kindOf(name)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

// port is a port of this run: all begin with the same two digits.
func (c *Config) port(rest int) string { return fmt.Sprintf("127.0.0.1:%d", c.Ports*1000+rest) }
