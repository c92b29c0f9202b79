package server

import (
	"context"
	"sync/atomic"
	"time"
)

// deadline is a context that ends at a time, as context.WithDeadline makes, but
// has a timer only once somebody asks for Done: a read answered from this
// instance never does, and a timer costs a tenth of its whole request. cancel
// must be called.
type deadline struct {
	context.Context // the parent
	at              time.Time
	timed           atomic.Pointer[timed]
}

type timed struct {
	context.Context
	cancel context.CancelFunc
}

func withTimeout(parent context.Context, d time.Duration) *deadline {
	at := time.Now().Add(d)
	if earlier, ok := parent.Deadline(); ok && earlier.Before(at) {
		at = earlier
	}
	return &deadline{Context: parent, at: at}
}

// Deadline is when the context ends.
func (d *deadline) Deadline() (time.Time, bool) { return d.at, true }

// Done is closed when the context ends.
func (d *deadline) Done() <-chan struct{} {
	if t := d.timed.Load(); t != nil {
		return t.Done()
	}
	t := &timed{}
	t.Context, t.cancel = context.WithDeadline(d.Context, d.at)
	if !d.timed.CompareAndSwap(nil, t) {
		t.cancel()
		t = d.timed.Load()
	}
	return t.Done()
}

// Err is why the context has ended.
func (d *deadline) Err() error {
	if t := d.timed.Load(); t != nil {
		return t.Err()
	}
	if err := d.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(d.at) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value asks the timed context once there is one: package context finds it by a
// key of its own, and needs no goroutine for each of its children then.
func (d *deadline) Value(key any) any {
	if t := d.timed.Load(); t != nil {
		return t.Value(key)
	}
	return d.Context.Value(key)
}

// cancel ends the context and stops its timer. One whose Done nobody has asked
// for by then has none to end.
func (d *deadline) cancel() {
	if t := d.timed.Load(); t != nil {
		t.cancel()
	}
}
