package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
)

func highest(a, b int) int { return cmp.Compare(b, a) }

// ranked sorts a map as a Ranking must.
func ranked(all map[string]int) []string {
	keys := slices.Collect(maps.Keys(all))
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(highest(all[a], all[b]), cmp.Compare(a, b))
	})
	return keys
}

func scanOf(all map[string]int) func(func([]byte, int) bool) {
	return func(yield func([]byte, int) bool) {
		for k, v := range all {
			if !yield([]byte(k), v) {
				return
			}
		}
	}
}

// checkTop compares what is published with the sorted store; before a repair
// it may be short but not wrong.
func checkTop(t *testing.T, r *Ranking[int], all map[string]int, limit int) {
	t.Helper()
	top, want := r.Publish(), ranked(all)
	if n := min(limit, len(want)); len(top.Rows) < n && !r.NeedsRepair() {
		t.Fatalf("%d rows of %d and no repair due", len(top.Rows), n)
	}
	if len(top.Rows) > limit || len(top.Rows) > len(want) {
		t.Fatalf("%d rows, limit %d of %d", len(top.Rows), limit, len(want))
	}
	for i, row := range top.Rows {
		if string(row.Key) != want[i] || row.Value != all[want[i]] {
			t.Fatalf("rank %d is %s %d, want %s %d", i, row.Key, row.Value, want[i], all[want[i]])
		}
	}
	if top.Complete && len(top.Rows) != len(want) {
		t.Fatalf("complete with %d of %d rows", len(top.Rows), len(want))
	}
}

func TestRankingEqualsSort(t *testing.T) {
	r := seeded(t)
	for _, limit := range []int{1, 3, 10, 50} {
		all := map[string]int{}
		ranking, repairs := NewRanking(limit, highest), 0
		for range 1500 {
			key := fmt.Sprintf("%02d", r.IntN(100))
			switch n := r.IntN(100); {
			case n < 60:
				all[key] = r.IntN(20)
				ranking.Set([]byte(key), all[key])
			case n < 98:
				delete(all, key)
				ranking.Delete([]byte(key))
			default:
				ranking.Rebuild(scanOf(all))
			}
			checkTop(t, ranking, all, limit)
			if ranking.NeedsRepair() {
				repairs++
				ranking.Rebuild(scanOf(all))
				checkTop(t, ranking, all, limit)
				if ranking.NeedsRepair() {
					t.Fatal("a rebuilt ranking needs repair")
				}
			}
		}
		t.Logf("limit %d: %d repairs", limit, repairs)
	}
}

func TestRankingOfTies(t *testing.T) {
	const tied = 5
	for _, c := range []struct{ limit, repairs int }{
		{1000, 0}, // 1,500 rows fit into the slack
		{500, 1},  // 1,000 of them do, and half of those may fall out
	} {
		t.Run(fmt.Sprint(c.limit), func(t *testing.T) {
			all := map[string]int{}
			for i := range 1500 {
				all[fmt.Sprintf("key-%04d", i)] = tied
			}
			r := NewRanking(c.limit, highest)
			r.Rebuild(scanOf(all))
			checkTop(t, r, all, c.limit)
			repairs := 0
			for i := range 1000 { // one after the other falls out
				key := fmt.Sprintf("key-%04d", i)
				all[key] = 1
				r.Set([]byte(key), 1)
				if i%50 == 0 || r.NeedsRepair() {
					checkTop(t, r, all, c.limit)
				}
				if r.NeedsRepair() {
					repairs++
					r.Rebuild(scanOf(all))
					checkTop(t, r, all, c.limit)
				}
			}
			if repairs != c.repairs {
				t.Fatalf("%d repairs, want %d", repairs, c.repairs)
			}
			// The same from single changes, in reverse.
			grown := NewRanking(c.limit, highest)
			for _, key := range slices.Backward(slices.Sorted(maps.Keys(all))) {
				grown.Set([]byte(key), all[key])
			}
			checkTop(t, grown, all, c.limit)
		})
	}
}

func TestRankingRepair(t *testing.T) {
	const limit = 10
	all := map[string]int{}
	for i := range 100 {
		all[fmt.Sprintf("%03d", i)] = i
	}
	r := NewRanking(limit, highest)
	r.Rebuild(scanOf(all))
	deleted := 0
	for _, key := range ranked(all) {
		delete(all, key)
		r.Delete([]byte(key))
		deleted++
		checkTop(t, r, all, limit)
		if r.NeedsRepair() {
			break
		}
	}
	if want := limit + 1; deleted != want {
		t.Fatalf("repair due after %d rows fell out, want %d", deleted, want)
	}
	r.Rebuild(scanOf(all))
	checkTop(t, r, all, limit)
}

func TestTopIsImmutable(t *testing.T) {
	r := NewRanking(2, highest)
	r.Set([]byte("a"), 1)
	r.Set([]byte("b"), 2)
	top := r.Publish()
	if r.Publish() != top {
		t.Fatal("an unchanged ranking was published anew")
	}
	r.Set([]byte("c"), 3)
	r.Delete([]byte("b"))
	if len(top.Rows) != 2 || string(top.Rows[0].Key) != "b" || !top.Complete {
		t.Fatalf("published rows changed: %v", top.Rows)
	}
	if next := r.Publish(); string(next.Rows[0].Key) != "c" {
		t.Fatalf("first is %s", next.Rows[0].Key)
	}
}
