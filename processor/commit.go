package processor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/processor/store"
)

// commit makes everything processed so far permanent: for a stateful task one
// Kafka transaction with the changed rows, the commit record and the input's
// offset, then a new snapshot; for another the offset alone.
func (l *life) commit(ctx context.Context) error {
	began := time.Now()
	if err := l.settle(ctx); err != nil {
		return err
	}
	if l.store == nil {
		return l.commitOffset(ctx)
	}
	run := l.expire(l.agg.takeRun())
	next := l.rec.clone()
	next.Seq++
	next.Wall = began.UnixMilli()
	batches := l.batches(run, &next)
	ends, err := l.transact(ctx, &next, batches)
	if err != nil {
		return err
	}
	l.publish(run, &next, ends)
	l.w.metrics.commits.Inc()
	l.w.metrics.commitSeconds.Observe(time.Since(began).Seconds())
	return nil
}

// settle waits until everything forwarded is acknowledged: the source's offset
// must not pass a record that may be lost.
func (l *life) settle(ctx context.Context) error {
	if l.fwd == nil || l.store == nil {
		return nil // commitOffset takes what has landed
	}
	for {
		_, out, err := l.fwd.flights.state()
		if err != nil || out == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.fwd.flights.signal:
		}
	}
}

// batches encodes the transaction: the rows of each store and the commit
// record, last, to its changelog; bad records to the dead letters.
func (l *life) batches(run store.Run, rec *commitRecord) []broker.TargetBatch {
	now := rec.Wall
	encoded := rec.encode()
	targets := make([]broker.TargetBatch, len(l.changelog), len(l.changelog)+1)
	for i, tp := range l.changelog {
		targets[i] = broker.TargetBatch{TopicPartition: tp, Records: broker.NewBatchBuilder(broker.LZ4)}
	}
	for _, e := range run {
		targets[e.Store].Records.Append(now, e.Key, e.Value, nil)
	}
	for _, t := range targets {
		t.Records.Append(now, commitKey, encoded, nil)
	}
	if l.letters.Len() > 0 {
		to := broker.TopicPartition{Topic: deadLetters(l.w.cfg.App)}
		targets = append(targets, broker.TargetBatch{TopicPartition: to, Records: l.letters})
		l.letters = broker.NewBatchBuilder(broker.LZ4)
	}
	return targets
}

// transact commits the batches, through everything that may come between: a
// generation that ends aborts the transaction and the same batches go again
// under the next; one in doubt is found out about. It returns the offsets
// after the batches, where they are known.
func (l *life) transact(ctx context.Context, rec *commitRecord, batches []broker.TargetBatch) (map[broker.TopicPartition]int64, error) {
	for {
		m := l.w.membership()
		if !m.tasks[l.id] {
			return nil, errMoved
		}
		ends, err := l.txn.Commit(ctx, broker.TxnCommit{
			Batches: batches, Group: l.w.cfg.App,
			MemberID: m.memberID, InstanceID: l.w.cfg.StaticID, Generation: m.generation,
			Offsets: map[broker.TopicPartition]broker.OffsetCommit{
				l.input: {Offset: rec.Position, Metadata: strconv.FormatUint(rec.Seq, 10)},
			},
		})
		switch {
		case err == nil:
			return ends, nil
		case errors.Is(err, broker.ErrGeneration):
			l.cond.set(Waiting, nil)
			err = l.awaitGeneration(ctx, m)
		case errors.Is(err, broker.ErrInDoubt), errors.Is(err, broker.ErrNeedsInit):
			var committed bool
			if committed, err = l.resolve(ctx, rec.Seq, err); committed {
				return nil, nil
			}
		}
		if err != nil {
			return nil, err
		}
		l.cond.set(Running, nil)
	}
}

// awaitGeneration waits until the group has settled into another generation
// than m's.
func (l *life) awaitGeneration(ctx context.Context, m *membership) error {
	for {
		now := l.w.membership()
		if now.generation != m.generation || now.memberID != m.memberID {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-now.over:
		}
	}
}

// resolve finds out what became of the transaction with seq: whether it was
// committed. Not committed means that the same batches may go again. Anything
// else is an error: the task moved, or must reopen from its changelogs.
func (l *life) resolve(ctx context.Context, seq uint64, doubt error) (committed bool, err error) {
	l.cond.set(InDoubt, nil)
	l.w.metrics.inDoubt.Inc()
	l.log.Warn("transaction in doubt", "seq", seq, "err", doubt)
	if err := l.fence(ctx); err != nil {
		return false, err
	}
	at, err := l.committedSeq(ctx)
	if err != nil {
		return false, err
	}
	l.log.Info("doubt resolved", "seq", seq, "committed", at)
	switch at {
	case seq:
		l.cond.set(Running, nil)
		return true, nil
	case seq - 1:
		return false, nil
	}
	return false, fmt.Errorf("%w: offsets say seq %d, expected %d or %d", errReopen, at, seq-1, seq)
}

// fence makes this task the holder of the transactional id: after a good
// heartbeat in a generation that assigns it, so that a process that was paused
// and lost the task does not fence its successor.
func (l *life) fence(ctx context.Context) error {
	wait := newBackoff()
	for {
		generation, err := l.w.member.Heartbeat(ctx)
		m := l.w.membership()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && !m.tasks[l.id]:
			return errMoved
		case err == nil && generation == m.generation:
			return l.txn.Init(ctx)
		}
		wait.sleep(ctx)
	}
}

// committedSeq reads the seq that the last committed transaction left as the
// metadata of the input's offset; 0: none.
func (l *life) committedSeq(ctx context.Context) (uint64, error) {
	c, err := l.committed(ctx)
	if err != nil || c.Offset < 0 {
		return 0, err
	}
	seq, err := strconv.ParseUint(c.Metadata, 10, 64)
	if err != nil {
		return 0, refuse(resetHint(l.w.cfg.App), "the group's offset of %s was not committed by this application (metadata %q)", l.input, c.Metadata)
	}
	return seq, nil
}

func (l *life) committed(ctx context.Context) (broker.Committed, error) {
	offsets, err := l.w.cfg.Client.CommittedOffsets(ctx, l.w.cfg.App, []broker.TopicPartition{l.input})
	if err != nil {
		return broker.Committed{}, fmt.Errorf("read the committed offset of %s: %w", l.input, err)
	}
	return offsets[l.input], nil
}

// commitOffset commits how far a source task without views is, acknowledged.
func (l *life) commitOffset(ctx context.Context) error {
	landed, _, err := l.fwd.flights.state()
	if err != nil || landed.Next == l.held {
		l.progress = landed.Next != l.position
		return err
	}
	m := l.w.membership()
	if !m.tasks[l.id] {
		return errMoved
	}
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err = l.w.cfg.Client.CommitOffsets(bounded, broker.GroupCommit{
		Group: l.w.cfg.App, MemberID: m.memberID, InstanceID: l.w.cfg.StaticID, Generation: m.generation,
		Offsets: map[broker.TopicPartition]broker.OffsetCommit{l.input: {Offset: landed.Next}},
	})
	if err != nil {
		// Nothing is lost: the next commit says the same or more.
		l.log.Debug("offset not committed", "err", err)
		return ctx.Err()
	}
	l.held = landed.Next
	l.progress = landed.Next != l.position
	return nil
}

// publish makes a committed transaction visible.
func (l *life) publish(run store.Run, rec *commitRecord, ends map[broker.TopicPartition]int64) {
	edge := l.last.Stream != rec.Stream
	l.last = *rec
	l.rec.Seq, l.rec.Wall = rec.Seq, rec.Wall
	l.progress = false
	for i, tp := range l.changelog {
		if end, ok := ends[tp]; ok {
			l.positions[i].Next = end
		}
	}
	l.trimmed.Store(rec.Position)
	l.rankings.follow(run)
	l.store.Publish(run, l.published(), l.storeState())
	l.w.hub.changed(l.id, l.sub, run, &l.last, edge)
}

// republish shows the same rows with other rankings.
func (l *life) republish() { l.store.Publish(nil, l.published(), l.storeState()) }

// published is what a snapshot carries beside its rows; it does not change.
type published struct {
	rec  commitRecord
	tops topTable
}

func (l *life) published() *published {
	return &published{rec: l.last, tops: l.rankings.publish()}
}

func (l *life) storeState() store.State {
	recs := make(map[string]*commitRecord, len(l.changelog))
	for _, tp := range l.changelog {
		recs[tp.Topic] = &l.last
	}
	return store.State{Record: encodeCommits(recs), Positions: l.positions, CaughtUp: time.Now().UnixMilli()}
}
