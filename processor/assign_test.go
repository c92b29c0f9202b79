package processor

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/streamgauge/streamgauge/view/read"
)

// randomGroup makes members that know some subtopologies, and claim tasks, some
// of them twice or of no partition, and copies of any age.
func randomGroup(rng *rand.Rand) ([]candidate, terms) {
	t := terms{
		Partitions: make(map[string]int32), Stateful: make(map[string]bool),
		Standbys: rng.IntN(3), AcceptableLag: 100, WarmUps: 1 + rng.IntN(3),
	}
	for i := range 1 + rng.IntN(4) {
		sub := fmt.Sprint("s", i)
		t.Partitions[sub] = 1 + rng.Int32N(8)
		t.Stateful[sub] = rng.IntN(4) > 0
	}
	members := make([]candidate, 1+rng.IntN(5))
	schemas := 1 + rng.IntN(2)
	for i := range members {
		m := candidate{ID: fmt.Sprint("m", i), Knows: make(map[string]string), Copies: make(map[taskID]heldCopy)}
		if rng.IntN(2) == 0 {
			m.Rack = fmt.Sprint("r", rng.IntN(3))
		}
		for sub, n := range t.Partitions {
			if rng.IntN(5) == 0 {
				continue
			}
			m.Knows[sub] = fmt.Sprint("schema", rng.IntN(schemas))
			for range rng.IntN(4) {
				id := taskID{sub, rng.Int32N(n + 2)}
				m.Active = append(m.Active, id)
				m.Copies[id] = heldCopy{Partition: id.Partition, Position: 5000, Schema: m.Knows[sub], Use: processing}
			}
			for range rng.IntN(4) {
				id := taskID{sub, rng.Int32N(n)}
				m.Copies[id] = heldCopy{Partition: id.Partition, Position: rng.Int64N(5200), Schema: m.Knows[sub], Use: use(rng.IntN(4))}
			}
		}
		members[i] = m
	}
	return members, t
}

// run makes of members what an assignment makes of them, with copies as far on as
// reading has come meanwhile: of caughtUp, to the end.
func run(members []candidate, t terms, a *assignment, caughtUp bool) []candidate {
	next := make([]candidate, len(members))
	for i, m := range members {
		was := m.Copies
		m.Active, m.Copies = a.Active[m.ID], make(map[taskID]heldCopy)
		for id, h := range was { // files stay
			h.Use = stored
			m.Copies[id] = h
		}
		for _, id := range m.Active {
			if t.Stateful[id.Subtopology] {
				m.Copies[id] = heldCopy{Position: 6000, Schema: m.Knows[id.Subtopology], Use: processing}
			}
		}
		for id, others := range a.Others {
			for _, o := range others {
				if o.Member != m.ID {
					continue
				}
				h := heldCopy{Position: was[id].Position, Schema: m.Knows[id.Subtopology], Use: following}
				if o.Role == read.Lingering {
					h.Use = stored // its successor has come to run
				}
				if caughtUp {
					h.Position = 6000
				}
				m.Copies[id] = h
			}
		}
		next[i] = m
	}
	return next
}

// What a plan promises holds for any group, from any order of its members; and
// once warm-ups have caught up, plans come to rest.
func TestPlanKeepsItsPromises(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		members, terms := randomGroup(rng)
		got := plan(members, terms)
		check := checkPlan(t, seed, members, terms, got)
		shuffled := slices.Clone(members)
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if again := plan(shuffled, terms); !reflect.DeepEqual(again, got) {
			t.Fatalf("seed %d: another order gives another plan", seed)
		}
		before := got
		for round := 0; ; round++ {
			members = run(members, terms, before, true)
			next := plan(members, terms)
			checkPlan(t, seed, members, terms, next)
			if reflect.DeepEqual(next, before) {
				break
			}
			if round == 20 {
				t.Fatalf("seed %d: plans do not come to rest:\n%v\n%v", seed, before, next)
			}
			before = next
		}
		check.atRest(members, terms, before)
	}
}

type planCheck struct {
	t    *testing.T
	seed uint64
}

func checkPlan(t *testing.T, seed uint64, members []candidate, terms terms, a *assignment) *planCheck {
	t.Helper()
	byID := make(map[string]*candidate)
	for i := range members {
		byID[members[i].ID] = &members[i]
	}
	owners := make(map[taskID]string)
	for id, tasks := range a.Active {
		for _, task := range tasks {
			if owners[task] != "" {
				t.Fatalf("seed %d: %s has two owners", seed, task)
			}
			owners[task] = id
			if _, ok := byID[id].Knows[task.Subtopology]; !ok {
				t.Fatalf("seed %d: %s has %s, which it does not know", seed, id, task)
			}
		}
	}
	for sub, n := range terms.Partitions {
		knowing := slices.ContainsFunc(members, func(m candidate) bool { _, ok := m.Knows[sub]; return ok })
		for p := range n {
			task := taskID{sub, p}
			if (owners[task] != "") != knowing {
				t.Fatalf("seed %d: %s has owner %q, known %t", seed, task, owners[task], knowing)
			}
		}
	}
	warm := make(map[string]int)
	for task, others := range a.Others {
		seen := map[string]bool{owners[task]: true}
		standbys := 0
		for _, o := range others {
			if seen[o.Member] {
				t.Fatalf("seed %d: %s has two copies of %s", seed, o.Member, task)
			}
			seen[o.Member] = true
			if _, ok := byID[o.Member].Knows[task.Subtopology]; !ok {
				t.Fatalf("seed %d: %s has a copy of %s, which it does not know", seed, o.Member, task)
			}
			if o.Role == read.WarmUp {
				warm[o.Member]++
			}
			if o.Role == read.Standby {
				standbys++
			}
		}
		if standbys > terms.Standbys || !terms.Stateful[task.Subtopology] {
			t.Fatalf("seed %d: %s has %d standbys of %d", seed, task, standbys, terms.Standbys)
		}
	}
	for task, owner := range owners {
		checkOwner(t, seed, members, terms, task, byID[owner])
	}
	return &planCheck{t, seed}
}

// checkOwner: nobody who could take the task over is better by more than the
// acceptable lag.
func checkOwner(t *testing.T, seed uint64, members []candidate, terms terms, task taskID, owner *candidate) {
	t.Helper()
	if !terms.Stateful[task.Subtopology] {
		return
	}
	for _, m := range members {
		mark, ok := m.Knows[task.Subtopology]
		if ok && mark == owner.Knows[task.Subtopology] && m.Copies[task].Position-owner.Copies[task].Position > terms.AcceptableLag {
			t.Fatalf("seed %d: %s goes to %s at %d, and %s is at %d", seed, task, owner.ID, owner.Copies[task].Position, m.ID, m.Copies[task].Position)
		}
	}
}

// atRest: tasks are spread evenly where all have the same schema, every task has
// the standbys it can have, and those are on other racks where there are any.
func (c *planCheck) atRest(members []candidate, terms terms, a *assignment) {
	c.t.Helper()
	byID := make(map[string]*candidate)
	for i := range members {
		byID[members[i].ID] = &members[i]
	}
	for sub, n := range terms.Partitions {
		marks := make(map[string]int)
		owned := make(map[string]int)
		for _, m := range members {
			if mark, ok := m.Knows[sub]; ok {
				marks[mark]++
				owned[m.ID] = 0
			}
		}
		owners := make(map[taskID]string)
		for id, tasks := range a.Active {
			for _, task := range tasks {
				if task.Subtopology == sub {
					owned[id]++
					owners[task] = id
				}
			}
		}
		if len(marks) == 1 {
			least, most := int(n), 0
			for _, k := range owned {
				least, most = min(least, k), max(most, k)
			}
			if most-least > 1 {
				c.t.Fatalf("seed %d: of %s one has %d and one %d", c.seed, sub, most, least)
			}
		}
		if !terms.Stateful[sub] {
			continue
		}
		for task, owner := range owners {
			c.standbys(members, byID[owner], terms, task, a.Others[task], marks[byID[owner].Knows[sub]])
		}
	}
}

func (c *planCheck) standbys(members []candidate, owner *candidate, terms terms, task taskID, others []otherOne, alike int) {
	c.t.Helper()
	if want := min(terms.Standbys, alike-1); len(others) != want {
		c.t.Fatalf("seed %d: %s has copies %v, want %d", c.seed, task, others, want)
	}
	if len(others) == 0 || owner.Rack == "" {
		return
	}
	elsewhere := slices.ContainsFunc(members, func(m candidate) bool {
		mark, ok := m.Knows[task.Subtopology]
		return ok && mark == owner.Knows[task.Subtopology] && m.Rack != owner.Rack
	})
	for _, m := range members {
		if m.ID == others[0].Member && m.Rack == owner.Rack && elsewhere {
			c.t.Fatalf("seed %d: %s and its first standby are on rack %s", c.seed, task, m.Rack)
		}
	}
}

// Hundreds of tasks on a few instances: even, with standbys even too, and when one
// instance goes and comes back nothing moves that need not.
func TestPlanOfHundredsStaysPut(t *testing.T) {
	terms := terms{
		Partitions: map[string]int32{"a": 100, "b": 100, "c": 100}, Stateful: map[string]bool{"a": true, "b": true, "c": true},
		Standbys: 1, AcceptableLag: 100, WarmUps: 2,
	}
	var members []candidate
	for i := range 5 {
		members = append(members, candidate{ID: fmt.Sprint("m", i), Knows: map[string]string{"a": "", "b": "", "c": ""}})
	}
	first := plan(members, terms)
	members = run(members, terms, first, true)
	if next := plan(members, terms); !reflect.DeepEqual(next, first) {
		t.Fatal("the second plan differs")
	}
	copies := make(map[string]int)
	for id, tasks := range first.Active {
		if len(tasks) != 60 {
			t.Errorf("%s owns %d of 300 tasks among 5", id, len(tasks))
		}
		copies[id] += len(tasks)
	}
	for _, others := range first.Others {
		copies[others[0].Member]++
	}
	for id, n := range copies {
		if n < 110 || n > 130 {
			t.Errorf("%s has %d of 600 copies among 5", id, n)
		}
	}
	// One goes: its tasks go to their standbys' instances or near them, the others stay.
	gone := members[2]
	rest := slices.Delete(slices.Clone(members), 2, 3)
	without := plan(rest, terms)
	for _, m := range rest {
		for _, task := range m.Active {
			if !slices.Contains(without.Active[m.ID], task) {
				t.Fatalf("%s left %s though both are there", task, m.ID)
			}
		}
	}
	for _, task := range gone.Active {
		for id, tasks := range without.Active {
			if slices.Contains(tasks, task) && first.Others[task][0].Member != id {
				t.Fatalf("%s went to %s; its copy is at %s", task, id, first.Others[task][0].Member)
			}
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
