package processor

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSimulation runs random clusters through kills, freezes, joins, leaves,
// lost answers and moving coordinators; at the end the stores must be a plain
// fold over the records (invariant 1), and no read may have gone back on the way
// (invariant 2).
func TestSimulation(t *testing.T) {
	seeds := []uint64{*simSeed}
	if *simSeed == 0 {
		seeds = nil
		if testing.Short() {
			*simSeeds = min(*simSeeds, 6)
		}
		for i := range *simSeeds {
			seeds = append(seeds, uint64(i)+1)
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				newSim(t, seed).during(func(s *sim) { s.live(40); t.Logf("answers by role: %v", s.watch.roles) })
			})
		})
	}
}

// during runs the cluster around f, and settles it afterwards.
func (s *sim) during(f func(*sim)) {
	ctx, cancel := context.WithCancel(s.t.Context())
	loading := make(chan error, 1)
	go func() { loading <- s.load.Run(ctx) }()
	defer func() {
		s.end()
		cancel()
		<-loading
		if err := s.loader.Close(); err != nil {
			s.t.Error(err)
		}
		s.broker.Close()
	}()
	f(s)
}

// trouble is what is to happen later, such as the end of what happens now.
type trouble struct {
	at time.Time
	do func()
}

// live has the cluster live for some rounds, troubled, and settle.
func (s *sim) live(rounds int) {
	var due []trouble
	for slot := range s.instances {
		s.start(slot, s.t.TempDir())
	}
	for range rounds {
		time.Sleep(time.Duration(100+s.rng.IntN(1900)) * time.Millisecond)
		s.produce(1 + s.rng.IntN(40))
		s.contents()
		if s.rng.IntN(3) == 0 {
			due = append(due, s.trouble())
		}
		due = slices.DeleteFunc(due, func(x trouble) bool {
			if x.do == nil {
				return true
			}
			if time.Now().Before(x.at) {
				return false
			}
			x.do()
			return true
		})
	}
	for _, x := range due {
		if x.do != nil {
			x.do()
		}
	}
	for _, in := range s.instances {
		in.wire.set(nil)
	}
	s.settle(4 * time.Minute)
}

// trouble has something happen, and returns what ends it.
func (s *sim) trouble() trouble {
	slot := s.rng.IntN(len(s.instances))
	in := s.instances[slot]
	later := time.Now().Add(time.Duration(s.rng.IntN(25_000)) * time.Millisecond)
	switch s.rng.IntN(8) {
	case 0:
		s.note("coordinators move")
		s.broker.RehashCoordinators()
	case 1:
		s.note("leaders move")
		s.broker.ShufflePartitionLeaders()
	case 2:
		if in != nil {
			dir := s.kill(slot, s.rng.IntN(2) == 0)
			return trouble{later, func() { s.start(slot, dir) }}
		}
	case 3:
		if in != nil {
			if err := s.stop(slot); err != nil {
				s.fail("instance %d ended with: %v", slot, err)
			}
			return trouble{later, func() { s.start(slot, in.dir) }}
		}
	case 4:
		if in != nil {
			s.note("freeze %d", slot)
			in.host.Freeze()
			return trouble{later, func() { s.note("thaw %d", slot); in.host.Thaw() }}
		}
	case 5:
		if in != nil {
			s.lose(in)
		}
	case 6:
		s.note("compact")
		s.broker.Compact()
	case 7:
		if in != nil {
			s.note("state of %d lost", slot)
			s.kill(slot, true)
			return trouble{later, func() { s.start(slot, s.t.TempDir()) }}
		}
	}
	return trouble{}
}

// lose has some of the next requests of one kind lost, in one way.
func (s *sim) lose(in *simInstance) {
	keys := sortedKeys(requestNames)
	key := keys[s.rng.IntN(len(keys))]
	how, left := unsent+fate(s.rng.IntN(3)), 1+s.rng.IntN(4)
	s.note("lose %d %s of %d, fate %d", left, requestNames[key], in.slot, how)
	in.wire.set(func(k int16) fate {
		if k != key || left == 0 {
			return delivered
		}
		left--
		return how
	})
}

func sortedKeys(m map[int16]string) []int16 {
	var keys []int16
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
