package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/processor/format"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/schema"
)

// sourceInput takes the records of a source topic: it decodes each once for
// every source type on the topic, feeds the views grouped by the producer's
// key, and forwards to the repartition topics.
type sourceInput struct {
	*life
	sources []*sourceDecoder
	n       int32 // partitions of the topic
	goal    goal
}

// goal is an end that was known at some time. Once it is reached, everything known
// then is in, however far the end has moved since.
type goal struct {
	end int64
	at  int64 // ms; 0: none
}

// reached is the newest time, in ms, of which it is now known that everything
// known then lies below next; 0: none newer.
func (g *goal) reached(next, end, at int64) int64 {
	if next >= end {
		*g = goal{}
		return at
	}
	was := *g
	if was.at == 0 || next >= was.end {
		*g = goal{end, at}
	}
	if was.at != 0 && next >= was.end {
		return was.at
	}
	return 0
}

type sourceDecoder struct {
	*schema.Source
	json   *format.JSON
	values []view.Value
	feeds  []*feed
}

func newSourceInput(l *life, partitions int32) *sourceInput {
	in := &sourceInput{life: l, n: partitions}
	for _, src := range l.sub.Sources {
		d := &sourceDecoder{
			Source: src,
			json:   format.NewJSON(src.Fields, src.KeyFormat),
			values: make([]view.Value, len(src.Fields)),
		}
		if l.agg != nil {
			for _, f := range l.agg.feeds {
				if f.Source == src {
					d.feeds = append(d.feeds, f)
				}
			}
		}
		in.sources = append(in.sources, d)
	}
	return in
}

func (in *sourceInput) record(ctx context.Context, r *broker.Record) error {
	if r.Value == nil {
		in.w.metrics.tombstones.WithLabelValues(in.sub.Name).Inc()
		return nil // carries no event
	}
	fr := format.Record{Timestamp: r.Timestamp, Key: r.Key, Value: r.Value, Header: func(name string) ([]byte, bool) {
		v, ok := r.Header(name)
		return v, ok && v != nil
	}}
	for _, d := range in.sources {
		if err := in.decoded(ctx, d, r, &fr); err != nil {
			return err
		}
	}
	return nil
}

// decoded processes a record as one source type. Its errors end the task; what
// is wrong with the record goes to the dead letters.
func (in *sourceInput) decoded(ctx context.Context, d *sourceDecoder, r *broker.Record, fr *format.Record) error {
	event, err := in.decode(d, fr)
	if err != nil {
		return in.bad(r, d.Name, err)
	}
	if len(d.feeds) > 0 {
		if err := in.checkKey(d, r); err != nil {
			var refused *RefusedError
			if errors.As(err, &refused) {
				return err
			}
			return in.bad(r, d.Name, err)
		}
	}
	in.event = max(in.event, event) // a bad record moves no time
	if in.agg != nil {
		in.rec.Stream = in.event
	}
	at := view.Place{Time: event, Partition: in.id.Partition, Offset: r.Offset}
	for _, f := range d.feeds {
		if err := in.agg.apply(f, d.values, at, in.rec.Stream); err != nil {
			if err := in.bad(r, f.View.Name, err); err != nil {
				return err
			}
		}
	}
	if in.fwd == nil {
		return nil
	}
	var failed error
	o := origin{Partition: in.id.Partition, Offset: r.Offset, Event: event}
	err = in.fwd.add(ctx, d.Source, d.values, o, func(reason error) {
		failed = errors.Join(failed, in.bad(r, d.Name, reason))
	})
	return errors.Join(err, failed)
}

// decode reads the record's fields into d.values and its event time.
func (in *sourceInput) decode(d *sourceDecoder, fr *format.Record) (int64, error) {
	if err := d.json.Decode(d.values, fr); err != nil {
		return 0, err
	}
	event := fr.Timestamp
	if d.Time >= 0 {
		v := d.values[d.Time]
		if v.IsNull() {
			return 0, fmt.Errorf("no event time: field %s is null", d.Fields[d.Time].Name)
		}
		event = v.Int()
	} else if event < 0 {
		return 0, errors.New("no event time: the record has no timestamp")
	}
	if event > in.latest {
		return 0, fmt.Errorf("event time %s is more than %s ahead of the clock", view.OfTime(event), in.w.cfg.MaxAhead)
	}
	return event, nil
}

// checkKey makes sure that a producer's key says what the record does, and that
// the record is in the partition that a reader will look in. The first is one
// bad record; the second means that the schema names the wrong partitioner, and
// going on would make reads miss rows.
func (in *sourceInput) checkKey(d *sourceDecoder, r *broker.Record) error {
	if r.Key == nil {
		return errors.New("the record has no Kafka key, and its source declares one")
	}
	in.agg.keys = in.agg.keys[:0]
	for _, i := range d.Key {
		in.agg.keys = append(in.agg.keys, d.values[i])
	}
	want := view.AppendPartitionBytes(in.agg.key[:0], d.KeyFormat, in.agg.keys)
	in.agg.key = want
	if string(want) != string(r.Key) {
		return fmt.Errorf("the Kafka key %.60q is not the record's key %.60q", r.Key, want)
	}
	if p := d.Partitioner.Of(r.Key, in.n); p != in.id.Partition {
		return refuseStart("declare the partitioner that the producer uses (partitioner: CRC32 or FNV1A), or take key off the source",
			"%s offset %d: key %.60q is in partition %d, and %s puts it in %d", in.input.Topic, r.Offset, r.Key, in.id.Partition, d.Partitioner, p)
	}
	return nil
}

// chunk is the end of a chunk: what was forwarded goes out, with what will be
// true once it is acknowledged.
func (in *sourceInput) chunk(ctx context.Context, c *broker.Chunk) error {
	if !c.Sure {
		in.goal = goal{}
	} else if at := in.goal.reached(in.position, c.HighWatermark, c.At.UnixMilli()); at > in.rec.CaughtUp {
		in.progress = in.progress || in.agg != nil
		in.rec.CaughtUp = at
	}
	in.end = max(in.end, c.HighWatermark) // a new leader may tell less than was told before
	if lag := max(0, in.end-in.position); lag != in.rec.Lag {
		in.progress = in.progress || in.agg != nil // reads are to know, even if nothing can be read
		in.rec.Lag = lag
	}
	if in.fwd == nil {
		return nil
	}
	if !in.stateful() { // elsewhere the transaction has them
		if err := in.fwd.sendLetters(ctx, in.letters.take()); err != nil {
			return err
		}
	}
	return in.fwd.flush(ctx, sourceProgress{
		Next: in.position, End: in.end, Event: in.event, CaughtUp: in.rec.CaughtUp, LastNew: in.lastNew,
	})
}

// bad puts a record that could not be processed aside, with where it was and
// why. The task goes on, unless it is configured to stop.
func (l *life) bad(r *broker.Record, what string, reason error) error {
	l.w.metrics.bad.WithLabelValues(what).Inc()
	if l.w.cfg.FailOnBadRecord {
		return refuse("mend or skip the record, or set onError: deadLetter", "%s offset %d: %v", l.input, r.Offset, reason)
	}
	l.log.Debug("bad record", "topic", l.input.Topic, "partition", l.input.Partition, "offset", r.Offset, "reason", reason)
	l.letters.add(l.input, r, what, reason)
	return nil
}
