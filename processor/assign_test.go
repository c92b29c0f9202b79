package processor

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// randomGroup makes members that know some subtopologies, and claim tasks, some
// of them twice or of no partition.
func randomGroup(rng *rand.Rand) ([]candidate, map[string]int32) {
	partitions := make(map[string]int32)
	for i := range 1 + rng.IntN(4) {
		partitions[fmt.Sprint("s", i)] = 1 + rng.Int32N(8)
	}
	members := make([]candidate, 1+rng.IntN(5))
	for i := range members {
		members[i] = candidate{ID: fmt.Sprint("m", i), Knows: make(map[string]bool)}
		for sub, n := range partitions {
			members[i].Knows[sub] = rng.IntN(5) > 0
			for range rng.IntN(4) {
				members[i].Held = append(members[i].Held, taskID{sub, rng.Int32N(n + 2)})
			}
		}
	}
	return members, partitions
}

func clone(members []candidate) []candidate { return slices.Clone(members) }

// Every task goes to one member that knows it, evenly, the same from any order of
// the members, and a second plan over the outcome of the first moves nothing.
func TestPlanKeepsItsPromises(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 0))
		members, partitions := randomGroup(rng)
		got := plan(clone(members), partitions)
		owners := make(map[taskID]string)
		perSub := make(map[string]map[string]int)
		for id, tasks := range got {
			for _, task := range tasks {
				if owners[task] != "" {
					t.Fatalf("seed %d: %s has two owners", seed, task)
				}
				owners[task] = id
				if perSub[task.Subtopology] == nil {
					perSub[task.Subtopology] = make(map[string]int)
				}
				perSub[task.Subtopology][id]++
			}
		}
		for sub, n := range partitions {
			least, most, knowing := int(n), 0, 0
			for _, m := range members {
				has := perSub[sub][m.ID]
				if m.Knows[sub] {
					knowing++
					least, most = min(least, has), max(most, has)
				} else if has > 0 {
					t.Fatalf("seed %d: %s has tasks of %s, which it does not know", seed, m.ID, sub)
				}
			}
			for p := range n {
				if (owners[taskID{sub, p}] == "") != (knowing == 0) {
					t.Fatalf("seed %d: %s_%d has owner %q of %d who know it", seed, sub, p, owners[taskID{sub, p}], knowing)
				}
			}
			if most-least > 1 {
				t.Fatalf("seed %d: of %s one has %d and one %d", seed, sub, most, least)
			}
		}
		shuffled := clone(members)
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if again := plan(shuffled, partitions); !reflect.DeepEqual(again, got) {
			t.Fatalf("seed %d: another order gives another plan", seed)
		}
		for i := range members {
			members[i].Held = got[members[i].ID]
		}
		if again := plan(clone(members), partitions); !reflect.DeepEqual(again, got) {
			t.Fatalf("seed %d: the next plan moves tasks:\n%v\n%v", seed, got, again)
		}
	}
}

func TestParseTaskID(t *testing.T) {
	for text, want := range map[string]string{"flights_3": "flights_3", "a_b_0": "a_b_0", "_1": "", "a_": "", "a_-1": "", "a": "", "a_1x": "", "": ""} {
		id, err := parseTaskID(text)
		if got := id.String(); (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%q is %s, %v", text, got, err)
		}
	}
}
