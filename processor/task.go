package processor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
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
)

// task is a subtopology and a partition on this instance. Its loop (loop.go)
// is one goroutine and alone changes its state; others send it messages or read
// snapshots.
type task struct {
	w     *Worker
	id    taskID
	sub   *schema.Subtopology
	era   int // of the assignments that it is open under
	input broker.TopicPartition
	log   *slog.Logger

	ctx    context.Context // ends with why as its cause; nil until it is opened
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when run has returned
	cond   condition

	serving atomic.Pointer[serving]   // nil: reads are not answered
	forward atomic.Pointer[forwarder] // nil: nothing is forwarded now
	inbox   chan *broker.Chunk        // of one: a partition has one chunk under way
	asks    chan func(*life)          // messages that the loop runs
	trimmed atomic.Int64              // input position that is committed, for trimming
}

// serving is what reads of a running task need.
type serving struct {
	store        *store.Store
	incarnations [][16]byte    // of each store's changelog
	over         chan struct{} // closed when the life that serves has ended; nil for a table
}

func newTask(w *Worker, id taskID, sub *schema.Subtopology, era int) *task {
	t := &task{
		w: w, id: id, sub: sub, era: era,
		input: broker.TopicPartition{Topic: sub.TopicOf(w.cfg.App), Partition: id.Partition},
		log:   w.log.With("task", id.String()),
		done:  make(chan struct{}),
		inbox: make(chan *broker.Chunk, 1),
		asks:  make(chan func(*life), 16),
	}
	t.trimmed.Store(-1)
	return t
}

func (t *task) stateful() bool { return len(t.sub.Feeds) > 0 }

func (t *task) path() string {
	return filepath.Join(t.w.cfg.StateDir, t.w.cfg.App, t.id.String(), "state.db")
}

// run lives the task's lives until ctx ends or it is refused. before is closed
// when a former life of the same task on this instance has released its file.
func (t *task) run(ctx context.Context, before <-chan struct{}) {
	defer close(t.done)
	if before != nil {
		<-before
	}
	wait := newBackoff()
	var fault error
	for ctx.Err() == nil {
		t.cond.set(Starting, fault)
		began := time.Now()
		fault = t.live(ctx)
		if ctx.Err() != nil {
			break
		}
		var refused *RefusedError
		if errors.As(fault, &refused) {
			t.cond.set(Failed, refused)
			t.log.Error("task stopped", "reason", fault)
			t.w.refused(refused)
			<-ctx.Done()
			break
		}
		if time.Since(began) > time.Minute {
			wait = newBackoff()
		}
		t.log.Warn("task starts over", "reason", fault)
		t.w.metrics.restarts.Inc()
		wait.sleep(ctx)
	}
	t.cond.set(Closing, nil)
	t.cond.set(Closed, nil)
}

// life is one life of a task: from fencing the former owner to closing the
// store. All of it belongs to the loop.
type life struct {
	*task
	store     *store.Store // nil: a source task without views
	txn       *broker.Transaction
	agg       *aggregator
	rankings  *rankings
	sweeps    []sweep
	changelog []broker.TopicPartition // of each store
	positions []store.Position        // of each changelog
	fwd       *forwarder
	in        input
	letters   letters // bad records of this commit, or, without a store, of this chunk

	nonce    string       // of this life, in its transactions' stamps
	stamped  string       // the stamp that the group's offset has, as last known
	rec      commitRecord // at work: as the next commit will have it, but for the seq
	last     commitRecord // as last committed; not changed in place
	event    int64        // greatest event time seen
	latest   int64        // ms: no event time may be later; of the chunk at hand
	lastNew  int64        // ms: when records last came
	progress bool         // the record has news beyond rows: marks, positions
	lastIdle time.Time    // when a commit without rows last happened
	position int64        // next offset of the input
	end      int64        // of a source's input, when the life began

	writing  chan error // of one: a checkpoint under way reports here; nil: none
	nextSave time.Time
	failed   bool  // the last checkpoint; its runs are still frozen
	paused   bool  // not fetching: the overlay is full
	held     int64 // the offset that is committed, where there is no store
}

// input turns the records of a chunk into changes; one for sources, one for
// repartition topics.
type input interface {
	record(ctx context.Context, r *broker.Record) error
	// chunk is told when all records of one have been taken.
	chunk(ctx context.Context, c *broker.Chunk) error
}

// live is one life. It always ends with an error: ctx's when the task is to
// close, a RefusedError to stop for good, any other to start over.
func (t *task) live(ctx context.Context) (err error) {
	l := &life{task: t, event: noTime, nonce: rand.Text()[:12]}
	l.rec.Stream = noTime
	defer func() {
		if s := t.serving.Swap(nil); s != nil {
			close(s.over)
		}
		t.forward.Store(nil)
		t.w.hub.touched(storesOf(t.sub), t.id.Partition, read.Moved)
		if cerr := l.close(ctx); cerr != nil {
			t.log.Warn("store not closed in order", "err", cerr)
		}
	}()
	if err := l.start(ctx); err != nil {
		return err
	}
	t.w.fetcher.Add(t.input, l.position, t.deliver)
	defer t.w.fetcher.Remove(t.input)
	t.cond.set(Running, nil)
	t.log.Info("task runs", "position", l.position, "seq", l.rec.Seq)
	return l.loop(ctx)
}

// deliver is called by the fetcher, with one chunk under way at most.
func (t *task) deliver(c *broker.Chunk) { t.inbox <- c }

// close releases what a life holds; the committed runs are written.
func (l *life) close(ctx context.Context) error {
	select {
	case c := <-l.inbox:
		c.Release()
	default:
	}
	if l.store == nil {
		return nil
	}
	if l.writing != nil {
		if err := <-l.writing; err == nil {
			l.store.Installed()
		}
	}
	save, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err := l.store.Checkpoint(save)
	return errors.Join(err, l.store.Close())
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
