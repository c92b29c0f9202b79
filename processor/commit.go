package processor

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/processor/store"
)

// commit makes everything processed so far permanent: for a stateful task one
// Kafka transaction with the changed rows, the commit record and the input's
// offset, then a new snapshot; for another the offset alone.
func (l *life) commit(ctx context.Context) error {
	if l.store == nil {
		return l.commitOffset(ctx) // of what has landed
	}
	began := time.Now()
	if err := l.settle(ctx); err != nil {
		return err
	}
	run := l.expire(l.agg.takeRun())
	next := l.rec.clone()
	next.Seq++
	next.Wall, next.Owner = began.UnixMilli(), l.w.cfg.Instance
	ends, err := l.transact(ctx, &next, l.batches(run, &next))
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
	if l.fwd == nil {
		return nil
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

// batches encodes the transaction: to each changelog its store's rows and, last
// of all, the commit record; bad records to the dead letters.
func (l *life) batches(run store.Run, rec *commitRecord) []broker.TargetBatch {
	encoded := rec.encode()
	var targets []broker.TargetBatch
	for i, tp := range l.changelog {
		b := broker.NewBatchBuilder(broker.LZ4)
		for _, e := range rowsOf(run, i) {
			if b.Len() > 0 && b.Size()+len(e.Key)+len(e.Value) > maxBatch {
				targets = append(targets, broker.TargetBatch{TopicPartition: tp, Records: b})
				b = broker.NewBatchBuilder(broker.LZ4)
			}
			b.Append(rec.Wall, e.Key, e.Value, nil)
		}
		b.Append(rec.Wall, commitKey, encoded, nil)
		targets = append(targets, broker.TargetBatch{TopicPartition: tp, Records: b})
	}
	to := broker.TopicPartition{Topic: deadLetters(l.w.cfg.App)}
	for _, b := range l.letters.take() {
		targets = append(targets, broker.TargetBatch{TopicPartition: to, Records: b})
	}
	return targets
}

// transact commits the batches, through everything that may come between: a
// generation that ends aborts the transaction and the same batches go again
// under the next; one in doubt is found out about. It returns the offsets
// after the batches, where they are known.
func (l *life) transact(ctx context.Context, rec *commitRecord, batches []broker.TargetBatch) (map[broker.TopicPartition]int64, error) {
	stamp := l.stamp(rec.Seq)
	for {
		m := l.w.membership()
		if !m.tasks[l.id] {
			return nil, errMoved
		}
		ends, err := l.txn.Commit(ctx, broker.TxnCommit{
			Batches: batches, Group: l.w.cfg.App,
			MemberID: m.memberID, InstanceID: l.w.cfg.StaticID, Generation: m.generation,
			Offsets: map[broker.TopicPartition]broker.OffsetCommit{
				l.input: {Offset: rec.Position, Metadata: stamp},
			},
		})
		switch {
		case err == nil:
			l.stamped = stamp
			return ends, nil
		case errors.Is(err, broker.ErrGeneration):
			l.cond.set(Waiting, nil)
			err = l.awaitGeneration(ctx, m)
		case errors.Is(err, broker.ErrInDoubt), errors.Is(err, broker.ErrNeedsInit):
			var committed bool
			if committed, err = l.resolve(ctx, stamp, err); committed {
				l.stamped = stamp
				l.cond.set(Running, nil)
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

// stamp is what a transaction leaves as the metadata of the input's offset: its
// seq, and which life of the task wrote it. Without the latter a task that was
// away (its process stopped for a while, say) could take for its own the
// transaction with which another owner went on from the same seq.
func (l *life) stamp(seq uint64) string {
	return strconv.FormatUint(seq, 10) + " " + l.nonce
}

// resolve finds out what became of the transaction with that stamp: whether it
// was committed. Not committed means that the same batches may go again.
// Anything else is an error: the task moved, or must reopen from its changelogs.
func (l *life) resolve(ctx context.Context, stamp string, doubt error) (committed bool, err error) {
	l.cond.set(InDoubt, nil)
	l.w.metrics.inDoubt.Inc()
	l.w.often.tell(l.log, slog.LevelWarn, "transaction in doubt", "stamp", stamp, "err", doubt)
	if err := l.fence(ctx); err != nil {
		return false, err
	}
	at, err := l.committed(ctx)
	if err != nil {
		return false, err
	}
	l.w.often.tell(l.log, slog.LevelInfo, "doubt resolved", "stamp", stamp, "committed", at.Metadata == stamp)
	switch at.Metadata {
	case stamp:
		return true, nil
	case l.stamped:
		return false, nil
	}
	return false, fmt.Errorf("%w: offsets are stamped %q, expected %q or %q", errReopen, at.Metadata, l.stamped, stamp)
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
	l.progress = landed.Next != l.position
	if err != nil || landed.Next == l.held {
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
		Offsets: map[broker.TopicPartition]broker.OffsetCommit{l.input: {Offset: landed.Next, Metadata: l.inputID()}},
	})
	if err != nil {
		// Nothing is lost: the next commit says the same or more.
		l.log.Debug("offset not committed", "err", err)
		l.progress = true
		return ctx.Err()
	}
	l.held = landed.Next
	return nil
}

// inputID is the id of the input's topic as text: the metadata of an offset
// that has no commit record beside it.
func (l *life) inputID() string {
	id := l.w.layout.topics[l.input.Topic].ID
	return hex.EncodeToString(id[:])
}

// publish makes a committed transaction visible.
func (l *life) publish(run store.Run, rec *commitRecord, ends map[broker.TopicPartition]int64) {
	l.rec.Seq, l.rec.Wall = rec.Seq, rec.Wall
	l.progress = false
	for i, tp := range l.changelog {
		if end, ok := ends[tp]; ok {
			l.positions[i].Next = end
		}
	}
	l.caughtUp = time.Now().UnixMilli()
	l.trimmed.Store(rec.Position)
	l.show(run, rec)
	for i := range l.sweeps {
		l.sweeps[i].committed(l.store)
	}
}
