package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/processor/store"
	"github.com/streamgauge/streamgauge/view/read"
)

const (
	// restoreBatch bounds the rows that a restore holds before it gives them to
	// the store, and those that a follower of one changelog keeps while others are
	// behind, in bytes.
	restoreBatch = 8 << 20
	followTick   = time.Second
)

// follower reads a task's changelogs into its copy. It is one loop in two modes:
//
//	restoring   rows are applied as they come, for they are final values; what is
//	            read below the targets may be torn, so nothing is shown
//	following   a transaction is shown when its commit record was read from every
//	            changelog
//
// Restoring ends at the first commit at or beyond the targets, the ends of the
// logs when it began. A hole in the offsets, where compaction has overtaken the
// follower, puts it back to restoring with new targets.
//
// A follower whose task is fenced, so that nobody writes, ends at its targets;
// any other when it is told to.
type follower struct {
	*taskCopy
	fenced bool
	lanes  []*lane
	chunks chan *broker.Chunk

	batch backlog // rows below the targets, to be applied
	done  int64   // offsets read, of total
	total int64
	began time.Time

	moved   stand
	leaveAt time.Time // when a lingering copy ends; zero: its successor has not committed yet
}

// follow keeps the copy up with its owner until ctx ends.
func (c *taskCopy) follow(ctx context.Context) error {
	f, err := c.newFollower(ctx, false)
	if err != nil {
		return err
	}
	return f.run(ctx)
}

// catchUp reads the changelogs to their ends, for an owner that has fenced all
// others.
func (c *taskCopy) catchUp(ctx context.Context) error {
	f, err := c.newFollower(ctx, true)
	if err != nil {
		return err
	}
	return f.run(ctx)
}

func (f *follower) run(ctx context.Context) error {
	defer releaseAll(f.chunks) // once nothing more is delivered
	for i, tp := range f.changelog {
		if ln := f.lanes[i]; !f.fenced || ln.next < ln.target {
			f.w.restores.Add(tp, ln.next, func(c *broker.Chunk) { f.chunks <- c })
			defer f.w.restores.Remove(tp)
		}
	}
	switch {
	case !f.whole:
		f.cond.set(Restoring, nil)
		f.cond.advance(0, f.total, f.began)
	case !f.fenced:
		f.cond.set(Following, nil)
	}
	if err := f.advance(ctx); err != nil || f.fenced && f.arrived() {
		return errors.Join(err, f.end())
	}
	tick := time.NewTicker(followTick)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case c := <-f.chunks:
			err = f.take(ctx, c)
		case ask := <-f.asks:
			ask(f.taskCopy)
		case werr := <-f.writing:
			if err = f.written(werr); err == nil {
				f.fetchOn()
			}
		case now := <-tick.C:
			err = f.tick(now)
		}
		if err != nil {
			return err
		}
		if f.fenced && f.arrived() {
			return f.end()
		}
	}
}

func releaseAll(chunks <-chan *broker.Chunk) {
	for len(chunks) > 0 {
		(<-chunks).Release()
	}
}

// arrived says whether every changelog was read to its target.
func (f *follower) arrived() bool {
	return !slices.ContainsFunc(f.lanes, func(l *lane) bool { return l.next < l.target })
}

// end is the end of a fenced follower, which has read all there is: what could
// not be shown disagrees.
func (f *follower) end() error {
	if !f.whole {
		f.apply()
	}
	for i, ln := range f.lanes {
		if len(ln.groups) > 0 || len(ln.open.rows) > 0 {
			return refuse(f.w.cfg.resetHint(), "the changelogs of task %s disagree: %s ends at seq %d, another at %d",
				f.id, f.changelog[i].Topic, max(ln.newest(), f.recs[i].seq()), f.last.Seq)
		}
		f.positions[i].Next = ln.next
	}
	f.caughtUp = time.Now().UnixMilli()
	f.restored = f.total
	f.log.Debug("restored", "records", f.total, "took", time.Since(f.began).Round(time.Millisecond))
	return nil
}

// take reads a chunk of one changelog.
func (f *follower) take(ctx context.Context, c *broker.Chunk) error {
	defer c.Release()
	i := slices.Index(f.changelog, c.TopicPartition)
	ln := f.lanes[i]
	switch {
	case errors.Is(c.Err, broker.ErrUnknownTopic), errors.Is(c.Err, broker.ErrUnknownTopicID):
		return refuse(f.w.cfg.resetHint(), "changelog %s was deleted or created anew", c.Topic)
	case errors.Is(c.Err, broker.ErrOffsetOutOfRange):
		f.hide() // the log does not go on from here: the file is looked at anew
		return fmt.Errorf("%w: follow %s from %d: %w", errReopen, c.TopicPartition, ln.next, c.Err)
	case c.Err != nil:
		return fmt.Errorf("%w: follow %s: %w", errReopen, c.TopicPartition, c.Err)
	}
	next, err := c.Each(func(r *broker.Record) error { return f.record(ln, r) })
	if err != nil {
		return err
	}
	f.done += next - ln.next
	ln.idle = true
	ln.next, ln.end = next, max(c.LastStable, next)
	f.w.metrics.restored.Add(float64(next - c.Start))
	if c.Holes {
		if err := f.gap(ctx, ln, c.LastStable); err != nil {
			return err
		}
	}
	if err := f.advance(ctx); err != nil {
		return err
	}
	f.fetchOn()
	return nil
}

func (f *follower) record(ln *lane, r *broker.Record) error {
	below := !f.whole && r.Offset < ln.target
	if len(r.Key) == 1 && r.Key[0] == commitKeyByte {
		rec, err := decodeCommit(r.Value)
		if err != nil {
			return refuse("run the newer release again, or "+f.w.cfg.resetHint(), "changelog %s offset %d: %v", f.changelog[ln.at], r.Offset, err)
		}
		if below {
			f.recs[ln.at] = rec
			return nil
		}
		ln.commit(rec, r.Offset+1, f.shown())
		return nil
	}
	if !below {
		ln.row(r)
		return nil
	}
	f.rows[ln.at] = true
	f.batch.add(ln.at, r.Key, r.Value)
	return nil
}

// shown is the seq that reads see; 0: none.
func (f *follower) shown() uint64 {
	if f.whole {
		return f.last.Seq
	}
	return 0
}

// advance applies what can be, and shows it when it is whole.
func (f *follower) advance(ctx context.Context) error {
	if !f.whole {
		f.cond.advance(f.done, f.total, f.began)
		if f.batch.bytes >= restoreBatch {
			f.apply()
			if err := f.relieve(ctx); err != nil {
				return err
			}
		}
		if f.fenced || !f.arrived() {
			return nil // what a fenced one has read is looked at when it has read all
		}
	}
	applied := make([]uint64, len(f.lanes))
	for i, rec := range f.recs {
		applied[i] = rec.seq()
	}
	seq, ok := aligned(f.lanes, applied)
	if !ok || seq == 0 || f.whole && seq == f.last.Seq {
		return nil
	}
	return f.reveal(seq)
}

// relieve writes a checkpoint when a restore has filled its share of the memory.
func (f *follower) relieve(ctx context.Context) error {
	if f.store.OverlayBytes() <= f.w.overlayShare() {
		return nil
	}
	err := f.finishWriting()
	select {
	case f.w.checkpoints <- struct{}{}: // two at once
		err = errors.Join(err, f.store.Checkpoint(ctx))
		<-f.w.checkpoints
	case <-ctx.Done():
		return ctx.Err()
	}
	if errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrCorrupt) {
		return fmt.Errorf("%w: %w", errFile, err)
	}
	return err
}

// reveal shows everything up to a seq that was read from every changelog.
func (f *follower) reveal(seq uint64) error {
	rec := f.recs[0]
	var groups []group
	if !f.whole {
		f.apply()
		f.batch = backlog{} // it may follow for long
	}
	for i, ln := range f.lanes {
		for _, g := range ln.take(seq) {
			groups = append(groups, g)
			f.positions[i].Next = g.next
			if g.rec.Seq == seq {
				rec = g.rec
			}
		}
	}
	if err := f.compatible(rec.Columns); err != nil {
		return ofTask(err)
	}
	was := f.whole
	if f.atEnd() {
		f.caughtUp = time.Now().UnixMilli()
	}
	f.show(merged(groups), rec)
	f.dropSegments()
	if !was {
		f.cond.set(Following, nil)
		f.w.story.follows(f.id, f.total)
		f.log.Debug("follows", "role", f.shownRole().String(), "seq", seq, "records", f.total, "took", time.Since(f.began).Round(time.Millisecond))
	}
	if f.role() == read.Lingering && rec.Owner != f.w.cfg.Instance && f.leaveAt.IsZero() {
		f.leaveAt = time.Now().Add(lingerFor)
	}
	return nil
}

// apply gives the rows of a restore to the store, unshown: reads are not answered
// meanwhile.
func (f *follower) apply() {
	run := f.batch.take()
	for i, ln := range f.lanes {
		f.positions[i].Next = max(f.positions[i].Next, min(ln.next, ln.target))
	}
	f.store.Publish(run, nil, f.state())
	f.tell()
}

// gap deals with a hole in what was just read of a changelog, whose end is stable.
// What replaces the records that are gone may lie anywhere up to there.
func (f *follower) gap(ctx context.Context, ln *lane, stable int64) error {
	if f.whole || ln.next > ln.target {
		return f.torn(ctx)
	}
	if !f.fenced {
		f.total += max(0, stable-ln.target)
		ln.target = max(ln.target, stable)
	}
	return nil
}

// torn goes back to restoring: compaction has taken something out of what is
// being read, so a commit may be there without all of its rows.
func (f *follower) torn(ctx context.Context) error {
	_, ends, err := f.bounds(ctx)
	if err != nil {
		return err
	}
	f.w.metrics.overtaken.Inc()
	f.w.often.tell(f.log, slog.LevelInfo, "compaction has overtaken this copy; it restores", "seq", f.last.Seq)
	f.hide()
	f.cond.set(Restoring, nil)
	f.began, f.done, f.total = time.Now(), 0, 0
	for i, tp := range f.changelog {
		ln := f.lanes[i]
		for _, g := range append(ln.groups, ln.open) {
			for _, e := range g.rows {
				f.rows[i] = true
				f.batch.add(i, e.Key, e.Value)
			}
			if g.rec != nil {
				f.recs[i] = g.rec
			}
		}
		ln.groups, ln.open, ln.bytes = nil, group{}, 0
		ln.target = max(ends[tp], ln.next)
		f.total += ln.target - ln.next
	}
	return nil
}

// atEnd says whether everything known to be in the changelogs was read.
func (f *follower) atEnd() bool {
	return !slices.ContainsFunc(f.lanes, func(l *lane) bool { return l.next < l.end })
}

// behind is how many offsets of the changelogs are not in the copy.
func (f *follower) behind() (n int64) {
	for i, ln := range f.lanes {
		n += max(0, ln.end-f.positions[i].Next)
	}
	return n
}

// fetchOn asks for more of each changelog. One that is ahead of the others waits
// for them, so that what is kept stays bounded.
func (f *follower) fetchOn() {
	if f.whole && f.store.OverlayBytes() > 2*f.w.overlayShare() {
		return // a checkpoint must come first; the next tick sees to it
	}
	for i, ln := range f.lanes {
		if !ln.idle || f.fenced && ln.next >= ln.target {
			continue
		}
		if ln.bytes > restoreBatch && slices.ContainsFunc(f.lanes, func(o *lane) bool { return o.newest() < ln.newest() && o.next < o.end }) {
			continue
		}
		ln.idle = false
		f.w.restores.Resume(f.changelog[i], ln.next)
	}
}

// tick sees to checkpoints, and tells the group when a warm-up has caught up.
func (f *follower) tick(now time.Time) error {
	if f.leaves(now) && f.endLingering() {
		f.w.story.handedOver(f.id)
		f.log.Debug("its successor runs; this copy ends")
		return errMoved
	}
	if f.atEnd() {
		f.caughtUp = now.UnixMilli()
	}
	f.tell()
	f.save(now)
	f.fetchOn()
	f.standsStill(now)
	if f.whole && f.rankings.repair() {
		f.republish()
	}
	if f.whole && f.role() == read.WarmUp && f.behind() <= f.w.cfg.AcceptableLag {
		f.w.warmed()
	}
	return nil
}

// leaves says whether a lingering copy has ended. One that has become a standby
// meanwhile stays.
func (f *follower) leaves(now time.Time) bool {
	if f.role() != read.Lingering {
		f.leaveAt = time.Time{}
	}
	return !f.leaveAt.IsZero() && now.After(f.leaveAt)
}

// dropSegments drops what has expired, one segment late: by then its owner has
// deleted the rows from the changelog.
func (f *follower) dropSegments() {
	for i := range f.sweeps {
		s := f.sweeps[i] // as the owner would go on
		if s.due(f.last.Stream) {
			f.store.DropSegments(s.store, s.target-segmentSpan(s.window))
		}
	}
}

// lingerFor is how long a former owner answers on after its successor's first
// commit: until the routes have come round.
const lingerFor = 10 * time.Second
