package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/read"
)

// storeBudget is what fetching and decoding are to cost beside committing and
// storing: processing is limited by the former.
const storeBudget = 1.0

// ingest measures both schemas from nothing to lag 0.
func (b *bench) ingest(ctx context.Context) error {
	flights, err := b.flightsSchema(flightsTopic)
	if err != nil {
		return err
	}
	slots, err := b.slotsSchema(slotsTopic)
	if err != nil {
		return err
	}
	err = b.ingested(ctx, "ingest-flights", flightsTopic, b.newApp(flights), func(w *worker) error { return w.hasFlights(ctx, b.data) })
	if err != nil {
		return err
	}
	return b.ingested(ctx, "ingest-slots", slotsTopic, b.newApp(slots), func(w *worker) error {
		if err := w.until(ctx, "all is in", caughtUp(partitions)); err != nil {
			return err
		}
		return w.hasSlots(ctx, b.data)
	})
}

// ingested measures one schema, beside fetching and decoding the same topic.
// Processor time is compared: what goes on beside this process disturbs it least.
func (b *bench) ingested(ctx context.Context, name, topic string, a *app, whole func(*worker) error) error {
	decoded, v, err := b.bareUsage(ctx, topic, decoding(a.topology.Sources[0]))
	if err != nil {
		return err
	}
	b.report.add(line{phase: name, what: "fetch and decode alone", figure: decoded.rates(v.records, v.bytes)})
	var taken usage
	err = b.profiled(name, func() error {
		from := now()
		w, err := a.start("a", nil)
		if err != nil {
			return err
		}
		err = whole(w)
		taken = from.till()
		return errors.Join(err, w.stop())
	})
	if err != nil {
		return err
	}
	b.report.add(line{phase: name, what: "exactly once; fetch and decode of all of it", figure: taken.rates(v.records, v.bytes),
		ratio: fmt.Sprintf("%.2f", decoded.cpu.Seconds()/taken.cpu.Seconds())})
	if a.topology.Sources[0].Key == nil {
		return nil // rows of a key are in many partitions: folding without repartitioning is another task
	}
	folded, v, err := b.bareUsage(ctx, topic, folding(a.topology))
	if err != nil {
		return err
	}
	b.report.add(line{phase: name, what: "fetched, decoded and folded in memory", figure: folded.rates(v.records, v.bytes)})
	kept := taken.cpu - folded.cpu
	b.report.add(line{phase: name, what: "fetch and decode beside commit and store", figure: fmt.Sprintf("%.1f s of a core, %.1f s", decoded.cpu.Seconds(), kept.Seconds())}.
		atLeast(decoded.cpu.Seconds()/kept.Seconds(), storeBudget))
	return nil
}

// bareUsage is what a bare loop over a topic takes.
func (b *bench) bareUsage(ctx context.Context, topic string, reader func() func(*broker.Record) error) (usage, volume, error) {
	from := now()
	v, err := bare(ctx, b.cluster.client, spread(b.cluster.name(topic), partitions), reader)
	return from.till(), v, err
}

// ask asks for the same of every partition.
func (w *worker) ask(ctx context.Context, q read.Query) ([]*read.Answer, error) {
	var requests []*read.Request
	for p := range int32(partitions) {
		requests = append(requests, &read.Request{Query: q, Partition: p})
	}
	answers, err := w.Read(ctx, requests)
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		if a.Err != nil {
			return nil, a.Err
		}
	}
	return answers, nil
}

// hasFlights waits until each airport has its departures, and each departure is
// counted: the answer is known, so that what is not exactly once is noticed.
func (w *worker) hasFlights(ctx context.Context, d *departures) error {
	total := int64(0)
	err := w.until(ctx, "all flights are counted", func(processor.Status) bool {
		answers, err := w.ask(ctx, read.Query{Store: "airport-totals", Op: read.Range, First: 1000})
		if err != nil {
			return false // not there yet
		}
		total = 0
		for _, a := range answers {
			for _, row := range a.Rows {
				total += row.Values[2].Int()
			}
		}
		return total >= int64(d.records)
	})
	if err != nil {
		return err
	}
	answers, err := w.ask(ctx, read.Query{Store: "airport-totals", Op: read.Range, First: 1000})
	if err != nil {
		return err
	}
	for _, a := range answers {
		for _, row := range a.Rows {
			if origin, n := row.Values[1].Str(), row.Values[2].Int(); n != d.origins[origin] {
				return fmt.Errorf("%s has %d departures, and %d were written", origin, n, d.origins[origin])
			}
		}
	}
	return nil
}

// hasSlots compares the number of slots and of departures with what was written.
func (w *worker) hasSlots(ctx context.Context, d *departures) error {
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	sizes, err := w.ask(bounded, read.Query{Store: "slot", Op: read.Size})
	if err != nil {
		return err
	}
	slots := int64(0)
	for _, a := range sizes {
		slots += a.Count
	}
	if slots != d.slots {
		return fmt.Errorf("there are %d slots, and %d were written", slots, d.slots)
	}
	return nil
}
