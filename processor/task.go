package processor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/processor/store"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
)

// Why a task's context ends, as its cause.
var (
	errMoved    = errors.New("the task moved to another instance")
	errShutdown = errors.New("the instance is stopping")
	// errReopen: what is in memory may differ from what is committed; the task
	// starts over from its changelogs.
	errReopen = errors.New("reopening from the changelogs")
	// errFile: the file must be closed and opened anew.
	errFile = errors.New("reopening the store file")
)

// task is a subtopology and a partition on this instance. Its loop (loop.go)
// is one goroutine and alone changes its state; others send it messages or read
// snapshots.
type task struct {
	w     *Worker
	id    taskID
	sub   *schema.Subtopology
	input broker.TopicPartition
	log   *slog.Logger

	ctx    context.Context // ends with why as its cause
	cancel context.CancelCauseFunc
	eased  chan struct{} // closed when the instance may leave the group
	done   chan struct{} // closed when run has returned
	cond   condition

	mu    sync.Mutex // guards phase
	phase *phase

	serving atomic.Pointer[serving]   // nil: reads are not answered
	leading atomic.Bool               // it is the owner's, and runs
	held    atomic.Pointer[heldCopy]  // how far the copy is; nil: it is not open
	forward atomic.Pointer[forwarder] // nil: nothing is forwarded now
	inbox   chan *broker.Chunk        // of one: a partition has one chunk under way
	asks    chan func(*taskCopy)      // messages that the loop runs
	trimmed atomic.Int64              // input position that is committed, for trimming
}

// phase is the time in which a task has one role: as the owner in one era of the
// assignments, or as any other copy.
type phase struct {
	ctx  context.Context
	end  context.CancelCauseFunc
	era  int // of the owner's
	role atomic.Int32
}

func (p *phase) active() bool { return p.is() == read.Active }

func (p *phase) is() read.Role { return read.Role(p.role.Load()) }

// order gives the task a role. The owner's phase ends with its era: another may
// have owned the task meanwhile. Other roles differ in what is told of them, not
// in what is done.
//
// false: the task has ended, and another must be opened.
func (t *task) order(role read.Role, era int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return false
	}
	if p := t.phase; p != nil {
		if role != read.Active && !p.active() {
			p.role.Store(int32(role))
			return true
		}
		if role == read.Active && p.active() && p.era == era {
			return true
		}
	}
	p := &phase{era: era}
	p.role.Store(int32(role))
	p.ctx, p.end = context.WithCancelCause(t.ctx)
	if t.phase != nil {
		t.phase.end(errMoved)
	}
	t.phase = p
	return true
}

// endLingering ends the task, unless it has been given another role meanwhile.
func (t *task) endLingering() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase.is() != read.Lingering {
		return false
	}
	t.cancel(errMoved)
	return true
}

func (t *task) current() *phase {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phase
}

// role is what the assignment wants of the task.
func (t *task) role() read.Role { return t.current().is() }

// shownRole is what the copy is to those who read it: an owner that does not run
// yet answers as a standby.
func (t *task) shownRole() read.Role {
	if t.leading.Load() {
		return read.Active
	}
	if r := t.role(); r != read.Active {
		return r
	}
	return read.Standby
}

// serving is what reads of a running task need.
type serving struct {
	store        *store.Store
	incarnations [][16]byte    // of each store's changelog
	over         chan struct{} // closed when the life that serves has ended; nil for a table
}

func newTask(ctx context.Context, w *Worker, id taskID, sub *schema.Subtopology) *task {
	t := &task{
		w: w, id: id, sub: sub,
		input: broker.TopicPartition{Topic: sub.TopicOf(w.cfg.App), Partition: id.Partition},
		log:   w.log.With("task", id.String()),
		eased: make(chan struct{}),
		done:  make(chan struct{}),
		inbox: make(chan *broker.Chunk, 1),
		asks:  make(chan func(*taskCopy), 16),
	}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	t.trimmed.Store(-1)
	return t
}

func (t *task) stateful() bool { return len(t.sub.Feeds) > 0 }

func (t *task) path() string {
	return filepath.Join(t.w.cfg.StateDir, t.w.cfg.App, t.id.String(), "state.db")
}

// run lives the task's lives until its context ends. before is closed when a
// former life of the same task on this instance has released its file.
func (t *task) run(before <-chan struct{}) {
	defer close(t.done)
	ease := sync.OnceFunc(func() { close(t.eased) })
	defer ease()
	if before != nil {
		<-before
	}
	wait := newBackoff()
	var fault error
	for t.ctx.Err() == nil {
		t.cond.set(Starting, fault)
		p := t.current()
		began := time.Now()
		fault = t.live(ease)
		if t.ctx.Err() != nil {
			break
		}
		var refused *RefusedError
		if errors.As(fault, &refused) {
			t.cond.set(Failed, refused)
			t.log.Error("task stopped", "reason", fault)
			t.w.story.failed(t.id)
			t.w.refused(refused)
			<-p.ctx.Done() // another role may do
			fault = nil
			continue
		}
		if time.Since(began) > time.Minute {
			wait = newBackoff()
		}
		t.w.often.tell(t.log, slog.LevelWarn, "task opens its file anew", "reason", fault)
		t.w.metrics.restarts.Inc()
		wait.sleep(t.ctx)
	}
	t.cond.set(Closing, nil)
	t.cond.set(Closed, nil)
}

// live opens the copy and goes through the phases of the task with it, until its
// context ends, it is refused, or the file must be opened anew. ease is called
// when nothing more will be committed.
func (t *task) live(ease func()) error {
	c, err := t.openCopy()
	if err != nil {
		return err
	}
	defer func() {
		if t.ctx.Err() != nil {
			ease()
		}
		if cerr := c.close(t.ctx); cerr != nil {
			t.log.Warn("store not closed in order", "err", cerr)
		}
		t.w.keep(t.id, t.held.Swap(nil))
	}()
	wait := newBackoff()
	for {
		p := t.current()
		began := time.Now()
		if p.active() {
			err = t.lead(p.ctx, c)
		} else {
			err = c.follow(p.ctx)
		}
		var refused *RefusedError
		switch {
		case t.ctx.Err() != nil:
			return t.ctx.Err()
		case p.ctx.Err() != nil:
			t.cond.set(Starting, nil)
			continue // another role, or another era
		case errors.As(err, &refused), errors.Is(err, errFile), t.stateful() && c.store == nil:
			return err
		}
		if !errors.Is(err, errMoved) { // the next order says where it went
			t.w.often.tell(t.log, slog.LevelWarn, "task starts over", "reason", err)
			t.w.metrics.restarts.Inc()
		}
		t.cond.set(Starting, err)
		if time.Since(began) > time.Minute {
			wait = newBackoff()
		}
		wait.sleep(p.ctx)
	}
}

// lead processes the task's input as its owner. It always ends with an error.
func (t *task) lead(ctx context.Context, c *taskCopy) error {
	l := &life{taskCopy: c, event: noTime, nonce: rand.Text()[:12]}
	l.rec.Stream = noTime
	recycled := c.whole
	_, fault := t.cond.get()
	c.restored = 0
	defer func() {
		t.forward.Store(nil)
		if t.leading.Swap(false) {
			t.w.hub.touched(storesOf(t.sub), t.id.Partition, read.Moved)
		}
	}()
	if err := l.start(ctx); err != nil {
		return err
	}
	t.w.fetcher.Add(t.input, l.position, t.deliver)
	defer t.undeliver()
	t.cond.set(Running, nil)
	t.leading.Store(true)
	if fields := []any{"topic", t.input.Topic, "offset", l.position, "seq", l.rec.Seq, "restored", c.restored}; t.w.story.runs(t.id, recycled, c.restored) || fault == nil {
		t.log.Debug("task runs", fields...)
	} else {
		t.w.often.tell(t.log, slog.LevelInfo, "task runs again", fields...)
	}
	return l.loop(ctx)
}

// deliver is called by the fetcher, with one chunk under way at most.
func (t *task) deliver(c *broker.Chunk) { t.inbox <- c }

// undeliver ends the fetching of the input.
func (t *task) undeliver() {
	t.w.fetcher.Remove(t.input)
	select {
	case c := <-t.inbox:
		c.Release()
	default:
	}
}

// life is the time of a task as the owner's: from fencing the former owner to the
// end of its loop. All of it belongs to the loop.
type life struct {
	*taskCopy
	txn     *broker.Transaction
	agg     *aggregator
	fwd     *forwarder
	in      input
	letters letters // bad records of this commit, or, without a store, of this chunk

	nonce    string       // of this life, in its transactions' stamps
	stamped  string       // the stamp that the group's offset has, as last known
	rec      commitRecord // at work: as the next commit will have it, but for the seq
	event    int64        // greatest event time seen
	latest   int64        // ms: no event time may be later; of the chunk at hand
	lastNew  int64        // ms: when records last came
	progress bool         // the record has news beyond rows: marks, positions
	lastIdle time.Time    // when a commit without rows last happened
	position int64        // next offset of the input
	end      int64        // of a source's input, as known

	paused bool // not fetching: the overlay is full
	stuck  stuck
	held   int64 // the offset that is committed, where there is no store
}

// input turns the records of a chunk into changes; one for sources, one for
// repartition topics.
type input interface {
	record(ctx context.Context, r *broker.Record) error
	// chunk is told when all records of one have been taken.
	chunk(ctx context.Context, c *broker.Chunk) error
}

// backoff waits longer each time, up to five seconds.
type backoff struct{ next time.Duration }

func newBackoff() *backoff { return &backoff{next: 100 * time.Millisecond} }

func (b *backoff) sleep(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(b.next):
	}
	b.next = min(2*b.next, 5*time.Second)
}

// setPosition notes the next offset of the input to be read.
func (l *life) setPosition(next int64) {
	l.position = next
	l.rec.Position = next
}

// fault makes the error of a chunk one to act upon.
func (l *life) fault(ctx context.Context, c *broker.Chunk) error {
	switch {
	case errors.Is(c.Err, broker.ErrOffsetOutOfRange):
		return l.outOfRange(ctx)
	case errors.Is(c.Err, broker.ErrUnknownTopic), errors.Is(c.Err, broker.ErrUnknownTopicID):
		return refuse(l.w.cfg.resetHint(), "input %s was deleted or created anew", l.input.Topic)
	}
	return fmt.Errorf("fetch %s: %w", l.input, c.Err)
}

// outOfRange: the input was trimmed below the position, or shortened.
func (l *life) outOfRange(ctx context.Context) error {
	first, err := l.w.cfg.Client.Offsets(ctx, []broker.TopicPartition{l.input}, broker.Earliest)
	if err != nil {
		return err
	}
	start := first[l.input]
	if start <= l.position {
		return refuse(l.w.cfg.resetHint(), "input %s ends before position %d: it was shortened or created anew", l.input, l.position)
	}
	if !l.w.cfg.SkipLost {
		return refuse("set onLoss: skip to go on without them", "input %s was deleted up to offset %d: %d records are lost", l.input, start, start-l.position)
	}
	l.log.Error("input was deleted before it was read", "lost", start-l.position, "offset", start)
	l.w.metrics.lost.Add(float64(start - l.position))
	l.setPosition(start)
	l.progress = true
	l.w.fetcher.Resume(l.input, start)
	return nil
}
