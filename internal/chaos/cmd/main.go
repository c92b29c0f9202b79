// Command cmd breaks a cluster of instances and brokers, by a seed, while it
// follows every answer. It prints one closing line and exits with 1 when
// anything was wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/streamgauge/streamgauge/internal/chaos"
)

func main() {
	cfg, err := flags(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	_, err = chaos.Run(ctx, cfg)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func flags(args []string) (chaos.Config, error) {
	c := chaos.Config{Out: os.Stdout}
	f := flag.NewFlagSet("chaos", flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "Breaks a cluster by a seed while it follows every answer. Needs Go, Java 17 and Maven.\n\nFlags:")
		f.PrintDefaults()
		fmt.Fprintln(f.Output(), "\nFaults:", strings.Join(chaos.Kinds(), " "))
	}
	f.DurationVar(&c.Duration, "duration", 2*time.Minute, "how long faults go on; the records are spread over it")
	f.Uint64Var(&c.Seed, "seed", uint64(time.Now().UnixNano()%1_000_000), "what is broken and asked follows from it; default: by the clock")
	f.IntVar(&c.Instances, "instances", 3, "instances, 2 to 9")
	f.IntVar(&c.Brokers, "brokers", 3, "brokers, 1 or 3; 0 with -embedded")
	f.IntVar(&c.Clients, "clients", 16, "clients that ask all the while")
	f.IntVar(&c.Keys, "keys", 20_000, "generated keys, beside the real airports")
	f.Float64Var(&c.Rate, "rate", 250, "generated records a second")
	f.IntVar(&c.Flights, "flights", 20_000, "real flights at most")
	f.DurationVar(&c.Slack, "slack", 250*time.Millisecond, "by how much an as-of may be ahead of what an answer holds")
	faults := f.String("faults", "", "only these, divided by commas; none: break nothing (default all)")
	f.BoolVar(&c.Brutal, "brutal", false, "three faults at once: more than is promised to survive without failed reads")
	f.BoolVar(&c.Embedded, "embedded", false, "a broker in this process: without Java, and only instances are broken")
	f.BoolVar(&c.TLS, "tls", false, "mutual TLS between instances, SASL over TLS to the brokers")
	f.BoolVar(&c.Keep, "keep", false, "keep the trail of a run without faults, too")
	f.IntVar(&c.Ports, "ports", 28, "the first two digits of every port, 11 to 31")
	f.StringVar(&c.Root, "root", ".", "the checkout")
	f.StringVar(&c.Binary, "bin", "", "the application's binary; default: build it")
	f.StringVar(&c.Dir, "dir", "", "the folder of the trail, which is kept; default: a new temporary one")
	f.StringVar(&c.LogLevel, "log", "info", "the instances' log level")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("takes no arguments, got %q; see --help", f.Arg(0))
	}
	if *faults != "" {
		c.Faults = strings.Split(*faults, ",")
	}
	return c, nil
}
