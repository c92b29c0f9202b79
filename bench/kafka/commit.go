package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/streamgauge/streamgauge/processor"
)

// many is how many tasks an instance with many has.
const many = 100

// commits measures commits and checkpoints of 12 and of 100 tasks.
func (b *bench) commits(ctx context.Context) error {
	for _, tasks := range []int32{partitions, many} {
		if err := b.committing(ctx, tasks); err != nil {
			return err
		}
	}
	return nil
}

// committing runs tasks under a steady load, with a checkpoint of each every five
// seconds.
func (b *bench) committing(ctx context.Context, tasks int32) error {
	topic := fmt.Sprintf("steady-%d", tasks)
	if err := b.cluster.create(ctx, topic, tasks); err != nil {
		return err
	}
	t, err := b.slotsSchema(topic)
	if err != nil {
		return err
	}
	w, err := b.newApp(t).start("a", func(c *processor.Config) { c.CheckpointInterval = 5 * time.Second })
	if err != nil {
		return err
	}
	if err := w.until(ctx, "tasks run", running(int(tasks))); err != nil {
		return errors.Join(err, w.stop())
	}
	name := fmt.Sprintf("commit-%d", tasks)
	err = b.profiled(name, func() error {
		from := now()
		n, err := b.steadily(ctx, topic, tasks)
		if err != nil {
			return err
		}
		return b.tellCommits(name, w, from.till(), n)
	})
	return errors.Join(err, w.stop())
}

// steadily writes records at the rate asked for, and says how many.
func (b *bench) steadily(ctx context.Context, topic string, partitions int32) (int, error) {
	n, from := 0, time.Now()
	_, err := b.write(ctx, topic, partitions, func(w func(key, value []byte) error) error {
		enough := errors.New("enough")
		err := b.data.each(func(line []byte) error {
			if n%100 == 0 {
				ahead := time.Duration(float64(n)/float64(b.rate)*float64(time.Second)) - time.Since(from)
				if ahead > 0 {
					time.Sleep(ahead)
				}
				if time.Since(from) > b.steady {
					return enough
				}
			}
			n++
			key, err := appendSlot(nil, line)
			if err != nil {
				return err
			}
			return w(key, line)
		})
		if errors.Is(err, enough) {
			return nil
		}
		return err
	})
	return n, err
}

func (b *bench) tellCommits(name string, w *worker, u usage, records int) error {
	families, err := w.metrics.Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		var what string
		switch f.GetName() {
		case "streamgauge_commit_seconds":
			what = "commits"
		case "streamgauge_checkpoint_seconds":
			what = "checkpoints"
		default:
			continue
		}
		h := f.GetMetric()[0].GetHistogram()
		n := float64(h.GetSampleCount())
		b.report.add(line{phase: name, what: what, figure: fmt.Sprintf("%.1f/s, mean %.1f ms, p99 about %.0f ms",
			n/u.wall.Seconds(), 1000*h.GetSampleSum()/n, 1000*quantile(h, 0.99))})
	}
	b.report.add(line{phase: name, what: "all in all, producer included", figure: fmt.Sprintf("%s rec/s take %.2f of a core",
		short(u.perSecond(records)), u.cpu.Seconds()/u.wall.Seconds())})
	return nil
}

// quantile is a quantile of a histogram, by straight lines within its buckets.
func quantile(h *dto.Histogram, q float64) float64 {
	rank := q * float64(h.GetSampleCount())
	lower, below := 0.0, 0.0
	for _, b := range h.GetBucket() {
		upper, n := b.GetUpperBound(), float64(b.GetCumulativeCount())
		if n >= rank && n > below && !math.IsInf(upper, 1) {
			return lower + (upper-lower)*(rank-below)/(n-below)
		}
		lower, below = upper, n
	}
	return lower
}
