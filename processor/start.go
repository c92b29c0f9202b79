package processor

import (
	"context"
	"fmt"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/schema"
)

// start brings a life to where it can process: heartbeat good, the former owner
// fenced, the offsets read, the state restored, in this order.
func (l *life) start(ctx context.Context) error {
	if l.stateful() {
		l.txn = l.w.cfg.Client.NewTransaction(l.w.cfg.App+"-"+l.id.String(), transactionTimeout)
		if err := l.fence(ctx); err != nil {
			return fmt.Errorf("fence the former owner: %w", err)
		}
	}
	bounded, cancel := context.WithTimeout(ctx, 2*transactionTimeout)
	defer cancel()
	offset, err := l.committed(bounded)
	if err != nil {
		return err
	}
	earliest, err := l.w.cfg.Client.Offsets(bounded, []broker.TopicPartition{l.input}, broker.Earliest)
	if err != nil {
		return fmt.Errorf("read the log start of %s: %w", l.input, err)
	}
	if l.sub.Repartition == nil {
		ends, err := l.w.cfg.Client.Offsets(bounded, []broker.TopicPartition{l.input}, broker.LastStable)
		if err != nil {
			return fmt.Errorf("read the end of %s: %w", l.input, err)
		}
		l.end = ends[l.input]
	}
	first := earliest[l.input]
	l.stamped = offset.Metadata
	l.setPosition(offset.Offset)
	if offset.Offset < 0 {
		l.setPosition(first)
	}
	switch {
	case l.stateful():
		err = l.restore(ctx, offset, first)
	case offset.Offset >= 0 && offset.Metadata != "" && offset.Metadata != l.inputID():
		err = refuse(l.w.cfg.resetHint(), "input %s was created anew: its offsets mean other records", l.input.Topic)
	}
	if err != nil {
		return err
	}
	return l.begin()
}

// begin sets up what takes the records.
func (l *life) begin() error {
	if l.stateful() { // not before: a file may have been discarded
		l.agg = newAggregator(l.sub, l.store, l.w.metrics)
		for i := range l.sweeps {
			l.sweeps[i].reset()
		}
	}
	l.held = l.position
	l.lastNew = time.Now().UnixMilli()
	if l.sub.Repartition != nil {
		l.in = newRepartitionInput(l)
		return nil
	}
	if len(l.sub.Forwards) > 0 || !l.stateful() {
		l.fwd = l.newForwarder()
		l.forward.Store(l.fwd)
		l.w.markSoon()
	}
	l.in = newSourceInput(l, l.w.layout.partitions[l.sub.Name])
	return nil
}

func (l *life) newForwarder() *forwarder {
	f := &forwarder{
		sender:   l.w.producer.NewSender(),
		letterTo: broker.TopicPartition{Topic: deadLetters(l.w.cfg.App)},
		flights:  newFlights(sourceProgress{Next: l.position, End: max(l.end, l.position), Event: noTime}),
	}
	for _, r := range l.sub.Forwards {
		t := &target{
			Repartition: r,
			topic:       (&schema.Subtopology{Name: r.Name, Repartition: r}).TopicOf(l.w.cfg.App),
			dropped:     l.w.metrics.nullKeys.WithLabelValues(r.Name),
		}
		for range l.w.layout.partitions[r.Name] {
			t.batches = append(t.batches, broker.NewBatchBuilder(broker.LZ4))
		}
		f.targets = append(f.targets, t)
	}
	return f
}

// columnsOf are the fingerprints of what the stores of a task hold.
func columnsOf(feeds []*schema.Feed) map[string]string {
	columns := make(map[string]string)
	for _, f := range feeds {
		for i := range f.View.Columns {
			if c := &f.View.Columns[i]; c.Role == view.AggRole || c.Role == view.KeyRole {
				columns[f.View.Store+"."+c.Name] = c.Fingerprint
			}
		}
	}
	return columns
}
