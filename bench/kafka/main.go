package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// config is what the flags say.
type config struct {
	root    string
	phases  []string
	records int
	repeat  int
	idle    time.Duration
	steady  time.Duration
	rate    int
	profile bool
	verbose bool
}

// bench is a run. It goes through the phases one after another.
type bench struct {
	config
	cluster *cluster
	data    *departures
	report  report
	apps    int // named so far
}

type phase struct {
	name, help string
	run        func(*bench, context.Context) error
}

func phases() []phase {
	return []phase{
		{"load", "write the departures; the phases after it need their topics", (*bench).load},
		{"ingest", "from nothing to lag 0, beside fetching and decoding alone", (*bench).ingest},
		{"restore", "from no files to running tasks, beside fetching alone; memory and reads of a million keys", (*bench).restore},
		{"commit", "commits and checkpoints under a steady load, 12 and 100 tasks", (*bench).commits},
		{"idle", "100 tasks with nothing to do, alone and with standbys", (*bench).idling},
	}
}

func main() {
	cfg, err := flags(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kafka:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, cfg)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kafka:", err)
		os.Exit(1)
	}
}

func flags(args []string) (config, error) {
	var names []string
	for _, p := range phases() {
		names = append(names, p.name)
	}
	c := config{}
	f := flag.NewFlagSet("kafka", flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "Measures a worker on a real broker, with figures and ratios. Uses the broker at\n"+
			"STREAMGAUGE_BENCH_KAFKA (host:port, divided by commas), or starts one: that needs Java 17 and\n"+
			"Maven. The departures are fetched the first time: that needs Node 20 and npm.\n\nFlags:")
		f.PrintDefaults()
		fmt.Fprintln(f.Output(), "\nPhases:")
		for _, p := range phases() {
			fmt.Fprintf(f.Output(), "  %-8s %s\n", p.name, p.help)
		}
	}
	f.StringVar(&c.root, "root", ".", "the checkout")
	only := f.String("phases", strings.Join(names, ","), "which, divided by commas; load is always first")
	f.IntVar(&c.records, "records", 3_000_000, "departures, at most 3,000,000")
	f.IntVar(&c.repeat, "repeat", 3, "how often each restore, and each fetch beside it, is measured; medians are told")
	f.DurationVar(&c.idle, "idle", 30*time.Second, "how long idling is measured")
	f.DurationVar(&c.steady, "steady", 20*time.Second, "how long commits under a steady load are measured")
	f.IntVar(&c.rate, "rate", 20_000, "records a second of the steady load")
	f.BoolVar(&c.profile, "profile", false, "write processor and memory profiles of each phase to .cache/bench/profiles")
	f.BoolVar(&c.verbose, "v", false, "the worker's log")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("takes no arguments, got %q; see --help", f.Arg(0))
	}
	c.phases = strings.Split(*only, ",")
	for _, p := range c.phases {
		if !slices.Contains(names, p) {
			return c, fmt.Errorf("no phase %q; there are %s", p, strings.Join(names, ", "))
		}
	}
	if c.records < 1 || c.records > 3_000_000 || c.repeat < 1 {
		return c, errors.New("records is 1 to 3,000,000, and repeat at least 1")
	}
	root, err := filepath.Abs(c.root)
	c.root = root
	return c, err
}

// run starts what is needed, and prints the table of what was measured, even
// when a phase fails.
func run(ctx context.Context, cfg config) error {
	b := &bench{config: cfg}
	var err error
	if b.data, err = fetchDepartures(ctx, cfg.root, cfg.records); err != nil {
		return err
	}
	if b.cluster, err = startCluster(ctx, cfg.root); err != nil {
		return err
	}
	err = b.all(ctx)
	err = errors.Join(err, b.cluster.close(), os.RemoveAll(filepath.Join(b.folder(), "state")))
	b.report.print(os.Stdout)
	return err
}

func (b *bench) all(ctx context.Context) error {
	for _, p := range phases() {
		if p.name != "load" && !slices.Contains(b.phases, p.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "%s: %s\n", p.name, p.help)
		if err := p.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// folder is where what is written is kept.
func (b *bench) folder() string { return filepath.Join(b.root, ".cache", "bench") }
