package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// ProducerConfig bounds a producer. Zero values mean the default.
type ProducerConfig struct {
	Linger          time.Duration // wait before sending, so that more partitions share a request; default 0
	QueueBytes      int           // batches queued and in flight, default 32 MiB
	DeliveryTimeout time.Duration // from Produce to giving up, default 30s
	Logger          *slog.Logger
}

// Producer is an idempotent producer shared by many tasks. Each partition has
// one batch in flight and nothing later is sent before its acknowledgement, so
// the order of Produce calls is the order in the log and, whatever answers are
// lost, no batch is there twice. When a batch is given up, all that are queued
// behind it fail with it and the partition goes on with a new producer id.
type Producer struct {
	client *Client
	cfg    ProducerConfig
	wake   chan struct{} // 1 so that a signal is never lost

	mu     sync.Mutex // guards what follows
	queues map[TopicPartition]*queue
	order  []*queue // as created: sending is fair and repeatable
	bytes  int
	space  chan struct{} // closed and replaced when bytes shrink
	closed bool

	// The rest is Run's own.
	identity *producer // nil: to be asked for
	asking   bool
	askAgain time.Time
	askPause backoff
	busy     map[int32]bool // leaders with a request in flight
	events   chan event     // from the goroutines Run started; Run reads until they ended
}

// queue is one partition's. Batches are guarded by Producer.mu, the rest is Run's.
type queue struct {
	tp       TopicPartition
	batches  []*queued
	inFlight bool
	by       *producer // nil: takes the current identity before the next batch
	sequence int32
	retryAt  time.Time
	pause    backoff
}

// event is what a goroutine of the producer has found out.
type event struct {
	node     int32
	sent     []*queue // nil: an identity was asked for
	results  map[TopicPartition]produced
	identity producer
	err      error
}

// NewProducer returns a producer that sends nothing until Run.
func (c *Client) NewProducer(cfg ProducerConfig) *Producer {
	if cfg.QueueBytes <= 0 {
		cfg.QueueBytes = 32 << 20
	}
	if cfg.DeliveryTimeout <= 0 {
		cfg.DeliveryTimeout = 30 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = c.log
	}
	return &Producer{
		client: c, cfg: cfg, wake: make(chan struct{}, 1), space: make(chan struct{}),
		queues: make(map[TopicPartition]*queue), busy: make(map[int32]bool), events: make(chan event),
	}
}

// Produce queues the records for tp; the builder may be reset and reused once it
// returned. It blocks while the queue is full, until ctx ends: then, and after
// Run ended, it returns an error and done is not called. Otherwise done is called
// exactly once, from Run's goroutine: with the offset of the first record (-1
// where the broker does not tell), or with ErrGaveUp or ErrClosed, when whether
// the records were written is unknown. done must not block nor call Produce.
func (p *Producer) Produce(ctx context.Context, tp TopicPartition, records *BatchBuilder, done func(base int64, err error)) error {
	return p.produce(ctx, tp, records, fate{done: done})
}

func (p *Producer) produce(ctx context.Context, tp TopicPartition, records *BatchBuilder, f fate) error {
	if records.Len() == 0 {
		return errEmptyBatch
	}
	size := records.Size()
	p.mu.Lock()
	for !p.closed && p.bytes > 0 && p.bytes+size > p.cfg.QueueBytes {
		space := p.space
		p.mu.Unlock()
		select {
		case <-space:
		case <-ctx.Done():
			return ctx.Err()
		}
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case f.from != nil && f.from.gone:
		return fmt.Errorf("%w before, of the same sender", ErrGaveUp)
	}
	q := p.queues[tp]
	if q == nil {
		q = &queue{tp: tp}
		p.queues[tp] = q
		p.order = append(p.order, q)
	}
	p.bytes += size
	if n := len(q.batches); n > 0 && q.batches[n-1].join(records, f) {
		return nil
	}
	q.batches = append(q.batches, &queued{
		records: records.clone(), size: size, fates: []fate{f}, deadline: time.Now().Add(p.cfg.DeliveryTimeout),
	})
	signal(p.wake)
	return nil
}

// Run sends until ctx ends; then it fails what is queued, waits for its
// goroutines and returns nil.
func (p *Producer) Run(ctx context.Context) error {
	var senders sync.WaitGroup
	defer p.shut()
	defer senders.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p.expire()
		timer.Reset(p.sendDue(ctx, &senders))
		select {
		case <-ctx.Done():
			p.drain(&senders)
			return nil
		case <-timer.C:
		case <-p.wake:
			if p.cfg.Linger > 0 && sleep(ctx, p.cfg.Linger) != nil {
				continue
			}
		case e := <-p.events:
			p.handle(e)
		}
	}
}

// drain reads the events of goroutines that are ending, so that none blocks;
// acknowledgements among them still count.
func (p *Producer) drain(senders *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() { senders.Wait(); close(ended) }()
	for {
		select {
		case e := <-p.events:
			p.handle(e)
		case <-ended:
			return
		}
	}
}

// shut refuses further batches and fails those that are left.
func (p *Producer) shut() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	for _, q := range p.snapshot() {
		p.fail(q, ErrClosed)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.space)
	p.space = make(chan struct{})
}

func (p *Producer) snapshot() []*queue {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.order[:len(p.order):len(p.order)]
}

func (p *Producer) head(q *queue) *queued {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(q.batches) == 0 {
		return nil
	}
	return q.batches[0]
}

// expire gives up on partitions whose first batch waited for too long. One in
// flight is waited for: its request has a deadline of its own.
func (p *Producer) expire() {
	now := time.Now()
	for _, q := range p.snapshot() {
		if b := p.head(q); b != nil && !q.inFlight && !now.Before(b.deadline) {
			p.giveUp(q, fmt.Errorf("not acknowledged within %v", p.cfg.DeliveryTimeout))
		}
	}
}

// sendDue starts a request to every idle leader that has batches due, and
// returns when to look again at the latest.
func (p *Producer) sendDue(ctx context.Context, senders *sync.WaitGroup) time.Duration {
	now, pause := time.Now(), time.Hour
	var due []*queue
	var topics []string
	for _, q := range p.snapshot() {
		b := p.head(q)
		if b == nil || q.inFlight {
			continue
		}
		pause = min(pause, max(b.deadline.Sub(now), time.Millisecond))
		if wait := q.retryAt.Sub(now); wait > 0 {
			pause = min(pause, wait)
			continue
		}
		due = append(due, q)
		topics = append(topics, q.tp.Topic)
	}
	if len(due) == 0 {
		return pause
	}
	if p.identity == nil {
		return min(pause, p.ask(ctx, now, senders))
	}
	found, err := p.client.lookup(ctx, topics)
	perLeader := make(map[int32][]*queue)
	for _, q := range due {
		var leader Partition
		lerr := err
		if lerr == nil {
			leader, lerr = found[q.tp.Topic].leader(q.tp.Partition)
		}
		switch {
		case lerr != nil:
			p.later(q, lerr)
			pause = min(pause, time.Until(q.retryAt))
		case !p.busy[leader.Leader]:
			perLeader[leader.Leader] = append(perLeader[leader.Leader], q)
		}
	}
	for node, queues := range perLeader {
		p.dispatch(ctx, node, queues, senders)
	}
	return max(pause, time.Millisecond)
}

// ask starts asking for a producer id, unless that is under way or has just
// failed.
func (p *Producer) ask(ctx context.Context, now time.Time, senders *sync.WaitGroup) time.Duration {
	if p.asking {
		return time.Hour
	}
	if wait := p.askAgain.Sub(now); wait > 0 {
		return wait
	}
	p.asking = true
	senders.Go(func() {
		by, err := p.client.initProducer(ctx, "", 0)
		p.events <- event{identity: by, err: err}
	})
	return time.Hour
}

// dispatch sends the first batch of each queue to their leader. The sender encodes
// those that go for the first time.
func (p *Producer) dispatch(ctx context.Context, node int32, queues []*queue, senders *sync.WaitGroup) {
	batches := make([]sending, len(queues))
	for i, q := range queues {
		if q.by == nil {
			q.by, q.sequence = p.identity, 0
		}
		q.inFlight = true
		p.mu.Lock()
		q.batches[0].sealed = true
		batches[i] = sending{q.tp, q.batches[0], *q.by, q.sequence}
		p.mu.Unlock()
	}
	p.busy[node] = true
	senders.Go(func() {
		e := event{node: node, sent: queues}
		var encoded []encoded
		if encoded, e.err = p.encodeAll(batches); e.err == nil {
			e.results, _, e.err = p.client.produce(ctx, node, "", encoded)
		}
		p.events <- e
	})
}

// sending is a sealed batch, and who sends it.
type sending struct {
	tp       TopicPartition
	batch    *queued
	by       producer
	sequence int32
}

func (p *Producer) encodeAll(all []sending) ([]encoded, error) {
	batches := make([]encoded, len(all))
	for i, s := range all {
		if b := s.batch; b.records != nil {
			e, err := p.client.encode(s.tp, b.records)
			if err != nil {
				return nil, err
			}
			b.encoded, b.records = e, nil
		}
		stamp(s.batch.bytes, s.by, s.sequence, false)
		batches[i] = s.batch.encoded
	}
	return batches, nil
}

// handle takes in what a goroutine found out.
func (p *Producer) handle(e event) {
	if e.sent == nil {
		p.asking = false
		if e.err != nil {
			p.askPause.next = min(max(2*p.askPause.next, minBackoff), maxBackoff)
			p.askAgain = time.Now().Add(p.askPause.next)
			p.cfg.Logger.Warn("asking for a producer id", "err", e.err)
			return
		}
		p.identity, p.askPause = &e.identity, backoff{}
		return
	}
	p.busy[e.node] = false
	for _, q := range e.sent {
		q.inFlight = false
		err, base := e.err, int64(-1)
		if err == nil {
			err, base = e.results[q.tp].err, e.results[q.tp].base
		}
		switch {
		case err == nil || isCode(err, ErrDuplicateSequence):
			p.acknowledged(q, base)
		case Retriable(err) || isContext(err) || errors.Is(err, ErrClosed) || errors.Is(err, ErrCorrupt):
			p.later(q, err)
		default:
			p.giveUp(q, err)
		}
	}
}

// acknowledged removes the first batch and reports it.
func (p *Producer) acknowledged(q *queue, base int64) {
	b := p.head(q)
	q.sequence = addSequence(q.sequence, b.n)
	q.pause, q.retryAt = backoff{}, time.Time{}
	p.mu.Lock()
	q.batches[0] = nil
	q.batches = q.batches[1:]
	p.mu.Unlock()
	p.free(b.size)
	b.end(base, nil)
}

// later lets the first batch be sent again, the same with the same sequence.
func (p *Producer) later(q *queue, err error) {
	p.client.leaders.forget(q.tp.Topic)
	q.pause.next = min(max(2*q.pause.next, minBackoff), maxBackoff)
	q.retryAt = time.Now().Add(q.pause.next)
	p.cfg.Logger.Debug("producing again", "topic", q.tp.Topic, "partition", q.tp.Partition, "err", err)
}

// giveUp fails every batch of a partition. Whether its first one was written is
// not known, so the sequence numbers of its producer id cannot be gone on with:
// the partition takes a new one.
func (p *Producer) giveUp(q *queue, cause error) {
	p.cfg.Logger.Warn("giving up on a batch", "topic", q.tp.Topic, "partition", q.tp.Partition, "err", cause)
	if q.by == p.identity {
		p.identity = nil
	}
	q.by = nil
	q.pause, q.retryAt = backoff{}, time.Time{}
	p.fail(q, fmt.Errorf("%w: %v: %w", ErrGaveUp, q.tp, cause))
}

// fail ends every batch of a partition with err. Their senders are put off in the
// same moment: nothing of theirs comes to lie behind the gap.
func (p *Producer) fail(q *queue, err error) {
	p.mu.Lock()
	batches := q.batches
	q.batches = nil
	for _, b := range batches {
		for _, f := range b.fates {
			if f.from != nil {
				f.from.gone = true
			}
		}
	}
	p.mu.Unlock()
	for _, b := range batches {
		b.end(-1, err)
		p.free(b.size)
	}
}

func (p *Producer) free(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes -= n
	close(p.space)
	p.space = make(chan struct{})
}
