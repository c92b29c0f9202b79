package processor

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// crashPoints are the requests around which a process may die, and at which of
// them, counted from its start.
var crashPoints = []struct {
	key int16
	nth int
}{
	{22, 2}, {9, 2}, {24, 3}, {0, 9}, {25, 4}, {28, 3}, {26, 3}, {26, 9}, {8, 1}, {10, 3}, {11, 1}, {11, 2}, {14, 1}, {12, 2}, {1, 9},
}

// What happens at a crash point.
var crashes = []struct {
	name string
	do   func(s *sim, in *simInstance, crashed chan<- bool) fate
}{
	{"killed before", func(_ *sim, in *simInstance, crashed chan<- bool) fate {
		in.host.Kill(false)
		crashed <- true
		return unsent
	}},
	{"killed after", func(_ *sim, in *simInstance, crashed chan<- bool) fate {
		time.AfterFunc(20*time.Millisecond, func() { in.host.Kill(true); crashed <- true })
		return silence
	}},
	// The request waits with the process, and reaches the broker long after
	// another instance has gone on.
	{"stopped", func(_ *sim, in *simInstance, _ chan<- bool) fate {
		in.host.Freeze()
		time.AfterFunc(25*time.Second, in.host.Thaw)
		return delivered
	}},
	{"answer lost", func(*sim, *simInstance, chan<- bool) fate { return unanswered }},
	{"connection lost", func(*sim, *simInstance, chan<- bool) fate { return unsent }},
}

// TestCrashPoints kills or stops a process around each kind of request that a
// commit, a start or the group takes, before and after the broker has done it.
func TestCrashPoints(t *testing.T) {
	for i, point := range crashPoints {
		for j, crash := range crashes {
			if *simSeeds <= fewSeeds && (i+j)%2 == 1 {
				continue // the others with -seeds
			}
			t.Run(requestNames[point.key]+" "+crash.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					newSim(t, uint64(point.key)).during(func(s *sim) { s.crash(point.key, point.nth, crash.do) })
				})
			})
		}
	}
}

// crash runs two instances and has one crash at the nth request of a kind.
func (s *sim) crash(key int16, nth int, crash func(*sim, *simInstance, chan<- bool) fate) {
	crashed := make(chan bool, 1)
	var reached atomic.Bool
	s.produce(50)
	s.start(0, s.t.TempDir(), func(in *simInstance) {
		n := 0
		in.wire.set(func(k int16) fate {
			if k != key {
				return delivered
			}
			if n++; n != nth {
				return delivered
			}
			reached.Store(true)
			return crash(s, in, crashed)
		})
	})
	s.start(1, s.t.TempDir())
	for range 30 {
		time.Sleep(300 * time.Millisecond)
		s.produce(1 + s.rng.IntN(20))
		s.contents()
		select {
		case <-crashed:
			dir := s.kill(0, true)
			time.Sleep(time.Second)
			s.start(0, dir)
		default:
		}
	}
	if len(crashed) > 0 {
		<-crashed
		s.start(0, s.kill(0, true))
	}
	s.settle(4 * time.Minute)
	if !reached.Load() {
		s.t.Errorf("%s number %d was never sent", requestNames[key], nth)
	}
}
