package server

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, stop := context.WithCancel(context.Background())
		quiet, asked := withTimeout(parent, time.Second), withTimeout(parent, time.Second)
		child, cancel := context.WithCancel(asked)
		defer cancel()
		if quiet.timed.Load() != nil || asked.timed.Load() == nil {
			t.Error("a timer where nobody asked, or none where somebody did")
		}
		time.Sleep(999 * time.Millisecond)
		if quiet.Err() != nil || asked.Err() != nil || child.Err() != nil {
			t.Error("ended early")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		for _, ctx := range []context.Context{quiet, asked, child} {
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("at its end: %v", ctx.Err())
			}
		}
		<-child.Done()

		inner := withTimeout(withTimeout(parent, time.Second), time.Hour)
		if at, _ := inner.Deadline(); time.Until(at) != time.Second {
			t.Errorf("later than its parent: %v", time.Until(at))
		}
		later := withTimeout(parent, time.Hour)
		done := later.Done()
		stop()
		<-done
		if !errors.Is(later.Err(), context.Canceled) || !errors.Is(withTimeout(parent, time.Hour).Err(), context.Canceled) {
			t.Errorf("its parent has ended: %v", later.Err())
		}
		ended := withTimeout(context.Background(), time.Hour)
		done = ended.Done()
		ended.cancel()
		<-done
	})
}
