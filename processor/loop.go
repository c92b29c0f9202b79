package processor

import (
	"context"
	"errors"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
)

// loop is the task at work: it takes chunks, commits at intervals or by size,
// runs what others ask, and writes checkpoints in the background.
func (l *life) loop(ctx context.Context) error {
	interval := l.w.commitInterval()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var landed chan struct{}
	if l.fwd != nil {
		landed = l.fwd.flights.signal
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return l.leave(ctx)
		case c := <-l.inbox:
			err = l.take(ctx, c)
		case <-landed:
			_, _, err = l.fwd.flights.state()
		case <-tick.C:
			err = l.tick(ctx)
			if now := l.w.commitInterval(); now != interval {
				interval = now
				tick.Reset(interval)
			}
		case ask := <-l.asks:
			ask(l.taskCopy)
		case werr := <-l.writing:
			if err = l.written(werr); err == nil && !l.failed && l.paused {
				l.fetchOn()
			}
		}
		if err != nil {
			return err
		}
	}
}

// take processes one chunk and asks for the next.
func (l *life) take(ctx context.Context, c *broker.Chunk) error {
	defer c.Release()
	if c.Err != nil {
		return l.fault(ctx, c)
	}
	now := time.Now()
	l.latest = now.Add(l.w.cfg.MaxAhead).UnixMilli()
	records := 0
	next, err := c.Each(func(r *broker.Record) error {
		records++
		return l.in.record(ctx, r)
	})
	if err != nil {
		return err
	}
	if records > 0 {
		l.lastNew = now.UnixMilli()
		l.w.metrics.records.WithLabelValues(l.sub.Name).Add(float64(records))
	}
	l.progress = l.progress || next != l.position
	l.setPosition(next)
	if err := l.in.chunk(ctx, c); err != nil {
		return err
	}
	l.heldUp(ctx, c, now)
	if l.agg != nil && l.agg.bytes+l.letters.bytes >= l.w.cfg.CommitBytes {
		if err := l.commit(ctx); err != nil {
			return err
		}
	}
	l.fetchOn()
	return nil
}

// fetchOn asks for the next chunk, unless the overlay is at twice its share:
// then a checkpoint must come first.
func (l *life) fetchOn() {
	if l.store != nil && l.store.OverlayBytes() > 2*l.w.overlayShare() {
		l.paused = true
		return // the next tick sees to a checkpoint
	}
	l.paused = false
	l.w.fetcher.Resume(l.input, l.position)
}

// tick commits what there is to commit and begins a checkpoint when it is due.
// A commit that holds nothing but progress happens once a second.
func (l *life) tick(ctx context.Context) error {
	rows := l.agg != nil && (l.agg.dirty() || !l.letters.empty())
	idle := l.progress && time.Since(l.lastIdle) >= markInterval
	if rows || idle {
		if err := l.commit(ctx); err != nil {
			return err
		}
		l.lastIdle = time.Now()
	}
	if l.store == nil {
		return nil
	}
	l.save(time.Now())
	if l.rankings.repair() {
		l.republish()
	}
	return nil
}

// leave is the end of a life by order. An instance that stops commits what it
// has, so that the next owner has less to do again; a task that moved does not:
// its input is the other's already.
func (l *life) leave(ctx context.Context) error {
	if !errors.Is(context.Cause(ctx), errShutdown) {
		return ctx.Err()
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := l.settle(last)
	if err == nil && (l.progress || l.agg != nil && l.agg.dirty() || !l.letters.empty()) {
		err = l.commit(last)
	}
	if err != nil {
		l.log.Warn("last commit failed; its records are processed again", "err", err)
	}
	return ctx.Err()
}
