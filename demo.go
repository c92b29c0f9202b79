package streamgauge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/internal/embedded"
	"github.com/streamgauge/streamgauge/internal/usage"
	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/schema"
	"github.com/urfave/cli/v3"
)

func demoCommand(app App) *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "run an embedded broker and several instances over real data",
		Description: "With --state the broker and each instance keep a folder of their own in DIR: a second run\n" +
			"goes on where the first ended, however it ended, and loads nothing twice. Without it\n" +
			"everything is in a temporary folder.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "instances", Value: 3, Usage: "run `N` instances, 1 to 16"},
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:8080", Usage: "`HOST:PORT` of the first instance's HTTP; the others follow"},
			&cli.StringFlag{Name: "rate", Value: "paced", Usage: "paced (the last records over twenty minutes), max, or `N` records a second"},
			&cli.StringFlag{Name: "dates", Value: "shifted", Usage: "shifted (the last record within the past hour) or original"},
			&cli.StringFlag{Name: "auth", Value: "dev", Usage: "dev (two signed tokens) or off"},
			&cli.StringFlag{Name: "state", Usage: "keep everything in `DIR`"},
			&cli.StringSliceFlag{Name: "brokers", Usage: "use the Kafka at `HOST:PORT,…` instead of the embedded broker"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "log what the instances do"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			d, err := newDemo(app, c)
			if err != nil {
				return err
			}
			return d.run(ctx)
		},
	}
}

// demo is a broker and instances in one process.
type demo struct {
	app      App
	n        int
	host     string
	port     int
	rate     string
	dates    string
	auth     string
	dir      string
	own      bool // the folder is temporary
	made     bool // the folder was not there before
	started  bool // there are instances, and people know
	brokers  []string
	log      *slog.Logger
	out      io.Writer
	topology *schema.Topology
	verifier *auth.Verifier
	viewer   string // token

	mu      sync.Mutex // guards the following
	running map[string]*running
	failed  chan error // of one
}

// running is an instance that runs.
type running struct {
	*instance
	ctx  context.Context // ends when it is to stop
	stop context.CancelFunc
	done chan struct{}
}

func newDemo(app App, c *cli.Command) (*demo, error) {
	d := &demo{
		app: app, n: c.Int("instances"), rate: c.String("rate"), dates: c.String("dates"), auth: c.String("auth"),
		dir: c.String("state"), brokers: c.StringSlice("brokers"), out: c.Root().Writer,
		running: make(map[string]*running), failed: make(chan error, 1),
	}
	var err error
	d.host, d.port, err = splitAddr(c.String("listen"))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--listen %q: want HOST:PORT, with a port from 0 to 65535", c.String("listen"))
	case d.n < 1 || d.n > 16:
		return nil, fmt.Errorf("--instances %d: allowed are 1 to 16", d.n)
	case d.port+d.n-1 > 65535:
		return nil, fmt.Errorf("--listen %q: %d instances have ports beyond 65535: choose a lower one", c.String("listen"), d.n)
	case d.dates != "shifted" && d.dates != "original":
		return nil, fmt.Errorf("--dates %q: allowed are shifted and original", d.dates)
	case d.auth != "dev" && d.auth != "off":
		return nil, fmt.Errorf("--auth %q: allowed are dev and off", d.auth)
	case c.Args().Len() > 0:
		return nil, usage.Errorf(c, "takes no arguments, got %q", c.Args().First())
	}
	if n, err := strconv.ParseFloat(d.rate, 64); d.rate != "paced" && d.rate != "max" && (err != nil || n <= 0) {
		return nil, fmt.Errorf("--rate %q: allowed are paced, max, or records a second", d.rate)
	}
	level := slog.LevelError
	if c.Bool("verbose") {
		level = slog.LevelInfo
	}
	d.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	loaded, err := schema.Load("schema", []byte(app.Schema))
	if err != nil {
		return nil, err
	}
	d.topology = loaded.Topology
	return d, nil
}

func (d *demo) run(ctx context.Context) error {
	if err := d.tryPorts(); err != nil {
		return err
	}
	defer d.cleanUp()
	if err := d.prepare(); err != nil {
		return err
	}
	for {
		again, err := d.session(ctx)
		if !again || err != nil {
			return err
		}
		// Only now that the broker is closed, which writes as it closes.
		fmt.Fprintln(d.out, "The broker was killed in the middle of a transaction and its state is torn: deleting it and loading again.")
		if err := d.wipe(); err != nil {
			return err
		}
	}
}

// addr is where instance i serves HTTP.
func (d *demo) addr(i int) string { return net.JoinHostPort(d.host, strconv.Itoa(d.port+i)) }

// tryPorts binds the ports of all instances for a moment, so that one in use is
// found before anything is written. Port 0 becomes one that is free.
func (d *demo) tryPorts() error {
	for i := range d.n {
		l, err := listen(d.addr(i))
		if err != nil {
			return err
		}
		if d.port == 0 {
			_, d.port, err = splitAddr(l.Addr().String())
		}
		if err := errors.Join(err, l.Close()); err != nil {
			return err
		}
	}
	return nil
}

// cleanUp deletes a temporary folder, and one that a demo has made which then
// did not start.
func (d *demo) cleanUp() {
	if !d.own && (!d.made || d.started) {
		return
	}
	if err := os.RemoveAll(d.dir); err != nil {
		d.log.Error("folder not deleted", "err", err)
	}
}

// prepare makes the folder.
func (d *demo) prepare() error {
	if d.dir == "" {
		dir, err := os.MkdirTemp("", d.app.Name+"-demo-")
		if err != nil {
			return err
		}
		d.dir, d.own = dir, true
	}
	_, err := os.Stat(d.dir)
	d.made = errors.Is(err, os.ErrNotExist)
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	return nil
}

// session runs everything once. again says that the state is torn, as a broker
// that is killed in the middle of a transaction may leave it, and must go.
func (d *demo) session(ctx context.Context) (again bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.failed = make(chan error, 1)
	brokers := d.brokers
	if len(brokers) == 0 {
		b, err := embedded.Start(embedded.Options{Dir: filepath.Join(d.dir, "broker")})
		var damaged *embedded.DamagedError
		if errors.As(err, &damaged) {
			return false, fmt.Errorf("the broker's data in %s is damaged (%w): delete %s, all that belongs to it, and start again", damaged.Dir, damaged.Err, d.dir)
		}
		if err != nil {
			return false, err
		}
		defer b.Close()
		brokers = b.Addrs()
	}
	client, err := broker.New(broker.Config{Brokers: brokers, ClientID: d.app.Name + "-demo", Logger: d.log})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := client.Ping(ctx); err != nil {
		return false, err
	}
	if err := d.authorize(); err != nil { // not before the folder is known to be free
		return false, err
	}
	shift, err := shiftFor(d.dir, d.app.Demo, d.dates, time.Now())
	if err != nil {
		return false, err
	}
	l := &loader{demo: d.app.Demo, client: client, rate: d.rate, shift: shift, log: d.log}
	if err := l.createTopics(ctx); err != nil {
		return false, err
	}
	for i := range d.n {
		if err := d.launch(ctx, i, brokers); err != nil {
			cancel()
			d.stopAll()
			return false, err
		}
	}
	d.started = true
	d.announce()
	loaded, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		loaded <- l.run(ctx)
	}()
	again, err = d.watch(ctx, loaded)
	cancel()
	<-ended
	d.stopAll()
	return again, err
}

// watch waits until something ends the session.
func (d *demo) watch(ctx context.Context, loaded <-chan error) (again bool, err error) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case err := <-d.failed:
			return false, err
		case err := <-loaded:
			if err != nil {
				return false, err
			}
			loaded = nil // everything is in
		case <-tick.C:
			if d.torn() {
				return true, nil
			}
		}
	}
}

// torn says whether some task has refused its state. The embedded broker does
// not finish a transaction that it was killed in; a real one does.
func (d *demo) torn() bool {
	if len(d.brokers) > 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.running {
		for _, t := range r.worker.Status().Tasks {
			if t.State == processor.Failed.String() {
				d.log.Error("task refused its state", "task", t.Task, "reason", t.Error)
				return true
			}
		}
	}
	return false
}

func (d *demo) wipe() error {
	var errs []error
	errs = append(errs, os.RemoveAll(filepath.Join(d.dir, "broker")))
	for i := range d.n {
		errs = append(errs, os.RemoveAll(filepath.Join(d.dir, "instance-"+instanceName(i))))
	}
	return errors.Join(errs...)
}

// startOver is what helps a demo whose state does not fit.
func (d *demo) startOver() string {
	if len(d.brokers) > 0 {
		return "to start over, delete " + d.dir + " and the application's topics (streamgauge reset --brokers " + strings.Join(d.brokers, ",") + " --app " + d.app.Name + ")"
	}
	return "to start over, delete " + d.dir + ", or start with another --state"
}

func instanceName(i int) string { return string(rune('a' + i)) }

// launch starts instance i.
func (d *demo) launch(ctx context.Context, i int, brokers []string) error {
	name := instanceName(i)
	cfg := DefaultConfig(d.app.Name)
	cfg.Instance = name
	cfg.Kafka.Brokers = brokers
	cfg.Kafka.SessionTimeout, cfg.Kafka.HeartbeatInterval = 6*time.Second, time.Second
	cfg.Listen.HTTP = d.addr(i)
	cfg.Listen.GRPC = "127.0.0.1:0"
	cfg.State.Dir = filepath.Join(d.dir, "instance-"+name)
	page := pageInfo{App: d.app.Name, Title: titleOf(d.app), Auth: d.auth, Token: d.viewer, Demo: true, Query: d.app.Demo.Query}
	in, err := newInstance(setup{
		app: d.app, cfg: cfg, topology: d.topology, verifier: d.verifier, log: d.log, page: page,
		startOver: d.startOver(), cluster: &demoCluster{demo: d, ctx: ctx, brokers: brokers},
	})
	if err != nil {
		return err
	}
	r := &running{instance: in, done: make(chan struct{})}
	r.ctx, r.stop = context.WithCancel(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if ctx.Err() != nil || d.running[name] != nil {
		in.close() // the session has ended, or another was quicker
		return ctx.Err()
	}
	d.running[name] = r
	go d.live(r, name, d.failed)
	return nil
}

// live runs an instance until it is stopped; one that fails ends the session.
func (d *demo) live(r *running, name string, failed chan<- error) {
	defer close(r.done)
	err := r.run(r.ctx)
	d.mu.Lock()
	delete(d.running, name)
	d.mu.Unlock()
	if err != nil && r.ctx.Err() == nil {
		select {
		case failed <- fmt.Errorf("instance %s: %w", name, err):
		default:
		}
	}
}

func (d *demo) stopAll() {
	d.mu.Lock()
	all := make([]*running, 0, len(d.running))
	for _, r := range d.running {
		all = append(all, r)
		r.stop()
	}
	d.mu.Unlock()
	for _, r := range all {
		<-r.done
	}
}

// announce prints what a person needs to begin.
func (d *demo) announce() {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s is starting; the page fills within seconds.\n\n", titleOf(d.app))
	for i := range d.n {
		fmt.Fprintf(&b, "  instance %s  http://%s/\n", instanceName(i), d.addr(i))
	}
	fmt.Fprintf(&b, "  playground  http://%s/playground/\n", d.addr(0))
	if d.auth == "dev" && !loopbackName(d.host) {
		fmt.Fprintf(&b, "\nwarning: other machines reach %s; to them the page does not carry the token, and asks for one.\n", d.addr(0))
	}
	if d.auth == "dev" {
		b.WriteString("\nTokens, for all stores and for some, are in " + filepath.Join(d.dir, "tokens.json") + ":\n")
		if text, err := os.ReadFile(filepath.Join(d.dir, "tokens.json")); err == nil {
			b.Write(text)
		}
	}
	fmt.Fprintf(&b, "\nA query to paste into the playground:\n\n  %s\n\nCtrl-C ends it.\n", d.app.Demo.Query)
	fmt.Fprint(d.out, b.String())
}
