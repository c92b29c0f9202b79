package processor

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/streamgauge/streamgauge/processor/store"
)

// A backlog against maps: whatever comes in whatever order, the last row of each
// key comes out, sorted, once, and what was taken does not change when the
// backlog is filled anew.
func TestBacklog(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var b backlog
	var before, expected store.Run
	for range 60 {
		want := [2]map[string][]byte{{}, {}}
		size := 0
		for run := range rng.IntN(12) {
			keys := make([]string, rng.IntN(200))
			for i := range keys {
				keys[i] = fmt.Sprint(rng.IntN(300))
			}
			if run%4 > 0 { // as a transaction writes them
				slices.Sort(keys)
			}
			for _, k := range keys {
				var value []byte
				switch rng.IntN(10) {
				case 0: // a tombstone
				case 1:
					value = []byte{}
				case 2:
					value = make([]byte, rng.IntN(100_000))
				default:
					value = fmt.Append(nil, rng.Uint64())
				}
				i := rng.IntN(2)
				b.add(i, []byte(k), value)
				want[i][k] = value
				size += len(k) + len(value) + entryOverhead
			}
		}
		if b.bytes != size {
			t.Fatalf("counts %d bytes, %d came", b.bytes, size)
		}
		got := b.take()
		checkRun(t, before, expected)
		before, expected = got, nil
		for i, rows := range want {
			for _, k := range slices.Sorted(maps.Keys(rows)) {
				expected = append(expected, store.Entry{Store: i, Key: []byte(k), Value: rows[k]})
			}
		}
		checkRun(t, got, expected)
	}
}

func checkRun(t *testing.T, got, want store.Run) {
	t.Helper()
	same := func(a, b store.Entry) bool {
		return compareEntries(a, b) == 0 && string(a.Value) == string(b.Value) && (a.Value == nil) == (b.Value == nil)
	}
	if !slices.EqualFunc(got, want, same) {
		t.Fatalf("%d rows came out, not the %d that are the last of their keys", len(got), len(want))
	}
}
