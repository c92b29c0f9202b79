//go:build !race

package store

import "testing"

// Under the race detector sync.Pool forgets at random.
func TestGetDoesNotAllocate(t *testing.T) {
	s := mustOpen(t, Options{Path: testPath(t), Stores: modelSpecs})
	s.Publish(Run{row(0, "in file", "v"), row(1, window("in file", 5), "v")}, nil, State{CaughtUp: 1})
	mustCheckpoint(t, s)
	s.Publish(Run{row(0, "in run", "v"), row(1, window("in run", 5), "v")}, nil, State{CaughtUp: 2})
	for store, keys := range [][]string{{"in file", "in run"}, {window("in file", 5), window("in run", 5)}} {
		for _, k := range keys {
			key := []byte(k)
			if n := testing.AllocsPerRun(1000, func() {
				snap := s.Snapshot()
				if _, ok := snap.Get(store, key); !ok {
					t.Fatalf("%q is missing", key)
				}
				snap.Release()
			}); n != 0 {
				t.Errorf("Get(%q) allocates %v times", key, n)
			}
		}
	}
}
