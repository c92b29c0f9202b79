package chaos

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/streamgauge/streamgauge/internal/chaos/oracle"
)

func TestRealFlights(t *testing.T) {
	flights, err := realFlights("../..", 20_000)
	if err != nil {
		t.Fatal(err)
	}
	byDate := func(a, b oracle.Event) int { return cmp.Compare(a.Date, b.Date) }
	if len(flights) != 20_000 || !slices.IsSortedFunc(flights, byDate) {
		t.Errorf("%d flights, in order of time: %t", len(flights), slices.IsSortedFunc(flights, byDate))
	}
	for _, f := range flights {
		if f.Key == "" || f.Destination == "" || strings.HasPrefix(f.Key, "z") {
			t.Fatalf("%+v", f)
		}
	}
}

// The records follow from the seed, and each key keeps to its partition.
func TestGenerator(t *testing.T) {
	a, b := newGenerator(3, 1000), newGenerator(3, 1000)
	home, other := map[string]int{}, newGenerator(4, 1000)
	same := true
	for i := range 5000 {
		p, e := a.next(int64(i))
		q, f := b.next(int64(i))
		if p != q || e != f {
			t.Fatal("one seed made two records")
		}
		_, g := other.next(int64(i))
		same = same && e == g
		if was, ok := home[e.Key]; ok && was != p {
			t.Fatalf("%s is in partitions %d and %d", e.Key, was, p)
		}
		home[e.Key] = p
	}
	if same {
		t.Error("two seeds made the same records")
	}
	if len(home) < 500 {
		t.Errorf("%d keys of 1000", len(home))
	}
	for _, k := range probes() {
		if _, ok := home[k]; !ok {
			t.Errorf("probe %s has no record", k)
		}
	}
}
