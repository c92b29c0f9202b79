package processor

import (
	"context"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/schema"
)

// sendMarks tells, once a second and when a source task has begun, every repartition partition how far this
// instance's source partitions are. A mark speaks only of what is acknowledged
// in every target, so it can never overtake a record that it claims.
func (w *Worker) sendMarks(ctx context.Context) error {
	tick := time.NewTicker(markInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-w.news:
		}
		now := time.Now()
		for _, sub := range w.cfg.Topology.Subtopologies {
			if sub.Repartition != nil {
				w.sendMark(ctx, sub, now)
			}
		}
	}
}

// markSoon has marks sent at once: those downstream know nothing of a source
// partition before its first.
func (w *Worker) markSoon() {
	select {
	case w.news <- struct{}{}:
	default: // they are about to be sent
	}
}

func (w *Worker) sendMark(ctx context.Context, sub *schema.Subtopology, now time.Time) {
	m := &mark{Wall: now.UnixMilli()}
	for _, t := range w.allTasks() {
		if t.sub.Repartition != nil || t.sub.Topic != sub.Repartition.Source.Topic {
			continue
		}
		if f := t.forward.Load(); f != nil {
			landed, _, _ := f.flights.state()
			m.Sources = append(m.Sources, landed.mark(t.id.Partition, now))
		}
	}
	if len(m.Sources) == 0 {
		return
	}
	value := m.encode()
	for p := range w.layout.partitions[sub.Name] {
		b := broker.NewBatchBuilder(broker.None)
		b.Append(m.Wall, nil, value, nil)
		tp := broker.TopicPartition{Topic: sub.TopicOf(w.cfg.App), Partition: p}
		err := w.producer.Produce(ctx, tp, b, func(_ int64, err error) {
			if err != nil {
				w.log.Debug("mark not sent", "topic", tp.Topic, "partition", tp.Partition, "err", err)
			}
		})
		if err != nil {
			return // the instance is stopping
		}
	}
}

// mark says it of one source partition. It is idle only if its end was seen a
// moment ago: one whose broker is out of reach may have records that nobody knows.
func (p sourceProgress) mark(partition int32, now time.Time) sourceMark {
	seen := now.UnixMilli()-p.CaughtUp < 3*markInterval.Milliseconds()
	quiet := now.UnixMilli()-p.LastNew >= idleAfter.Milliseconds()
	return sourceMark{
		Partition: partition, Next: p.Next, End: p.End, Event: p.Event, CaughtUp: p.CaughtUp,
		Idle: p.Next >= p.End && seen && quiet,
	}
}

// trim deletes from the repartition topics what is committed downstream.
func (w *Worker) trim(ctx context.Context) error {
	tick := time.NewTicker(trimInterval)
	defer tick.Stop()
	trimmed := make(map[broker.TopicPartition]int64)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		before := make(map[broker.TopicPartition]int64)
		for _, t := range w.allTasks() {
			if at := t.trimmed.Load(); t.sub.Repartition != nil && at > trimmed[t.input] {
				before[t.input] = at
			}
		}
		if len(before) == 0 {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, requestTimeout)
		if err := w.cfg.Client.DeleteRecords(bounded, before); err != nil {
			w.log.Warn("repartition topics not trimmed; tried again later", "err", err)
		} else {
			for tp, at := range before {
				trimmed[tp] = at
			}
		}
		cancel()
	}
}
