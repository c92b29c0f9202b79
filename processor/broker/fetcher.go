package broker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// FetcherConfig says how a fetcher reads. Zero values mean the default.
type FetcherConfig struct {
	Isolation         Isolation
	MaxWait           time.Duration // a long poll's, default 500ms
	MinBytes          int32         // default 1
	MaxBytes          int32         // of one answer, default 16 MiB
	PartitionMaxBytes int32         // of one chunk, default 1 MiB; a larger batch comes whole
	Logger            *slog.Logger
}

const (
	// shortWait is how long the second request to a leader may wait; see node.
	shortWait = 25 * time.Millisecond
	// emptyInterval is how often a partition that has nothing new says so.
	emptyInterval = time.Second
)

// Fetcher reads partitions by long polls: all ready partitions of one leader
// share a request. A partition is ready from Add or Resume until its next chunk
// is delivered, so a slow consumer holds up itself alone, and what is in memory
// is bounded by one chunk per partition and one answer per request.
//
// Leaders that move are followed; connections that break are replaced. Only what
// retrying cannot cure is delivered as a chunk with Err.
//
// Lock order: partition.delivery before Fetcher.mu.
type Fetcher struct {
	client  *Client
	cfg     FetcherConfig
	log     *slog.Logger
	buffers bufferPool
	wake    chan struct{} // for the router; 1 so that a signal is never lost

	mu         sync.Mutex // guards what follows and the fields of partitions that say so
	partitions map[TopicPartition]*partition
	homeless   []*partition // to be routed
	nodes      map[int32]*node
}

// partition is a partition being fetched.
//
//	Add ─► homeless ─► ready ─► asked ─► delivered
//	          ▲          ▲        │ │        │
//	          └─ moved ──┼────────┘ │        │
//	                     ├── empty ─┘        │
//	                     └── Resume ─────────┘
type partition struct {
	tp      TopicPartition
	deliver func(*Chunk)

	delivery sync.Mutex // held while deliver runs; guards removed
	removed  bool

	// The rest is guarded by Fetcher.mu.
	state    partitionState
	position int64
	topic    Topic     // its ID is pinned on the first look-up
	pinned   bool      // topic is set
	retryAt  time.Time // homeless: not before
	backoff  backoff
	troubled time.Time // since when nothing succeeded; zero: all is well

	epoch         int32     // of the leader that it was last settled with
	sure          bool      // that leader has told its end since
	told          time.Time // last delivery
	highWatermark int64     // as told
	lastStable    int64     // as told
}

type partitionState int8

const (
	homeless partitionState = iota
	ready
	asked
	delivered
)

func (s partitionState) String() string {
	return [...]string{"homeless", "ready", "asked", "delivered"}[s]
}

// NewFetcher returns a fetcher that does nothing until Run. Partitions may be
// added before.
func (c *Client) NewFetcher(cfg FetcherConfig) *Fetcher {
	if cfg.MaxWait <= 0 {
		cfg.MaxWait = 500 * time.Millisecond
	}
	if cfg.MinBytes <= 0 {
		cfg.MinBytes = 1
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = 16 << 20
	}
	if cfg.PartitionMaxBytes <= 0 {
		cfg.PartitionMaxBytes = 1 << 20
	}
	if cfg.Logger == nil {
		cfg.Logger = c.log
	}
	return &Fetcher{
		client: c, cfg: cfg, log: cfg.Logger, wake: make(chan struct{}, 1),
		partitions: make(map[TopicPartition]*partition), nodes: make(map[int32]*node),
	}
}

// Add fetches tp from position on. deliver is called from a fetch loop and must
// not block; it owns the chunk. After a delivery, an error included, the
// partition rests until Resume. A chunk without records is delivered when an end
// offset changed, and otherwise about once a second, so that the receiver knows
// the end as of a recent time. A partition that was added before is replaced.
func (f *Fetcher) Add(tp TopicPartition, position int64, deliver func(*Chunk)) {
	f.Remove(tp)
	f.mu.Lock()
	p := &partition{tp: tp, deliver: deliver, position: position, highWatermark: -1, lastStable: -1}
	f.partitions[tp] = p
	f.homeless = append(f.homeless, p)
	f.mu.Unlock()
	signal(f.wake)
}

// Resume makes the partition ready again, at position. It may be called from
// deliver. For a partition that is not resting or not there it does nothing. The
// topic's incarnation stays the one that was first found: reading on in a topic
// that was created anew takes Remove and Add.
func (f *Fetcher) Resume(tp TopicPartition, position int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.partitions[tp]
	if p == nil || p.state != delivered {
		return
	}
	p.position = position
	f.route(p)
}

// Remove ends fetching; once it returned, deliver is not called any more. It
// waits for a deliver in progress and so must not be called from deliver, nor
// with a lock held that deliver takes.
func (f *Fetcher) Remove(tp TopicPartition) {
	f.mu.Lock()
	p := f.partitions[tp]
	delete(f.partitions, tp)
	f.mu.Unlock()
	if p == nil {
		return
	}
	p.delivery.Lock()
	p.removed = true
	p.delivery.Unlock()
}

// Run fetches until ctx ends and returns after its loops did. It returns nil.
func (f *Fetcher) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	defer loops.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		case <-timer.C:
		}
		timer.Reset(f.routeAll(ctx, &loops))
	}
}

// signal wakes a loop that has not yet been woken.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// routeAll finds the leaders of homeless partitions that are due. It returns
// when to look again at the latest.
func (f *Fetcher) routeAll(ctx context.Context, loops *sync.WaitGroup) time.Duration {
	due, pause := f.due()
	if len(due) == 0 {
		return pause
	}
	names := make([]string, 0, len(due))
	for _, p := range due {
		names = append(names, p.tp.Topic)
	}
	slices.Sort(names)
	topics, err := f.client.lookup(ctx, slices.Compact(names))
	if ctx.Err() != nil || f.client.closed() {
		return time.Hour // nothing more will come
	}
	if err != nil {
		f.client.complaints.warn(f.log, "looking up the leaders of partitions", "partitions", len(due), "err", err)
	}
	var failed []failure
	f.mu.Lock()
	for _, p := range due {
		perr := err
		if perr == nil {
			perr = f.settle(ctx, p, topics[p.tp.Topic], loops)
		}
		if perr != nil {
			failed = append(failed, failure{p, perr})
		}
	}
	f.mu.Unlock()
	for _, x := range failed {
		f.trouble(x.p, x.err)
	}
	if due, pause = f.due(); len(due) > 0 {
		return 0 // they came due while leaders were looked up
	}
	return pause
}

type failure struct {
	p   *partition
	err error
}

// due takes the homeless partitions whose time has come, unless they are
// removed, and tells how long until the next one's.
func (f *Fetcher) due() (due []*partition, pause time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.homeless = slices.DeleteFunc(f.homeless, func(p *partition) bool { return f.partitions[p.tp] != p })
	now, pause := time.Now(), time.Hour
	for _, p := range f.homeless {
		if wait := p.retryAt.Sub(now); wait > 0 {
			pause = min(pause, wait)
		} else {
			due = append(due, p)
		}
	}
	return due, pause
}

// settle hands a homeless partition to its leader's loops, starting them for a
// new leader. f.mu is held.
func (f *Fetcher) settle(ctx context.Context, p *partition, t Topic, loops *sync.WaitGroup) error {
	leader, err := t.leader(p.tp.Partition)
	if err != nil {
		return err
	}
	if p.pinned && t.ID != p.topic.ID {
		return fmt.Errorf("topic %s was deleted and created anew: %w", p.tp.Topic, ErrUnknownTopicID)
	}
	if !p.pinned || leader.Epoch != p.epoch {
		p.epoch, p.sure = leader.Epoch, false
	}
	p.topic, p.pinned = t, true
	n := f.nodes[leader.Leader]
	if n == nil {
		n = newNode(f, leader.Leader)
		f.nodes[leader.Leader] = n
		loops.Go(func() { n.loop(ctx, n.long) })
		loops.Go(func() { n.loop(ctx, n.short) })
	}
	f.homeless = slices.DeleteFunc(f.homeless, func(q *partition) bool { return q == p })
	p.state = ready
	n.push(p)
	return nil
}

// route makes a partition ready at the leader last known. f.mu is held.
func (f *Fetcher) route(p *partition) {
	if p.pinned && p.troubled.IsZero() {
		if leader, err := p.topic.leader(p.tp.Partition); err == nil {
			p.state = ready
			f.nodes[leader.Leader].push(p)
			return
		}
	}
	p.state = homeless
	if !slices.Contains(f.homeless, p) {
		f.homeless = append(f.homeless, p)
	}
	signal(f.wake)
}

// trouble deals with an error of one partition: what retrying may cure sends it
// to be routed anew after a pause, everything else is delivered.
func (f *Fetcher) trouble(p *partition, err error) {
	f.client.leaders.forget(p.tp.Topic)
	f.mu.Lock()
	now := time.Now()
	if p.troubled.IsZero() {
		p.troubled = now
	}
	unknown := isCode(err, ErrUnknownTopic, ErrUnknownTopicID, ErrInconsistentTopicID)
	hopeless := !Retriable(err) && !isContext(err) || unknown && now.Sub(p.troubled) > unknownTopicPatience
	if !hopeless {
		p.state = homeless
		p.backoff.next = min(max(2*p.backoff.next, minBackoff), maxBackoff)
		p.retryAt = now.Add(p.backoff.next)
		if f.partitions[p.tp] == p && !slices.Contains(f.homeless, p) {
			f.homeless = append(f.homeless, p)
		}
		f.mu.Unlock()
		signal(f.wake)
		return
	}
	f.homeless = slices.DeleteFunc(f.homeless, func(q *partition) bool { return q == p })
	chunk := &Chunk{TopicPartition: p.tp, Start: p.position, HighWatermark: -1, LastStable: -1, LogStart: -1, At: now, Err: err}
	f.mu.Unlock()
	f.hand(p, chunk)
}

// well ends the trouble of a partition. f.mu is held.
func (p *partition) well() {
	p.troubled, p.backoff, p.retryAt = time.Time{}, backoff{}, time.Time{}
}

// hand delivers a chunk, unless the partition was removed meanwhile.
func (f *Fetcher) hand(p *partition, chunk *Chunk) {
	f.mu.Lock()
	p.state = delivered
	p.told, p.highWatermark, p.lastStable = chunk.At, chunk.HighWatermark, chunk.LastStable
	p.well()
	f.mu.Unlock()
	p.delivery.Lock()
	defer p.delivery.Unlock()
	if p.removed {
		chunk.Release()
		return
	}
	p.deliver(chunk)
}
