package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
	"golang.org/x/sync/errgroup"
)

// Worker is one instance: its tasks, its copies of the global tables, and its
// membership of the group. It answers reads of what it holds (read.Instance)
// and knows who holds the rest (read.RouteSource). Safe for concurrent use.
type Worker struct {
	cfg     Config
	started int64 // ns since the epoch
	log     *slog.Logger
	metrics *metrics
	views   map[string]*view.View     // by store
	readers map[*view.View]*sync.Pool // of *rowReader
	zones   *zoneCache
	hub     *hub
	story   *rebalance
	often   *sparing

	layout        *layout       // set before anything runs
	tombstonesFor time.Duration // least delete.retention.ms of the changelogs and tables
	fetcher       *broker.Fetcher
	restores      *broker.Fetcher // changelogs and tables: a restore holds up no input
	producer      *broker.Producer
	member        *broker.Member
	globals       map[string]*global // by store
	checkpoints   chan struct{}      // of two: places for checkpoints under way
	scans         chan struct{}      // of as many as processors: places for reads that scan
	plans         chan *membership   // of one: the newest assignment not applied
	fatal         chan error         // of one: ends Run
	news          chan struct{}      // of one: marks are due before their time
	warm          chan struct{}      // of one: a warm-up has caught up
	ends          sourceEnds

	group    atomic.Pointer[membership]
	joins    atomic.Int64 // of the group, so far
	caughtUp atomic.Bool  // once since the start: the instance may be waited for

	mu     sync.Mutex // guards the following
	tasks  map[taskID]*task
	kept   map[taskID]heldCopy // in files of tasks that are not open
	routes *read.Routes
	newer  chan struct{} // closed when routes change
}

// membership is an assignment in force. It is immutable but for over.
type membership struct {
	memberID   string
	generation int32
	era        int                  // assignments of one era follow each other without a gap
	tasks      map[taskID]bool      // that it owns
	others     map[taskID]read.Role // copies that it is to have beside them
	routes     *routeData
	over       chan struct{} // closed when another takes its place
}

// New makes a worker. It starts nothing.
func New(cfg Config) (*Worker, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	w := &Worker{
		cfg: cfg, started: time.Now().UnixNano(), log: cfg.Logger.With("instance", cfg.Instance),
		metrics: newMetrics(cfg.Registerer), zones: &zoneCache{}, hub: newHub(), often: newSparing(),
		views: make(map[string]*view.View), readers: make(map[*view.View]*sync.Pool), globals: make(map[string]*global),
		checkpoints: make(chan struct{}, 2), scans: make(chan struct{}, runtime.GOMAXPROCS(0)), plans: make(chan *membership, 1), fatal: make(chan error, 1),
		news: make(chan struct{}, 1), warm: make(chan struct{}, 1),
		tasks: make(map[taskID]*task), kept: make(map[taskID]heldCopy), newer: make(chan struct{}), routes: &read.Routes{},
	}
	w.story = newRebalance(w.log)
	w.group.Store(&membership{generation: -1, routes: &routeData{}, over: make(chan struct{})})
	for _, v := range cfg.Topology.Views {
		w.views[v.Store] = v
		w.readers[v] = &sync.Pool{New: func() any { return newRowReader(v) }}
	}
	for _, t := range cfg.Topology.Tables {
		w.globals[t.View.Store] = newGlobal(w, t)
	}
	w.fetcher = cfg.Client.NewFetcher(broker.FetcherConfig{Isolation: broker.ReadCommitted, Logger: w.log})
	w.restores = cfg.Client.NewFetcher(broker.FetcherConfig{Isolation: broker.ReadCommitted, Logger: w.log})
	w.producer = cfg.Client.NewProducer(broker.ProducerConfig{
		DeliveryTimeout: cfg.deliveryTimeout, QueueBytes: cfg.queueBytes, Logger: w.log,
	})
	w.member = cfg.Client.NewMember(w.memberConfig())
	return w, nil
}

// Run runs the instance until ctx ends or it must not go on; then it leaves the
// group, having closed every task. Call it once.
func (w *Worker) Run(ctx context.Context) error {
	unlock, err := lockFolder(filepath.Join(w.cfg.StateDir, w.cfg.App))
	if err != nil {
		return err
	}
	defer unlock()
	if err := w.prepare(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // stopped before it began
		}
		return err
	}
	register(w.cfg.Registerer, newCollector(w))
	if err := w.findCopies(); err != nil {
		return err
	}
	// What tasks need outlives them: they commit and release first.
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, leave := context.WithCancel(inner)
	defer leave()
	g, inner := errgroup.WithContext(inner)
	run := func(ctx context.Context, name string, f func(context.Context) error) {
		g.Go(func() error {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	run(inner, "fetch", w.fetcher.Run)
	run(inner, "restore", w.restores.Run)
	run(inner, "produce", w.producer.Run)
	run(inner, "marks", w.sendMarks)
	run(inner, "trim", w.trim)
	run(inner, "ends", w.watchEnds)
	for _, gl := range w.globals {
		run(inner, "table "+gl.table.View.Store, gl.run)
	}
	run(group, "group", w.member.Run)
	g.Go(func() error {
		defer stop()
		return w.manage(ctx, inner, leave)
	})
	return g.Wait()
}

// prepare checks that Kafka is there and has what the topology needs.
func (w *Worker) prepare(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, 4*requestTimeout)
	defer cancel()
	if err := w.cfg.Client.Ping(bounded); err != nil {
		return err
	}
	l, err := prepareTopics(bounded, &w.cfg)
	if err != nil {
		return err
	}
	w.layout = l
	w.tombstonesFor = 24 * time.Hour
	var compacted []string
	for _, s := range w.cfg.Topology.Subtopologies {
		for _, st := range storesOf(s) {
			compacted = append(compacted, schema.Changelog(w.cfg.App, st))
		}
	}
	for _, t := range w.cfg.Topology.Tables {
		compacted = append(compacted, t.Topic)
	}
	if len(compacted) == 0 {
		return nil
	}
	configs, err := w.cfg.Client.TopicConfigs(bounded, compacted...)
	if err != nil {
		return fmt.Errorf("read the configuration of the changelogs and tables: %w", err)
	}
	for _, c := range configs {
		if ms, err := strconv.ParseInt(c["delete.retention.ms"], 10, 64); err == nil {
			w.tombstonesFor = min(w.tombstonesFor, time.Duration(ms)*time.Millisecond)
		}
	}
	return nil
}

// lockFolder makes sure that no other process uses the state directory.
func lockFolder(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("state directory %s is in use by another process: stop it, or give this one a directory of its own", dir)
	}
	return func() { f.Close() }, nil
}

// manage applies assignments until ctx ends or inner does. Then it has every task
// commit, leaves the group, so that others take over while the files are written,
// and waits for these.
func (w *Worker) manage(ctx, inner context.Context, leave func()) error {
	var result error
	asking := newAsking()
loop:
	for {
		select {
		case <-ctx.Done():
			break loop
		case <-inner.Done():
			break loop
		case result = <-w.fatal:
			break loop
		case m := <-w.plans:
			w.apply(inner, m)
			asking.assigned(m)
		case <-w.warm:
			if asking.due(w.warming()) {
				w.log.Info("warm-ups have caught up; asking the group for their tasks")
				w.member.Rejoin()
			}
		}
	}
	began, open := time.Now(), w.allTasks()
	w.log.Info("stopping: the tasks commit, then the group is left", "tasks", len(w.membership().tasks), "copies", len(w.membership().others))
	for _, t := range open {
		t.cancel(errShutdown)
	}
	for _, t := range open {
		<-t.eased
	}
	leave()
	committed := time.Since(began)
	for _, t := range open {
		<-t.done
	}
	w.log.Info("stopped: the files are written", "committedAfter", committed.Round(time.Millisecond), "took", time.Since(began).Round(time.Millisecond))
	return result
}

// refused is called when a task, or the whole instance, must not go on.
func (w *Worker) refused(r *RefusedError) {
	if !r.AtStart {
		return
	}
	select {
	case w.fatal <- r:
	default:
	}
}

// apply gives the tasks their roles. One that is the owner's no more lingers, if
// the routes still name it, and is closed otherwise; one that comes back waits
// until its former life here has released its file.
func (w *Worker) apply(ctx context.Context, m *membership) {
	w.mu.Lock()
	defer w.mu.Unlock()
	subs := make(map[string]*schema.Subtopology)
	for _, s := range w.cfg.Topology.Subtopologies {
		subs[s.Name] = s
	}
	change := &changes{}
	roles := w.rolesIn(m, subs)
	for _, id := range slices.SortedFunc(maps.Keys(w.tasks), compareTasks) {
		t := w.tasks[id]
		if context.Cause(t.ctx) != nil {
			continue
		}
		role, some := roles[id]
		change.note(id, t.role(), role, some)
		if some {
			t.order(role, m.era)
		} else {
			t.cancel(errMoved)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(roles), compareTasks) {
		var before <-chan struct{}
		if old := w.tasks[id]; old != nil {
			if context.Cause(old.ctx) == nil {
				continue
			}
			before = old.done
		}
		if roles[id] == read.Lingering {
			continue // there is nothing here that could
		}
		t := newTask(ctx, w, id, subs[id.Subtopology])
		t.order(roles[id], m.era)
		w.tasks[id] = t
		change.gained(id, roles[id])
		go t.run(before)
	}
	before := w.routes
	w.routes = m.routes.routes(m.generation)
	close(w.newer)
	w.newer = make(chan struct{})
	told := []any{"generation", m.generation, "instances", len(w.routes.Instances), "tasks", len(m.tasks), "copies", len(m.others)}
	w.log.Info("assignment", slices.Concat(told, comings(before, w.routes), change.fields())...)
	w.story.begin(m.generation, change, roles)
}

// rolesIn are the roles of the tasks here under an assignment.
func (w *Worker) rolesIn(m *membership, subs map[string]*schema.Subtopology) map[taskID]read.Role {
	roles := make(map[taskID]read.Role)
	for id, role := range m.others {
		if s := subs[id.Subtopology]; s != nil && len(s.Feeds) > 0 {
			roles[id] = role
		}
	}
	for id := range m.tasks {
		roles[id] = read.Active
	}
	return roles
}

// task finds a task that is not closing; nil when it is not here.
func (w *Worker) task(id taskID) *task {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tasks[id]
	if t == nil || context.Cause(t.ctx) != nil {
		return nil
	}
	return t
}

func (w *Worker) allTasks() []*task {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.tasks))
}

// Routes are those of the newest assignment.
func (w *Worker) Routes() (*read.Routes, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.routes, w.newer
}

func (w *Worker) membership() *membership { return w.group.Load() }

// live says whether this is a member of the group that was heard of within a
// session timeout.
func (w *Worker) live() bool {
	s := w.member.Status()
	return s.Joined && time.Since(s.LastGood) <= w.cfg.SessionTimeout
}

// stateful is how many tasks with state this instance owns.
func (w *Worker) stateful() int {
	n := 0
	for id := range w.membership().tasks {
		if w.feeds(id.Subtopology) {
			n++
		}
	}
	return n
}

func (w *Worker) feeds(sub string) bool {
	i := slices.IndexFunc(w.cfg.Topology.Subtopologies, func(s *schema.Subtopology) bool { return s.Name == sub })
	return i >= 0 && len(w.cfg.Topology.Subtopologies[i].Feeds) > 0
}

// commitInterval grows with the tasks that commit here.
func (w *Worker) commitInterval() time.Duration {
	return max(w.cfg.CommitInterval, time.Duration(w.stateful())*5*time.Millisecond)
}

// overlayShare is a copy's part of the memory for what is not in files yet.
func (w *Worker) overlayShare() int64 {
	return w.cfg.OverlayBytes / int64(max(1, w.stateful()+len(w.membership().others)))
}

var errUnassigned = errors.New("the assignment names a topic that this schema does not read")
