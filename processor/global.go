package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/processor/format"
	"github.com/streamgauge/streamgauge/processor/store"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
	"github.com/tinylib/msgp/msgp"
)

// global follows a table's topic by itself, outside the group: the topic is its
// own changelog, and every instance keeps the whole. It is published per chunk
// and ready at the ends read at start. One goroutine runs it; reads take
// snapshots.
type global struct {
	w     *Worker
	table *schema.Table
	topic broker.Topic
	log   *slog.Logger

	cond    condition
	serving atomic.Pointer[serving]
	ready   chan struct{} // closed when the ends read at start are reached

	// The loop's.
	store   *store.Store
	json    *format.JSON
	values  []view.Value
	row     []view.Value
	next    []int64 // by partition
	ends    []int64
	targets []int64
	times   []int64 // ms: when each partition was last seen at its end
	chunks  chan *broker.Chunk
	letters letters
}

func newGlobal(w *Worker, table *schema.Table) *global {
	return &global{
		w: w, table: table, log: w.log.With("table", table.View.Store),
		ready:  make(chan struct{}),
		json:   format.NewJSON(table.Fields, table.View.KeyFormat),
		values: make([]view.Value, len(table.Fields)),
		row:    make([]view.Value, len(table.View.Columns)),
	}
}

func (g *global) path() string {
	return filepath.Join(g.w.cfg.StateDir, g.w.cfg.App, g.table.View.Store+"-global", "state.db")
}

// run follows the table until ctx ends.
func (g *global) run(ctx context.Context) error {
	wait := newBackoff()
	for {
		g.cond.set(Starting, nil)
		began := time.Now()
		err := g.live(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > time.Minute {
			wait = newBackoff()
		}
		var refused *RefusedError
		if errors.As(err, &refused) {
			return err
		}
		g.log.Warn("table starts over", "reason", err)
		wait.sleep(ctx)
	}
}

func (g *global) live(ctx context.Context) (err error) {
	if err := g.open(ctx); err != nil {
		return err
	}
	defer func() {
		g.serving.Store(nil)
		save, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		err = errors.Join(err, g.store.Checkpoint(save), g.store.Close())
		g.store = nil
	}()
	g.chunks = make(chan *broker.Chunk, len(g.next))
	defer releaseAll(g.chunks) // once nothing more is delivered
	for p, next := range g.next {
		tp := broker.TopicPartition{Topic: g.table.Topic, Partition: int32(p)}
		g.w.restores.Add(tp, next, func(c *broker.Chunk) { g.chunks <- c })
		defer g.w.restores.Remove(tp)
	}
	g.cond.set(Restoring, nil)
	began, total := time.Now(), g.behind()
	g.arrive()
	save := time.NewTicker(g.w.cfg.CheckpointInterval)
	defer save.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case c := <-g.chunks:
			if err := g.take(ctx, c); err != nil {
				return err
			}
			g.cond.advance(total-g.behind(), total, began)
			g.arrive()
		case <-save.C:
			if err := g.store.Checkpoint(ctx); err != nil {
				g.log.Error("checkpoint failed; its rows stay in memory", "err", err)
			}
		}
	}
}

// open opens the store and finds where to go on in each partition.
func (g *global) open(ctx context.Context) error {
	g.topic = g.w.layout.topics[g.table.Topic]
	options := store.Options{Path: g.path(), Stores: []store.Spec{{Name: g.table.View.Store}}, MmapSize: g.w.cfg.MmapSize, Logger: g.log}
	tps := make([]broker.TopicPartition, len(g.topic.Partitions))
	for p := range tps {
		tps[p] = broker.TopicPartition{Topic: g.table.Topic, Partition: int32(p)}
	}
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	starts, err := g.w.cfg.Client.Offsets(bounded, tps, broker.Earliest)
	if err != nil {
		return fmt.Errorf("read the start of %s: %w", g.table.Topic, err)
	}
	ends, err := g.w.cfg.Client.Offsets(bounded, tps, broker.LastStable)
	if err != nil {
		return fmt.Errorf("read the end of %s: %w", g.table.Topic, err)
	}
	s, err := store.Open(options)
	if errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrVersion) || errors.Is(err, store.ErrSpec) {
		return g.discard(err.Error())
	}
	if err != nil {
		return err
	}
	g.store = s
	n := len(tps)
	g.next, g.ends, g.targets, g.times = make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	kept, reason := g.kept()
	for p, tp := range tps {
		g.next[p], g.ends[p], g.targets[p] = starts[tp], ends[tp], ends[tp]
		if p < len(kept) {
			g.next[p] = kept[p]
		}
		if g.next[p] > ends[tp] || g.next[p] < starts[tp] {
			reason = fmt.Sprintf("position %d of partition %d is outside the topic's %d to %d", g.next[p], p, starts[tp], ends[tp])
		}
	}
	if age := time.Since(time.UnixMilli(s.State().CaughtUp)); len(kept) > 0 && age > g.w.tombstonesFor/2 {
		reason = fmt.Sprintf("it was last at the end of its topic %s ago", age.Round(time.Minute))
	}
	if reason != "" {
		err := s.Close()
		g.store = nil
		return errors.Join(err, g.discard(reason))
	}
	return nil
}

// discard removes a file that cannot be continued; the next life starts anew.
func (g *global) discard(reason string) error {
	g.w.metrics.discarded.Inc()
	g.log.Error("store file discarded; it is rebuilt from its topic", "path", g.path(), "reason", reason)
	if err := store.Discard(g.path()); err != nil {
		return err
	}
	return errReopen
}

// kept are the positions that the file ends at, and why they do not count.
func (g *global) kept() ([]int64, string) {
	state := g.store.State()
	if len(state.Positions) == 0 {
		return nil, ""
	}
	if state.Positions[0].ID != g.topic.ID {
		return nil, "the topic was created anew"
	}
	next, err := decodeOffsets(state.Record)
	if err != nil {
		return nil, err.Error()
	}
	return next, ""
}

func (g *global) behind() (n int64) {
	for p, t := range g.targets {
		n += max(0, t-g.next[p])
	}
	return n
}

// arrive begins to answer once the ends read at start are reached.
func (g *global) arrive() {
	if g.serving.Load() != nil || g.behind() > 0 {
		return
	}
	g.store.Publish(nil, g.published(), g.state())
	g.cond.set(Running, nil)
	g.serving.Store(&serving{store: g.store, incarnations: [][16]byte{g.topic.ID}})
	g.w.hub.touched([]string{g.table.View.Store}, 0, read.Changed)
	select {
	case <-g.ready:
	default:
		close(g.ready)
	}
}

func (g *global) take(ctx context.Context, c *broker.Chunk) error {
	defer c.Release()
	if c.Err != nil {
		return fmt.Errorf("fetch %s: %w", c.TopicPartition, c.Err)
	}
	rows := make(map[string][]byte)
	next, err := c.Each(func(r *broker.Record) error {
		key, row, err := g.decode(r)
		if err != nil {
			g.bad(c, r, err)
			return nil
		}
		rows[key] = row
		return nil
	})
	if err == nil {
		err = g.sendLetters(ctx)
	}
	if err != nil {
		return err
	}
	run := make(store.Run, 0, len(rows))
	for k, v := range rows {
		run = append(run, store.Entry{Key: []byte(k), Value: v})
	}
	slices.SortFunc(run, compareEntries)
	g.next[c.Partition], g.ends[c.Partition] = next, c.HighWatermark
	if c.Sure && next >= c.HighWatermark {
		g.times[c.Partition] = c.At.UnixMilli()
	}
	pub := g.published()
	g.store.Publish(run, pub, g.state())
	if len(run) > 0 {
		sub := &schema.Subtopology{Feeds: []*schema.Feed{{View: g.table.View}}}
		g.w.hub.changed(taskID{}, sub, run, &pub.rec, false)
	}
	g.w.restores.Resume(c.TopicPartition, next)
	return nil
}

// decode makes a row of a record; a nil row deletes. The key is the Kafka key.
func (g *global) decode(r *broker.Record) (key string, row []byte, err error) {
	v := g.table.View
	if r.Key == nil {
		return "", nil, errors.New("the record has no Kafka key, which is the key of its row")
	}
	id, err := view.ParsePartitionBytes(r.Key, v.KeyFormat, v.Columns[v.Keys[0]].Type)
	if err != nil {
		return "", nil, fmt.Errorf("key: %w", err)
	}
	if r.Value != nil {
		fr := format.Record{Timestamp: r.Timestamp, Key: r.Key, Value: r.Value, Header: r.Header}
		if err := g.json.Decode(g.values, &fr); err != nil {
			return "", nil, err
		}
		clear(g.row)
		for i, c := range g.table.Column {
			g.row[c] = g.values[i]
		}
		row = v.AppendFields(nil, g.row)
	}
	if id.IsNull() {
		return "", nil, errors.New("the record's Kafka key is null")
	}
	k := view.AppendKey(nil, id)
	return string(k), row, view.CheckKey(len(k))
}

// bad puts a record aside.
func (g *global) bad(c *broker.Chunk, r *broker.Record, reason error) {
	g.w.metrics.bad.WithLabelValues(g.table.View.Name).Inc()
	g.log.Debug("bad record", "topic", c.Topic, "partition", c.Partition, "offset", r.Offset, "reason", reason)
	g.letters.add(c.TopicPartition, r, g.table.View.Name, reason)
}

// sendLetters writes the bad records of a chunk, without waiting for it: a
// restart may write one twice.
func (g *global) sendLetters(ctx context.Context) error {
	to := broker.TopicPartition{Topic: deadLetters(g.w.cfg.App)}
	for _, b := range g.letters.take() {
		err := g.w.producer.Produce(ctx, to, b, func(_ int64, err error) {
			if err != nil {
				g.log.Error("dead letters not written", "records", b.Len(), "err", err)
			}
		})
		if err != nil {
			return fmt.Errorf("write dead letters: %w", err)
		}
	}
	return nil
}

// published describes the present: seq is the sum of the positions, which only
// grows.
func (g *global) published() *published {
	p := &published{rec: commitRecord{Stream: noTime}}
	for i, next := range g.next {
		p.rec.Seq += uint64(next)
		p.rec.Lag += max(0, g.ends[i]-next)
		if i == 0 || g.times[i] < p.rec.CaughtUp {
			p.rec.CaughtUp = g.times[i]
		}
	}
	return p
}

func (g *global) state() store.State {
	return store.State{
		Record:    encodeOffsets(g.next),
		Positions: []store.Position{{Topic: g.table.Topic, ID: g.topic.ID}},
		CaughtUp:  time.Now().UnixMilli(),
	}
}

// read answers a request from the table.
func (g *global) read(ctx context.Context, w *Worker, req *read.Request, a *read.Answer) error {
	s := g.serving.Load()
	if s == nil {
		return g.cond.unready()
	}
	snap := s.store.Snapshot()
	if snap == nil {
		return &read.Error{Code: read.Restoring, RetryAfter: time.Second}
	}
	defer snap.Release()
	pub := snap.Commit().(*published)
	a.Part.Role, a.Part.Incarnation = read.Global, s.incarnations[0]
	a.Part.Seq, a.Part.Lag, a.Part.AsOf = pub.rec.Seq, pub.rec.Lag, pub.rec.CaughtUp
	return w.query(ctx, source{view: g.table.View, snap: snap, pub: pub}, req, a)
}

const offsetsVersion = 1

func encodeOffsets(next []int64) []byte {
	b := msgp.AppendArrayHeader([]byte{offsetsVersion}, uint32(len(next)))
	for _, n := range next {
		b = msgp.AppendInt64(b, n)
	}
	return b
}

func decodeOffsets(b []byte) ([]int64, error) {
	if len(b) == 0 || b[0] != offsetsVersion {
		return nil, errors.New("positions of an unknown format version")
	}
	n, b, err := msgp.ReadArrayHeaderBytes(b[1:])
	if err != nil || n > maxUpstream {
		return nil, errors.Join(err, checkCount(n))
	}
	next := make([]int64, n)
	for i := range next {
		if next[i], b, err = msgp.ReadInt64Bytes(b); err != nil {
			return nil, err
		}
	}
	return next, nil
}
