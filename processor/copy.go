package processor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/processor/store"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
)

// taskCopy is a task's state on this instance: its open file, the rows that are
// not in it yet, and where in the changelogs they end. It stays open when the
// task's role changes (recycle): a standby that takes over has only the rest to
// read, and an owner that is relieved goes on answering. It belongs to the task's
// goroutine.
type taskCopy struct {
	*task
	store     *store.Store // nil: a source task without views
	rankings  *rankings
	sweeps    []sweep
	changelog []broker.TopicPartition // of each store

	positions []store.Position // of each changelog: everything below is in the store
	recs      []*commitRecord  // newest record below, of each changelog; nil: none
	rows      []bool           // rows were seen below, in each changelog
	caughtUp  int64            // ms: last at the ends of the changelogs; 0: never
	last      commitRecord     // as published; not changed in place
	whole     bool             // the store is the state of last, which may be read
	restored  int64            // changelog offsets that the owner's phase had to read

	writing  chan error // of one: a checkpoint under way reports here; nil: none
	nextSave time.Time
	failed   bool // the last checkpoint; its runs are still frozen
}

// openCopy opens the task's file, if it keeps state.
func (t *task) openCopy() (*taskCopy, error) {
	c := &taskCopy{task: t}
	if !t.stateful() {
		return c, nil
	}
	return c, c.openStore()
}

// openStore opens the file. One that cannot be trusted is discarded: the
// changelogs have everything.
func (c *taskCopy) openStore() error {
	options := store.Options{Path: c.path(), MmapSize: c.w.cfg.MmapSize, Logger: c.log}
	for _, f := range c.sub.Feeds {
		spec := store.Spec{Name: f.View.Store}
		if w := f.View.Window; w != nil {
			spec.Segment = segmentSpan(w)
			c.sweeps = append(c.sweeps, sweep{store: len(options.Stores), window: w, done: math.MinInt64, target: math.MinInt64})
		}
		options.Stores = append(options.Stores, spec)
		c.changelog = append(c.changelog, broker.TopicPartition{Topic: schema.Changelog(c.w.cfg.App, f.View.Store), Partition: c.id.Partition})
	}
	s, err := store.Open(options)
	if errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrVersion) || errors.Is(err, store.ErrSpec) {
		c.log.Error("store file discarded; it is rebuilt from the changelogs", "path", options.Path, "reason", err)
		c.w.metrics.discarded.Inc()
		if err = store.Discard(options.Path); err == nil {
			s, err = store.Open(options)
		}
	}
	if err != nil {
		return err
	}
	c.store = s
	c.rankings = newRankings(c.sub, s)
	c.nextSave = time.Now().Add(c.w.cfg.CheckpointInterval)
	return c.recall()
}

// recall takes up where the file ends.
func (c *taskCopy) recall() error {
	state := c.store.State()
	recs, err := decodeCommits(state.Record)
	if err != nil {
		return refuse("run the newer release again, or "+c.w.cfg.resetHint(), "store %s: %v", c.path(), err)
	}
	kept := make(map[string]store.Position, len(state.Positions))
	for _, p := range state.Positions {
		kept[p.Topic] = p
	}
	c.caughtUp = state.CaughtUp
	c.positions, c.recs, c.rows = nil, make([]*commitRecord, len(c.changelog)), make([]bool, len(c.changelog))
	for i, tp := range c.changelog {
		p, ok := kept[tp.Topic]
		if !ok {
			p = store.Position{Topic: tp.Topic, Next: unread}
		}
		c.positions = append(c.positions, p)
		if recs[tp.Topic] != nil {
			c.recs[i], c.rows[i] = recs[tp.Topic], true
		}
	}
	c.tell()
	return nil
}

// unread is the position in a changelog of which nothing was read.
const unread = -1

// tell makes known how far the copy is, for those who ask from outside.
func (c *taskCopy) tell() {
	h := &heldCopy{Partition: c.id.Partition}
	for i, p := range c.positions {
		h.Position += max(p.Next, 0)
		if c.recs[i] != nil {
			h.columns = c.recs[i].Columns
		}
	}
	c.held.Store(h)
}

// discardStore replaces a file that its changelogs contradict by an empty one.
func (c *taskCopy) discardStore(reason string) error {
	c.log.Error("store file discarded; it is rebuilt from the changelogs", "path", c.path(), "reason", reason)
	c.w.metrics.discarded.Inc()
	c.hide()
	if err := c.finishWriting(); err != nil {
		c.log.Debug("checkpoint of a file to be discarded", "err", err)
	}
	if err := c.store.Close(); err != nil {
		return err
	}
	if err := store.Discard(c.path()); err != nil {
		return err
	}
	c.store, c.changelog, c.sweeps = nil, nil, nil
	return c.openStore()
}

// hide ends the answering of reads; those under way have their snapshot.
func (c *taskCopy) hide() {
	c.whole = false
	if s := c.serving.Swap(nil); s != nil {
		close(s.over)
		c.w.hub.touched(storesOf(c.sub), c.id.Partition, read.Moved)
	}
}

// show publishes a run with the record that it ends at, and answers reads from
// it.
func (c *taskCopy) show(run store.Run, rec *commitRecord) {
	edge := c.last.Stream != rec.Stream
	if !c.whole {
		c.rankings.rebuild() // what a restore has applied they do not know
	}
	c.last, c.whole = *rec, true
	for i := range c.recs {
		c.recs[i], c.rows[i] = &c.last, true
	}
	c.rankings.follow(run)
	c.store.Publish(run, c.published(), c.state())
	c.tell()
	if c.serving.Load() == nil {
		ids := make([][16]byte, len(c.changelog))
		for i, tp := range c.changelog {
			ids[i] = c.w.layout.topics[tp.Topic].ID
		}
		c.serving.Store(&serving{store: c.store, incarnations: ids, over: make(chan struct{})})
		c.w.hub.touched(storesOf(c.sub), c.id.Partition, read.Changed)
		return
	}
	c.w.hub.changed(c.id, c.sub, run, &c.last, edge)
}

// republish shows the same rows with other rankings.
func (c *taskCopy) republish() {
	if c.whole {
		c.store.Publish(nil, c.published(), c.state())
	}
}

// published is what a snapshot carries beside its rows; it does not change.
type published struct {
	rec  commitRecord
	tops topTable
}

func (c *taskCopy) published() *published {
	return &published{rec: c.last, tops: c.rankings.publish()}
}

// state is what a checkpoint of the present has to say.
func (c *taskCopy) state() store.State {
	recs := make(map[string]*commitRecord, len(c.changelog))
	for i, tp := range c.changelog {
		recs[tp.Topic] = c.recs[i]
	}
	return store.State{Record: encodeCommits(recs), Positions: c.positions, CaughtUp: c.caughtUp}
}

// save begins a checkpoint in the background when one is due or the overlay is
// over its share, if none is under way and the instance has a place for it.
func (c *taskCopy) save(now time.Time) {
	due := now.After(c.nextSave) || !c.failed && c.store.OverlayBytes() > c.w.overlayShare()
	if c.writing != nil || !due {
		return
	}
	select {
	case c.w.checkpoints <- struct{}{}:
	default:
		return // two at once; the next tick tries again
	}
	c.nextSave = now.Add(c.w.cfg.CheckpointInterval)
	if !c.store.Freeze() && !c.failed {
		<-c.w.checkpoints
		return // nothing new
	}
	c.writing = make(chan error, 1)
	s, out, places := c.store, c.writing, c.w.checkpoints
	go func() {
		// A checkpoint is not cut short: close waits for it.
		err := s.WriteFrozen(context.Background())
		<-places
		c.w.metrics.checkpointSeconds.Observe(time.Since(now).Seconds())
		out <- err
	}()
}

// written is the end of a checkpoint. One that failed leaves the frozen runs
// readable; it is tried again after a while, and the overlay's cap stops
// processing until then. A file that is full or damaged is opened anew.
func (c *taskCopy) written(err error) error {
	c.writing = nil
	was := c.failed
	c.failed = err != nil
	if err != nil {
		c.w.metrics.checkpointFailures.Inc()
		if errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrCorrupt) {
			return fmt.Errorf("%w: %w", errFile, err)
		}
		c.cond.trouble(fileNote, fmt.Sprintf("checkpoint failed: %v", err))
		c.log.Error("checkpoint failed; its rows stay in memory", "err", err)
		c.nextSave = time.Now().Add(c.w.cfg.CheckpointInterval / 10)
		return nil
	}
	if was {
		c.cond.trouble(fileNote, "")
		c.log.Info("checkpoints succeed again")
	}
	c.store.Installed()
	return nil
}

// finishWriting waits for a checkpoint under way.
func (c *taskCopy) finishWriting() error {
	if c.writing == nil {
		return nil
	}
	err := <-c.writing
	c.writing = nil
	if err == nil {
		c.store.Installed()
	}
	return err
}

// close writes what is committed and releases the file.
func (c *taskCopy) close(ctx context.Context) error {
	c.hide()
	if c.store == nil {
		return nil
	}
	err := c.finishWriting()
	save, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	err = errors.Join(err, c.store.Checkpoint(save))
	return errors.Join(err, c.store.Close())
}
