package processor

import (
	"context"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
)

// repartitionInput takes the envelopes of a repartition topic: records, each
// once, and the marks that move stream time.
type repartitionInput struct {
	*life
	values []view.Value
}

func newRepartitionInput(l *life) *repartitionInput {
	return &repartitionInput{life: l, values: make([]view.Value, len(l.sub.Repartition.Source.Fields))}
}

func (in *repartitionInput) record(_ context.Context, r *broker.Record) error {
	kind, err := envelopeKind(r.Value)
	if err != nil {
		return in.bad(r, in.sub.Name, err)
	}
	if kind == kindMark {
		return in.mark(r)
	}
	o, rest, err := readOrigin(r.Value)
	if err != nil || o.Partition < 0 || int(o.Partition) >= len(in.rec.Upstream) {
		return in.bad(r, in.sub.Name, errEnvelope)
	}
	u := &in.rec.Upstream[o.Partition]
	if o.Offset < u.Next || (o.Offset == u.Next && o.Index < u.Index) {
		in.w.metrics.repeats.Inc()
		return nil
	}
	// One that is bad counts as taken: its place must not come again.
	u.took(o)
	in.progress = true
	if err := readFields(in.values, in.sub.Repartition.Source.Fields, rest); err != nil {
		return in.bad(r, in.sub.Name, err)
	}
	at := view.Place{Time: o.Event, Partition: o.Partition, Offset: o.Offset}
	for _, f := range in.agg.feeds {
		if err := in.agg.apply(f, in.values, at, in.rec.Stream); err != nil {
			if err := in.bad(r, f.View.Name, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *repartitionInput) mark(r *broker.Record) error {
	m, err := decodeMark(r.Value)
	if err != nil {
		return in.bad(r, in.sub.Name, err)
	}
	before := unheard(in.rec.Upstream)
	m.take(in.rec.Upstream, r.Offset)
	if before != unheard(in.rec.Upstream) {
		in.lastIdle = time.Time{} // readiness waits for it: commit with the next tick
	}
	in.rec.Stream = streamTime(in.rec.Stream, in.rec.Upstream)
	in.rec.Lag, in.rec.CaughtUp = standing(in.rec.Upstream)
	in.progress = true
	return nil
}

func (in *repartitionInput) chunk(context.Context, *broker.Chunk) error { return nil }
