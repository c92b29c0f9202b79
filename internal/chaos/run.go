package chaos

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/streamgauge/streamgauge/internal/chaos/oracle"
	"github.com/streamgauge/streamgauge/internal/embedded"
)

// ErrFaults says that something was wrong; the trail has what.
var ErrFaults = errors.New("the run has faults")

// run is one run.
type run struct {
	cfg       Config
	rng       *rand.Rand // of the faults' own choices
	trail     *trail
	report    *report
	ledger    *oracle.Ledger
	brokers   *brokers // nil with an embedded broker
	embedded  *embedded.Broker
	admin     *admin // nil with an embedded broker
	network   *network
	cluster   *cluster
	feed      *feed
	directive directive
	real      []string // keys of the real flights, sorted
	flights   []oracle.Event
	watchers  []*watcher
	// brokersAway: no broker is to be reached, as far as faults go.
	brokersAway atomic.Bool
	ending      atomic.Bool
	reviving    sync.WaitGroup

	mu    sync.Mutex // guards under
	under []string   // the faults under way
}

// Result is what was counted.
type Result struct {
	Reads, Kills int64
	Faults       map[oracle.Kind]int64
}

// Run is one run, from the start of the brokers to the verdict: nil, ErrFaults,
// or why it could not be made.
func Run(ctx context.Context, cfg Config) (_ Result, err error) {
	if err := cfg.check(); err != nil {
		return Result{}, err
	}
	r := &run{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 3)), report: newReport(),
		ledger: oracle.NewLedger(partitions, cfg.Slack),
	}
	if r.trail, err = newTrail(cfg.Dir, cfg.Seed, cfg.Out); err != nil {
		return Result{}, err
	}
	defer func() {
		keep := cfg.Keep || cfg.Dir != "" || err != nil // a folder that was given is not ours to delete
		if e := r.trail.end(keep); e != nil {
			err = errors.Join(err, e)
		}
		if keep {
			fmt.Fprintf(cfg.Out, "the trail is in %s: schedule.log, violations.jsonl, instance-N.log, kafka/N.log\n", r.trail.dir)
		}
	}()
	if err := r.prepare(ctx); err != nil {
		r.close()
		return Result{}, err
	}
	err = r.play(ctx)
	r.close()
	line := r.report.closing(cfg.Seed)
	r.trail.note(line)
	fmt.Fprintln(cfg.Out, line)
	if err == nil && r.report.sum() > 0 {
		err = ErrFaults
	}
	return r.report.result(), err
}

// prepare starts brokers, topics and instances.
func (r *run) prepare(ctx context.Context) (err error) {
	if r.flights, err = realFlights(r.cfg.Root, r.cfg.Flights); err != nil {
		return err
	}
	for _, f := range r.flights {
		r.real = append(r.real, f.Key)
	}
	slices.Sort(r.real)
	r.real = slices.Compact(r.real)
	if r.cfg.Binary == "" {
		r.cfg.Binary = filepath.Join(r.trail.dir, "flights")
		cmd := exec.CommandContext(ctx, "go", "build", "-o", r.cfg.Binary, "./cmd/flights")
		cmd.Dir = r.cfg.Root
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build the application: %w\n%s", err, out)
		}
	}
	addrs, err := r.startBrokers(ctx)
	if err != nil {
		return err
	}
	if r.network, err = newNetwork(&r.cfg); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(r.trail.schedule, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if r.feed, err = startFeed(ctx, addrs, r.ledger, log); err != nil {
		return err
	}
	if err := r.feed.table(ctx, r.cfg.Root); err != nil {
		return err
	}
	return r.startInstances(ctx, addrs)
}

// startBrokers starts Kafka, or the embedded broker, and says where this process
// reaches it.
func (r *run) startBrokers(ctx context.Context) ([]string, error) {
	r.trail.event("%d brokers and %d instances start", max(r.cfg.Brokers, 1), r.cfg.Instances)
	if r.cfg.Embedded {
		var err error
		if r.embedded, err = embedded.Start(embedded.Options{}); err != nil {
			return nil, err
		}
		return r.embedded.Addrs(), nil
	}
	r.brokers = newBrokers(&r.cfg, r.trail.dir)
	if err := r.brokers.up(ctx); err != nil {
		return nil, err
	}
	r.admin = newAdmin(r.brokers.plain())
	return r.brokers.plain(), nil
}

func (r *run) startInstances(ctx context.Context, addrs []string) error {
	extra, err := r.secure()
	if err != nil {
		return err
	}
	var list []*instance
	for s := range r.cfg.Instances {
		var in *instance
		if !r.cfg.Embedded {
			addrs = via(&r.cfg, s)
		}
		env := append([]string{"STREAMGAUGE_KAFKA_BROKERS=" + strings.Join(addrs, ",")}, extra...)
		in = newInstance(&r.cfg, r.trail.dir, s, func(pid int) { r.network.process(s, pid) }, func(how string) { r.revive(in, how) }, env)
		list = append(list, in)
	}
	r.cluster = newCluster(list)
	for _, in := range list {
		if err := in.start(); err != nil {
			return err
		}
	}
	took, why := r.cluster.whole(ctx, 2*time.Minute)
	if why != "" {
		return fmt.Errorf("the instances do not become ready: %s", why)
	}
	for _, in := range list {
		in.ready()
	}
	if r.directive, err = findDirective(ctx, r.cluster.http, list[0]); err != nil {
		return err
	}
	has := "has @read"
	if r.directive == (directive{}) {
		has = "has no @read: nothing is demanded, and nobody may go back"
	}
	r.trail.event("whole after %s; the schema %s", took.Round(time.Millisecond), has)
	return nil
}

// revive starts a process again that ended unasked, as whatever supervises it
// would.
func (r *run) revive(in *instance, how string) {
	if r.ending.Load() {
		return
	}
	r.complain(in, "the process ended by itself: "+how)
	r.reviving.Go(func() {
		time.Sleep(time.Second) // a supervisor's pause
		if r.ending.Load() {
			return
		}
		if err := in.start(); err != nil {
			r.trail.event("%v", err)
		}
	})
}

// play feeds, asks and breaks, then heals and compares.
func (r *run) play(ctx context.Context) error {
	asking, stopAsking := context.WithCancel(ctx)
	defer stopAsking()
	var readers, breaking sync.WaitGroup
	readers.Go(func() { r.cluster.watch(asking) })
	for i := range r.cfg.Clients {
		readers.Go(func() { r.newClient(i).loop(asking) })
	}
	for i := range 2 * r.cfg.Instances {
		w := r.newWatcher(i)
		r.watchers = append(r.watchers, w)
		readers.Go(func() { w.loop(asking) })
	}
	readers.Go(func() { r.tell(asking) })
	fed := make(chan error, 1)
	go func() {
		fed <- r.feed.run(asking, r.flights, newGenerator(r.cfg.Seed, r.cfg.Keys), r.cfg.Rate, r.cfg.Duration)
	}()
	trouble, stopTrouble := context.WithTimeout(ctx, r.cfg.Duration)
	defer stopTrouble()
	for i := range r.plans() {
		breaking.Go(func() { r.chaos(trouble, r.plan(i)) })
	}
	breaking.Wait()
	<-trouble.Done()
	r.network.heal()
	err := r.await(ctx, fed)
	if err == nil {
		err = r.final(ctx)
	}
	r.report.endProbes(time.Now())
	stopAsking()
	readers.Wait()
	return err
}

// plans is how many faults may be under way at once.
func (r *run) plans() int {
	if r.cfg.Brutal {
		return 3
	}
	return 1
}

func (r *run) plan(i int) *Plan {
	only, _ := r.cfg.kinds() // checked before
	return NewPlan(r.cfg.Seed+uint64(i)<<32, r.cfg.Instances, r.cfg.Brokers, only)
}

// await waits for the end of the feed.
func (r *run) await(ctx context.Context, fed <-chan error) error {
	r.trail.event("faults are over")
	select {
	case err := <-fed:
		if err != nil {
			return fmt.Errorf("feed: %w", err)
		}
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(r.cfg.Duration + 2*time.Minute):
		return errors.New("feed: the brokers do not take the records")
	}
	return r.feed.ends(ctx)
}

// tell prints how it stands, each ten seconds.
func (r *run) tell(ctx context.Context) {
	for {
		pause(ctx, 10*time.Second)
		if ctx.Err() != nil {
			return
		}
		sent, _ := r.ledger.Counts()
		var n int64
		for _, s := range sent {
			n += s
		}
		r.trail.event("records=%d %s under way: %s", n, r.report.progress(), r.underWay())
	}
}

// begin notes a fault under way, for the trail of what goes wrong meanwhile.
func (r *run) begin(what string) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.under = append(r.under, what)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if i := slices.Index(r.under, what); i >= 0 {
			r.under = slices.Delete(r.under, i, i+1)
		}
	}
}

func (r *run) underWay() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.under) == 0 {
		return "nothing"
	}
	return strings.Join(r.under, ", ")
}

// violation counts a fault of an answer and leaves its trail.
func (r *run) violation(at *asked, f oracle.Fault) {
	r.report.fault(f.Kind)
	v := violation{
		Kind: f.Kind, Text: f.Text, Instance: at.in.name + " pid " + at.in.pid(), Client: at.client, Sent: &at.sent,
		TookMS: float64(at.took.Microseconds()) / 1000, Request: at.request, Status: at.answer.status,
		Headers: at.answer.headers, Answer: at.answer.text, Under: r.underWay(),
	}
	if at.q != nil && at.q.key != "" {
		v.Known = r.ledger.Tell(at.q.key)
	}
	r.trail.violation(v)
}

// complain counts a failure of an instance itself.
func (r *run) complain(in *instance, text string) {
	r.report.fault(oracle.Failed)
	r.trail.violation(violation{Kind: oracle.Failed, Text: text, Instance: in.name + " pid " + in.pid(), Under: r.underWay()})
}

// close ends everything that was started.
func (r *run) close() {
	r.ending.Store(true)
	if r.network != nil {
		r.network.heal()
	}
	r.reviving.Wait()
	if r.cluster != nil {
		var stopping sync.WaitGroup
		for _, in := range r.cluster.list {
			stopping.Go(func() {
				in.signal(syscall.SIGCONT, up) // one that is paused would not end
				in.kill()
			})
		}
		stopping.Wait()
		r.cluster.http.CloseIdleConnections()
	}
	if r.feed != nil {
		r.feed.close()
	}
	if r.network != nil {
		r.network.close()
	}
	if r.brokers != nil {
		r.brokers.down()
	}
	if r.embedded != nil {
		r.embedded.Close()
	}
}
