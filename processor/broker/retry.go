package broker

import (
	"context"
	"fmt"
	"time"
)

const (
	minBackoff = 20 * time.Millisecond
	maxBackoff = time.Second
	// unknownTopicPatience is how long "unknown topic" is taken for a topic
	// that is not known everywhere yet.
	unknownTopicPatience = 2 * time.Second
)

// bounded gives a call a deadline where its context has none.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, 3*c.cfg.RequestTimeout)
}

// retry repeats try, which must be safe to repeat, while its error is
// retriable and the context lives. The error is the last one of try.
func (c *Client) retry(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	start := time.Now()
	for b := (backoff{}); ; {
		err := try(ctx)
		if err == nil || !Retriable(err) {
			return err
		}
		if isCode(err, ErrUnknownTopic, ErrUnknownTopicID) && time.Since(start) > unknownTopicPatience {
			return err
		}
		if wait := b.wait(ctx); wait != nil {
			return fmt.Errorf("%w (gave up: %w)", err, wait)
		}
	}
}

// backoff doubles its pauses.
type backoff struct{ next time.Duration }

// wait sleeps, or returns the context's error as soon as it ends.
func (b *backoff) wait(ctx context.Context) error {
	b.next = min(max(2*b.next, minBackoff), maxBackoff)
	return sleep(ctx, b.next)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
