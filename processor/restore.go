package processor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/processor/store"
	"github.com/streamgauge/streamgauge/view/read"
)

// restoreBatch bounds the rows that a restore holds before it gives them to the
// store, in bytes.
const restoreBatch = 8 << 20

// restorer reads a task's changelogs up to a target. Rows are final values, so
// what is applied twice or only in part is made good by reading on: the state
// is whole when every changelog has reached its target.
type restorer struct {
	*life
	targets []int64
	last    []*commitRecord // newest record seen in each changelog
	rows    []bool          // rows were seen in each changelog
	batch   map[batchKey][]byte
	bytes   int
	done    int64
}

type batchKey struct {
	store int
	key   string
}

// restore reads the changelogs from where the file ends to their ends, and
// checks that file, changelogs and committed offset agree.
func (l *life) restore(ctx context.Context, offset broker.Committed, inputStart int64) error {
	l.cond.set(Restoring, nil)
	r := &restorer{life: l, batch: make(map[batchKey][]byte)}
	if err := r.aim(ctx); err != nil {
		return err
	}
	if err := r.read(ctx); err != nil {
		return err
	}
	rec, err := r.agree(offset)
	if err != nil {
		return err
	}
	if rec == nil {
		return l.fresh(offset, inputStart)
	}
	return l.adopt(rec, offset)
}

// aim finds where to begin in each changelog and where it ends. A file that
// does not fit its changelogs is discarded.
func (r *restorer) aim(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ends, err := r.w.cfg.Client.Offsets(bounded, r.changelog, broker.Latest)
	if err != nil {
		return fmt.Errorf("read the ends of the changelogs: %w", err)
	}
	starts, err := r.w.cfg.Client.Offsets(bounded, r.changelog, broker.Earliest)
	if err != nil {
		return fmt.Errorf("read the starts of the changelogs: %w", err)
	}
	if reason := r.unfit(starts, ends); reason != "" {
		if err := r.discardStore(reason); err != nil {
			return err
		}
	}
	n := len(r.changelog)
	r.targets, r.last, r.rows = make([]int64, n), make([]*commitRecord, n), make([]bool, n)
	kept := r.kept()
	r.positions = nil
	for i, tp := range r.changelog {
		p := store.Position{Topic: tp.Topic, ID: r.w.layout.topics[tp.Topic].ID, Next: starts[tp]}
		if old, ok := kept[tp.Topic]; ok {
			p.Next = old.Next
		}
		r.positions = append(r.positions, p)
		r.targets[i] = ends[tp]
	}
	recs, err := decodeCommits(r.store.State().Record)
	if err != nil {
		return refuse("run the newer release again, or "+r.w.cfg.resetHint(), "store %s: %v", r.path(), err)
	}
	for i, tp := range r.changelog {
		if recs[tp.Topic] != nil {
			r.last[i], r.rows[i] = recs[tp.Topic], true
		}
	}
	return nil
}

func (r *restorer) kept() map[string]store.Position {
	kept := make(map[string]store.Position)
	for _, p := range r.store.State().Positions {
		kept[p.Topic] = p
	}
	return kept
}

// unfit says why the file cannot be continued from its changelogs; "": it can.
func (r *restorer) unfit(starts, ends map[broker.TopicPartition]int64) string {
	kept := r.kept()
	for _, tp := range r.changelog {
		p, ok := kept[tp.Topic]
		switch {
		case !ok && len(kept) > 0:
			return fmt.Sprintf("it knows nothing of changelog %s", tp.Topic)
		case !ok:
			continue
		case p.ID != r.w.layout.topics[tp.Topic].ID:
			return fmt.Sprintf("changelog %s was created anew", tp.Topic)
		case p.Next > ends[tp]:
			return fmt.Sprintf("position %d is beyond the end %d of changelog %s", p.Next, ends[tp], tp)
		case p.Next < starts[tp]:
			return fmt.Sprintf("position %d is before the start %d of changelog %s", p.Next, starts[tp], tp)
		}
	}
	if age := time.Since(time.UnixMilli(r.store.State().CaughtUp)); len(kept) > 0 && age > r.w.tombstonesFor/2 {
		return fmt.Sprintf("it was last at the end of its changelogs %s ago, and tombstones are kept for %s", age.Round(time.Minute), r.w.tombstonesFor)
	}
	return ""
}

// read applies the changelogs until all are at their targets.
func (r *restorer) read(ctx context.Context) error {
	total, left := int64(0), 0
	chunks := make(chan *broker.Chunk, len(r.changelog))
	defer releaseAll(chunks) // once nothing more is delivered
	for i, tp := range r.changelog {
		if behind := r.targets[i] - r.positions[i].Next; behind > 0 {
			total += behind
			left++
			r.w.restores.Add(tp, r.positions[i].Next, func(c *broker.Chunk) { chunks <- c })
			defer r.w.restores.Remove(tp)
		}
	}
	began := time.Now()
	r.cond.advance(0, total, began)
	for left > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case c := <-chunks:
			reached, err := r.take(ctx, c)
			if err != nil {
				return err
			}
			if reached {
				left--
			}
			r.cond.advance(r.done, total, began)
		}
	}
	if err := r.flush(ctx, true); err != nil {
		return err
	}
	if total > 0 {
		r.log.Info("restored", "records", total, "took", time.Since(began).Round(time.Millisecond))
	}
	return nil
}

func releaseAll(chunks <-chan *broker.Chunk) {
	for len(chunks) > 0 {
		(<-chunks).Release()
	}
}

// take applies a chunk; true when its changelog has reached the target.
func (r *restorer) take(ctx context.Context, c *broker.Chunk) (bool, error) {
	defer c.Release()
	if c.Err != nil {
		return false, fmt.Errorf("%w: restore from %s: %w", errReopen, c.TopicPartition, c.Err)
	}
	i := slices.Index(r.changelog, c.TopicPartition)
	next, err := c.Each(func(rec *broker.Record) error { return r.record(i, rec) })
	if err != nil {
		return false, err
	}
	r.done += next - r.positions[i].Next
	r.positions[i].Next = next
	r.w.metrics.restored.Add(float64(next - c.Start))
	if r.bytes >= restoreBatch {
		if err := r.flush(ctx, false); err != nil {
			return false, err
		}
	}
	if next >= r.targets[i] {
		return true, nil
	}
	r.w.restores.Resume(c.TopicPartition, next)
	return false, nil
}

func (r *restorer) record(i int, rec *broker.Record) error {
	if len(rec.Key) == 1 && rec.Key[0] == commitKeyByte {
		commit, err := decodeCommit(rec.Value)
		if err != nil {
			return refuse("run the newer release again, or "+r.w.cfg.resetHint(), "changelog %s offset %d: %v", r.changelog[i], rec.Offset, err)
		}
		r.last[i] = commit
		return nil
	}
	r.rows[i] = true
	var value []byte
	if rec.Value != nil {
		value = append(make([]byte, 0, len(rec.Value)), rec.Value...)
	}
	r.batch[batchKey{i, string(rec.Key)}] = value
	r.bytes += len(rec.Key) + len(rec.Value) + 64
	return nil
}

// flush gives the rows read so far to the store, and to its file when they are
// many.
func (r *restorer) flush(ctx context.Context, last bool) error {
	run := make(store.Run, 0, len(r.batch))
	for k, v := range r.batch {
		run = append(run, store.Entry{Store: k.store, Key: []byte(k.key), Value: v})
	}
	clear(r.batch)
	r.bytes = 0
	slices.SortFunc(run, compareEntries)
	state := store.State{Positions: r.positions, CaughtUp: r.store.State().CaughtUp}
	if last {
		state.CaughtUp = time.Now().UnixMilli()
	} else if state.CaughtUp == 0 {
		state.CaughtUp = time.Now().UnixMilli() // begun now: nothing older was seen
	}
	recs := make(map[string]*commitRecord, len(r.last))
	for i, tp := range r.changelog {
		recs[tp.Topic] = r.last[i]
	}
	state.Record = encodeCommits(recs)
	r.store.Publish(run, nil, state)
	if !last && r.store.OverlayBytes() > r.w.overlayShare() {
		return r.store.Checkpoint(ctx)
	}
	return nil
}

// agree compares the ends of the changelogs with each other and with the
// committed offset. nil, nil: everything is empty, a first start.
func (r *restorer) agree(offset broker.Committed) (*commitRecord, error) {
	hint := r.w.cfg.resetHint()
	some := slices.ContainsFunc(r.last, func(c *commitRecord) bool { return c != nil })
	if !some {
		switch {
		case slices.Contains(r.rows, true):
			return nil, refuse(hint, "changelog of task %s has rows and no commit record", r.id)
		case offset.Offset > 0:
			return nil, refuse(hint, "the group's offset of %s is %d, and the changelogs of the task are empty: its state is gone", r.input, offset.Offset)
		}
		return nil, nil
	}
	newest := slices.MaxFunc(r.last, func(a, b *commitRecord) int { return cmp.Compare(a.seq(), b.seq()) })
	for i, rec := range r.last {
		if rec == nil && !r.rows[i] && !newest.knows(r.sub.Feeds[i].View.Store) {
			// A store that the schema did not have: its columns are said to be new.
			continue
		}
		if rec.seq() != newest.Seq {
			return nil, refuse(hint, "the changelogs of task %s disagree: %s ends at seq %d, another at %d",
				r.id, r.changelog[i].Topic, rec.seq(), newest.Seq)
		}
	}
	return newest, nil
}

// fresh is the first start of a task.
func (l *life) fresh(offset broker.Committed, inputStart int64) error {
	if offset.Offset < 0 {
		l.setPosition(inputStart)
	}
	l.rec.Columns = columnsOf(l.sub.Feeds)
	l.rec.InputID = l.w.layout.topics[l.input.Topic].ID
	if l.sub.Repartition != nil {
		l.rec.SourceID = l.sourceID()
		l.rec.Upstream = make([]upstream, l.w.layout.partitions[l.sub.Name])
		for i := range l.rec.Upstream {
			l.rec.Upstream[i].Event = noTime
		}
	}
	return l.serve()
}

// sourceID is the id of the topic upstream of a repartition.
func (l *life) sourceID() [16]byte {
	return l.w.layout.topics[l.sub.Repartition.Source.Topic].ID
}

// adopt goes on from a commit record. It wins over a committed offset that is
// behind: they are written by one transaction, of which a broker that lost
// power may have kept the changelog's part alone.
func (l *life) adopt(rec *commitRecord, offset broker.Committed) error {
	hint := l.w.cfg.resetHint()
	if offset.Offset > rec.Position {
		return refuse(hint, "the group's offset of %s is %d, ahead of the changelogs' %d: committed state is missing", l.input, offset.Offset, rec.Position)
	}
	if offset.Offset >= 0 && offset.Offset < rec.Position {
		l.log.Warn("the commit record is ahead of the group's offset, and wins", "record", rec.Position, "offset", offset.Offset)
	}
	if id := l.w.layout.topics[l.input.Topic].ID; rec.InputID != id {
		return refuse(hint, "input %s was created anew: its offsets mean other records", l.input.Topic)
	}
	if l.sub.Repartition != nil && rec.SourceID != l.sourceID() {
		return refuse(hint, "source topic %s was created anew: its offsets mean other records", l.sub.Repartition.Source.Topic)
	}
	if n := l.w.layout.partitions[l.sub.Name]; l.sub.Repartition != nil && len(rec.Upstream) != int(n) {
		return refuse(hint, "task %s was written with %d source partitions, and there are %d", l.id, len(rec.Upstream), n)
	}
	if err := l.compatible(rec.Columns); err != nil {
		return err
	}
	l.rec = rec.clone()
	l.rec.Columns = columnsOf(l.sub.Feeds)
	l.setPosition(rec.Position)
	return l.serve()
}

// compatible compares the columns that the state was written with to the
// schema's. Leaving one out is free; a new or a changed one would answer from
// part of its records.
func (l *life) compatible(old map[string]string) error {
	var added, changed []string
	for name, fp := range columnsOf(l.sub.Feeds) {
		switch was, ok := old[name]; {
		case !ok:
			added = append(added, name)
		case was != fp:
			changed = append(changed, name)
		}
	}
	var reasons []string
	for _, is := range []struct {
		what  string
		names []string
	}{{"new", added}, {"changed", changed}} {
		if len(is.names) > 0 {
			slices.Sort(is.names)
			reasons = append(reasons, is.what+" in the schema: "+joinNames(is.names))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return refuseStart(l.w.cfg.resetHint(), "the state of task %s was written by another schema, and its rows would not be whole (%s)",
		l.id, strings.Join(reasons, "; "))
}

// serve publishes the restored state and answers reads from now on.
func (l *life) serve() error {
	if l.sub.Repartition == nil {
		l.rec.Lag = max(0, l.end-l.position)
	}
	l.last = l.rec.clone()
	ids := make([][16]byte, len(l.changelog))
	for i, tp := range l.changelog {
		ids[i] = l.w.layout.topics[tp.Topic].ID
	}
	l.store.Publish(nil, l.published(), l.storeState())
	l.serving.Store(&serving{store: l.store, incarnations: ids, over: make(chan struct{})})
	l.w.hub.touched(storesOf(l.sub), l.id.Partition, read.Changed)
	l.event = l.rec.Stream
	return nil
}
