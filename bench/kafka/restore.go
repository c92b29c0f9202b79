package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/schema"
)

const restoreBudget = 0.8

// restore measures how the tasks come back without their files: of the view of
// many keys, and of the example.
func (b *bench) restore(ctx context.Context) error {
	slots, err := b.slotsSchema(slotsTopic)
	if err != nil {
		return err
	}
	flights, err := b.flightsSchema(flightsTopic)
	if err != nil {
		return err
	}
	if err := b.restored(ctx, "restore-flights", b.newApp(flights), 2*partitions, nil); err != nil {
		return err
	}
	return b.restored(ctx, "restore-slots", b.newApp(slots), partitions, b.inMemory)
}

// restored fills the changelogs, and measures, in turn, fetching them alone and
// restoring from them. with is called with the last instance while it runs, and
// what the process held before it.
func (b *bench) restored(ctx context.Context, name string, a *app, tasks int, with func(context.Context, *worker, memory) error) error {
	w, err := a.start("a", nil)
	if err != nil {
		return err
	}
	err = w.until(ctx, "all is in", caughtUp(tasks))
	if err = errors.Join(err, w.stop()); err != nil {
		return err
	}
	var alone, back []usage
	var v volume
	for i := range b.repeat {
		from := now()
		if v, err = bare(ctx, b.cluster.client, changelogs(a), skipping); err != nil {
			return err
		}
		alone = append(alone, from.till())
		u, err := b.restoredOnce(ctx, fmt.Sprintf("%s-%d", name, i), a, tasks, i == b.repeat-1, with)
		if err != nil {
			return err
		}
		back = append(back, u)
	}
	raw, took := medians(alone), medians(back)
	b.report.add(line{phase: name, what: "fetch alone", figure: raw.rates(v.records, v.bytes)})
	l := line{phase: name, what: "restore, beside fetch alone", figure: took.rates(v.records, v.bytes)}
	b.report.add(l.atLeast(raw.wall.Seconds()/took.wall.Seconds(), restoreBudget))
	b.report.add(line{phase: name, what: "processor time, fetch alone of restore", figure: fmt.Sprintf("%.1f of %.1f s", raw.cpu.Seconds(), took.cpu.Seconds()),
		ratio: fmt.Sprintf("%.2f", raw.cpu.Seconds()/took.cpu.Seconds())})
	return nil
}

// medians are those of time passed and of processor time, each for itself.
func medians(us []usage) usage {
	var walls, cpus []time.Duration
	for _, u := range us {
		walls, cpus = append(walls, u.wall), append(cpus, u.cpu)
	}
	return usage{median(walls), median(cpus)}
}

// changelogs are all partitions of an application's.
func changelogs(a *app) []broker.TopicPartition {
	var tps []broker.TopicPartition
	for _, v := range a.topology.Views {
		if !v.Global {
			tps = append(tps, spread(schema.Changelog(a.name, v.Store), partitions)...)
		}
	}
	return tps
}

// restoredOnce deletes the files and measures from when the tasks begin until
// all run.
func (b *bench) restoredOnce(ctx context.Context, name string, a *app, tasks int, last bool, with func(context.Context, *worker, memory) error) (usage, error) {
	if err := os.RemoveAll(a.dir); err != nil {
		return usage{}, err
	}
	before, err := held()
	if err != nil {
		return usage{}, err
	}
	var u usage
	var w *worker
	err = b.profiled(name, func() error {
		if w, err = a.start("a", nil); err != nil {
			return err
		}
		if err := w.until(ctx, "tasks begin", func(s processor.Status) bool { return len(s.Tasks) > 0 }); err != nil {
			return err
		}
		from := now()
		err := w.until(ctx, "tasks run", running(tasks))
		u = from.till()
		return err
	})
	if w == nil {
		return u, err
	}
	if err == nil && last && with != nil {
		err = with(ctx, w, before)
	}
	return u, errors.Join(err, w.stop())
}
