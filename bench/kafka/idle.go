package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/view/schema"
)

const idleBudget = 0.05

// idling measures 100 tasks with nothing to do: of views that are fed directly;
// of views behind a repartition, half of them sources; and the former with a
// second instance in this process, so that each has the other's as standbys.
func (b *bench) idling(ctx context.Context) error {
	if err := b.cluster.create(ctx, "idle-100", many); err != nil {
		return err
	}
	if err := b.cluster.create(ctx, "idle-50", many/2); err != nil {
		return err
	}
	direct, err := b.slotsSchema("idle-100")
	if err != nil {
		return err
	}
	behind, err := b.flightsSchema("idle-50")
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name      string
		topology  *schema.Topology
		instances []string
	}{
		{"100 tasks with state", direct, []string{"a"}},
		{"50 sources, 50 repartitioned", behind, []string{"a"}},
		{"100 tasks, 100 standbys, 2 instances", direct, []string{"a", "b"}},
	} {
		if err := b.idled(ctx, c.name, b.newApp(c.topology), c.instances); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func (b *bench) idled(ctx context.Context, name string, a *app, instances []string) (err error) {
	var ws []*worker
	defer func() {
		for _, w := range ws {
			err = errors.Join(err, w.stop())
		}
	}()
	for _, in := range instances {
		w, err := a.start(in, func(c *processor.Config) { c.MmapSize = 64 << 20 })
		if err != nil {
			return err
		}
		ws = append(ws, w)
	}
	for _, w := range ws {
		if err := w.until(ctx, "all are there", settled(many, len(instances))); err != nil {
			return err
		}
	}
	if err := rest(ctx, 5*time.Second); err != nil { // what a start leaves behind
		return err
	}
	return b.profiled(fmt.Sprintf("idle-%d", b.apps), func() error {
		from := now()
		if err := rest(ctx, b.idle); err != nil {
			return err
		}
		u := from.till()
		cores := u.cpu.Seconds() / u.wall.Seconds()
		b.report.add(line{phase: "idle", what: name, figure: fmt.Sprintf("%.1f %% of a core", 100*cores)}.atMost(cores, idleBudget))
		return nil
	})
}

// settled says whether an instance owns its share of the tasks and, if there are
// several instances, has as many copies beside.
func settled(tasks, instances int) func(processor.Status) bool {
	return func(s processor.Status) bool {
		own, copies := 0, 0
		for _, t := range s.Tasks {
			switch t.State {
			case processor.Running.String():
				own++
			case processor.Following.String():
				copies++
			}
		}
		return s.Ready && own == tasks/instances && copies >= (tasks-own)
	}
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
