package main

import (
	"context"
	"fmt"
	"time"

	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

const (
	readFor   = time.Second
	pointMost = 3.0  // µs
	topMost   = 50.0 // µs
)

// inMemory measures what an instance that has restored the slots holds, and how
// it answers.
func (b *bench) inMemory(ctx context.Context, w *worker, before memory) error {
	if err := b.tellMemory("restored", w, before); err != nil {
		return err
	}
	if err := w.until(ctx, "it is ready", func(s processor.Status) bool { return s.Ready }); err != nil {
		return err
	}
	if err := w.hasSlots(ctx, b.data); err != nil {
		return err
	}
	if err := b.profiled("read-key", func() error { return b.point(ctx, w) }); err != nil {
		return err
	}
	return b.profiled("read-top", func() error { return b.top(ctx, w) })
}

func (b *bench) tellMemory(when string, w *worker, before memory) error {
	m, err := held()
	if err != nil {
		return err
	}
	overlay := int64(0)
	for _, t := range w.Status().Tasks {
		overlay += t.Overlay
	}
	m = m.minus(before)
	per := func(n int64) float64 { return float64(n) / float64(b.data.slots) }
	b.report.add(line{phase: "memory", what: "MB for each million keys, " + when, figure: fmt.Sprintf(
		"heap %.0f, resident %.0f, file pages %.0f; of these not in files yet %.0f", per(m.heap), per(m.anonymous), per(m.mapped), per(overlay))})
	return nil
}

// point measures reads of one key, of all keys of a part of the departures in
// turn.
func (b *bench) point(ctx context.Context, w *worker) error {
	var requests [][]*read.Request
	err := b.data.each(func(line []byte) error {
		if len(requests) == 10_000 {
			return nil
		}
		slot, err := appendSlot(nil, line)
		q := read.Query{Store: "slot", Op: read.Get, Keys: [][]view.Value{{view.OfString(string(slot))}}}
		requests = append(requests, []*read.Request{{Query: q, Partition: view.Murmur2.Of(slot, partitions)}})
		return err
	})
	if err != nil {
		return err
	}
	i := 0
	each, err := timed(func() error {
		as, err := w.Read(ctx, requests[i%len(requests)])
		i++
		switch {
		case err != nil:
			return err
		case as[0].Err != nil:
			return as[0].Err
		case as[0].Rows[0] == nil:
			return fmt.Errorf("a slot that was written is not there")
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.report.add(line{phase: "reads", what: "one key, µs", figure: fmt.Sprintf("%.2f", each)}.atMost(each, pointMost))
	return nil
}

// top measures the ten largest of all keys of the instance.
func (b *bench) top(ctx context.Context, w *worker) error {
	var requests []*read.Request
	for p := range int32(partitions) {
		requests = append(requests, &read.Request{Query: read.Query{Store: "slot", Op: read.Top, Ranking: "delayMinutes", First: 10}, Partition: p})
	}
	each, err := timed(func() error {
		as, err := w.Read(ctx, requests)
		if err != nil {
			return err
		}
		for _, a := range as {
			if a.Err != nil {
				return a.Err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.report.add(line{phase: "reads", what: "the top ten of each of 12 tasks, µs", figure: fmt.Sprintf("%.1f", each)}.atMost(each, topMost))
	return nil
}

// timed is what f takes of the processors, in µs, the first time left out: what
// goes on beside this process does not count.
func timed(f func() error) (float64, error) {
	if err := f(); err != nil {
		return 0, err
	}
	n, from := 0, now()
	for time.Since(from.at) < readFor {
		for range 64 {
			if err := f(); err != nil {
				return 0, err
			}
			n++
		}
	}
	return float64(from.till().cpu.Microseconds()) / float64(n), nil
}
