package broker

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// node fetches from one leader with two loops, lanes, that share its ready
// partitions. The long lane polls for MaxWait. A partition that becomes ready
// meanwhile does not wait for it: the short lane asks for it at once, but only
// while the long lane is out, and for shortWait at most, after which the long
// lane's next poll takes its partitions over. So an idle leader costs one request
// per MaxWait, and a ready partition waits about shortWait at the worst.
type node struct {
	fetcher *Fetcher
	id      int32
	long    *lane
	short   *lane

	// guarded by Fetcher.mu
	ready []*partition // in the order to ask for: the first one's batch comes whole
}

type lane struct {
	wait  time.Duration
	wake  chan struct{} // 1 so that a signal is never lost
	short bool
	busy  bool   // guarded by Fetcher.mu
	frame []byte // the last answer's memory, the loop's own
}

func newNode(f *Fetcher, id int32) *node {
	return &node{
		fetcher: f, id: id,
		long:  &lane{wait: f.cfg.MaxWait, wake: make(chan struct{}, 1)},
		short: &lane{wait: min(shortWait, f.cfg.MaxWait), wake: make(chan struct{}, 1), short: true},
	}
}

// push adds a ready partition. Fetcher.mu is held.
func (n *node) push(p *partition) {
	n.ready = append(n.ready, p)
	n.stir()
}

// stir wakes the lane whose turn it is. Fetcher.mu is held.
func (n *node) stir() {
	switch {
	case len(n.ready) == 0:
	case !n.long.busy && !n.short.busy:
		signal(n.long.wake)
	case !n.short.busy:
		signal(n.short.wake)
	}
}

// take gives a lane every ready partition, when it is its turn.
func (n *node) take(l *lane) []*partition {
	f := n.fetcher
	f.mu.Lock()
	defer f.mu.Unlock()
	l.busy = false
	if !l.short && n.short.busy || l.short && !n.long.busy {
		n.stir()
		return nil
	}
	var taken []*partition
	for _, p := range n.ready {
		if f.partitions[p.tp] == p {
			p.state = asked
			taken = append(taken, p)
		}
	}
	n.ready = nil
	l.busy = len(taken) > 0
	return taken
}

func (n *node) loop(ctx context.Context, l *lane) {
	for {
		parts := n.take(l)
		if len(parts) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-l.wake:
			}
			continue
		}
		n.poll(ctx, l, parts)
		if ctx.Err() != nil {
			return
		}
	}
}

// poll makes one request and deals with its answer.
func (n *node) poll(ctx context.Context, l *lane, parts []*partition) {
	f := n.fetcher
	targets := make([]fetchTarget, len(parts))
	n.makeSure(ctx, parts)
	f.mu.Lock()
	for i, p := range parts {
		targets[i] = fetchTarget{id: p.topic.ID, partition: p.tp.Partition, epoch: p.epoch, position: p.position, sure: p.sure}
	}
	f.mu.Unlock()
	answers, err := f.client.fetch(ctx, n.id, f.cfg, l, targets)
	if ctx.Err() != nil || f.client.closed() {
		return
	}
	if err != nil {
		f.client.complaints.warn(f.log, "fetching", "host", n.id, "partitions", len(parts), "err", err)
		for _, p := range parts {
			f.trouble(p, err)
		}
		return
	}
	at := time.Now()
	var again, first []*partition
	for i, p := range parts {
		a, ok := answers[targets[i].key()]
		switch {
		case !ok: // throttled or cut short
			again = append(again, p)
		case a.code != 0:
			f.trouble(p, fmt.Errorf("%v: %w", p.tp, Error(a.code)))
		case f.worth(p, a, at):
			f.hand(p, f.chunk(p.tp, targets[i], a, at))
		case len(a.set) > 0:
			first = append(first, p) // a batch larger than the limits
		default:
			again = append(again, p)
		}
	}
	f.mu.Lock()
	for _, p := range slices.Concat(first, again) {
		p.state = ready
		p.well()
	}
	n.ready = slices.Concat(first, n.ready, again)
	f.mu.Unlock()
}

// makeSure asks the leader for the ends of the partitions that have come to it. It
// refuses to tell until it knows of everything that the leader before had
// acknowledged; from then on what its answers say of the end can be relied on.
// (KIP-207)
func (n *node) makeSure(ctx context.Context, parts []*partition) {
	f := n.fetcher
	var ask []TopicPartition
	f.mu.Lock()
	for _, p := range parts {
		if !p.sure {
			ask = append(ask, p.tp)
		}
	}
	f.mu.Unlock()
	if len(ask) == 0 {
		return
	}
	told := make(map[TopicPartition]bool)
	// Those that fail are asked again with the next poll.
	err := f.client.listOffsets(ctx, n.id, ask, Latest, func(tp TopicPartition, _ int64) { told[tp] = true })
	if err != nil {
		f.log.Debug("ends not told yet", "host", n.id, "err", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range parts {
		p.sure = p.sure || told[p.tp]
	}
}

// worth tells whether an answer is to be delivered. An answer that holds only
// the beginning of a batch is not.
func (f *Fetcher) worth(p *partition, a fetchAnswer, at time.Time) bool {
	if _, _, ok, err := nextBatch(a.set); ok || err != nil {
		return true
	}
	if len(a.set) > 0 {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return a.highWatermark != p.highWatermark || a.lastStable != p.lastStable || at.Sub(p.told) >= emptyInterval
}

// chunk copies an answer out of the lane's frame, so that a partition that is
// slow to be processed holds its own bytes and not those of its neighbours.
func (f *Fetcher) chunk(tp TopicPartition, target fetchTarget, a fetchAnswer, at time.Time) *Chunk {
	c := &Chunk{
		TopicPartition: tp, Start: target.position, At: at, Sure: target.sure,
		HighWatermark: a.highWatermark, LastStable: a.lastStable, LogStart: a.logStart,
		committed: f.cfg.Isolation == ReadCommitted, aborted: a.aborted, buffers: &f.buffers,
	}
	if len(a.set) > 0 {
		c.set = append(f.buffers.get(len(a.set)), a.set...)
	}
	return c
}

// fetchTarget is a partition in a request.
type fetchTarget struct {
	id        [16]byte
	partition int32
	epoch     int32 // of the leader, as known
	position  int64
	sure      bool // of the end that the answer will have
}

type fetchKey struct {
	id        [16]byte
	partition int32
}

func (t fetchTarget) key() fetchKey { return fetchKey{t.id, t.partition} }

// fetchAnswer is a partition in an answer; set shares the frame's memory.
type fetchAnswer struct {
	code          int16
	highWatermark int64
	lastStable    int64
	logStart      int64
	aborted       []abortedTxn
	set           []byte
}

// fetch makes one request, without a fetch session. The answers are valid until
// the lane's next one.
func (c *Client) fetch(ctx context.Context, node int32, cfg FetcherConfig, l *lane, targets []fetchTarget) (map[fetchKey]fetchAnswer, error) {
	e := encoder{flex: true}
	e.int32(-1) // not a replica
	e.int32(int32(l.wait.Milliseconds()))
	e.int32(cfg.MinBytes)
	e.int32(cfg.MaxBytes)
	e.int8(int8(cfg.Isolation))
	e.int32(0)            // no session
	e.int32(-1)           // ever
	e.array(len(targets)) // a topic each: the order decides who is served first
	for _, t := range targets {
		e.b = append(e.b, t.id[:]...)
		e.array(1)
		e.int32(t.partition)
		e.int32(t.epoch)
		e.int64(t.position)
		e.int32(-1) // no last fetched epoch
		e.int64(-1) // not a replica
		e.int32(cfg.PartitionMaxBytes)
		e.end()
		e.end()
	}
	e.array(0)   // nothing forgotten
	e.string("") // no rack
	e.end()
	frame := l.frame
	l.frame = nil // an exchange that is given up may still write to it
	d, _, err := c.send(ctx, request{api: apiFetch, node: node, body: e.b, wait: l.wait, buffer: frame})
	if err != nil {
		return nil, err
	}
	l.frame = d.frame
	return decodeFetch(d)
}

func decodeFetch(d *decoder) (map[fetchKey]fetchAnswer, error) {
	d.int32() // throttle
	code := d.int16()
	d.int32() // session
	answers := make(map[fetchKey]fetchAnswer)
	for range d.items() {
		id := d.uuid()
		for range d.items() {
			key := fetchKey{id, d.int32()}
			a := fetchAnswer{code: d.int16(), highWatermark: d.int64(), lastStable: d.int64(), logStart: d.int64()}
			for range d.items() {
				a.aborted = append(a.aborted, abortedTxn{producer: d.int64(), first: d.int64()})
				d.end()
			}
			d.int32() // preferred replica
			a.set = d.bytes()
			d.end()
			answers[key] = a
		}
		d.end()
	}
	d.end()
	if d.err != nil {
		return nil, fmt.Errorf("fetch: %w", d.err)
	}
	return answers, codeError(code, "")
}
