package processor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// taskID names a task: its subtopology and its partition, flights-by-origin_3.
type taskID struct {
	Subtopology string
	Partition   int32
}

func (id taskID) String() string {
	return id.Subtopology + "_" + strconv.Itoa(int(id.Partition))
}

func parseTaskID(s string) (taskID, error) {
	i := strings.LastIndexByte(s, '_')
	n, err := strconv.ParseInt(s[i+1:], 10, 32)
	if i <= 0 || err != nil || n < 0 {
		return taskID{}, fmt.Errorf("%q is no task", s)
	}
	return taskID{s[:i], int32(n)}, nil
}

func compareTasks(a, b taskID) int {
	if c := cmp.Compare(a.Subtopology, b.Subtopology); c != 0 {
		return c
	}
	return cmp.Compare(a.Partition, b.Partition)
}

// candidate is a member as the assignment sees it.
type candidate struct {
	ID    string
	Knows map[string]bool // subtopologies of its schema
	Held  []taskID        // active tasks that it holds now
}

// candidate makes a candidate of what a member told.
func (d *memberData) candidate(id string) candidate {
	c := candidate{ID: id, Knows: make(map[string]bool)}
	for _, s := range d.Subtopologies {
		c.Knows[s] = true
	}
	for _, name := range d.Tasks {
		if t, err := parseTaskID(name); err == nil {
			c.Held = append(c.Held, t)
		}
	}
	return c
}

// superseded finds the members that share their instance name with one that was
// started later, and that one's address. Routes go by name, so only one may
// have it; the newest, since an older one may be dead and not yet missed by the
// group: a restart has to wait for nothing. Of two started at once, the greater
// member id counts as newer.
func superseded(members map[string]*memberData) map[string]string {
	newest := make(map[string]string) // member by name
	for id, m := range members {
		best, some := newest[m.Instance]
		if !some || cmp.Or(cmp.Compare(m.Started, members[best].Started), cmp.Compare(id, best)) > 0 {
			newest[m.Instance] = id
		}
	}
	older := make(map[string]string)
	for id, m := range members {
		if best := newest[m.Instance]; best != id {
			older[id] = members[best].Addr
		}
	}
	return older
}

// plan gives each task to one candidate. It is pure and deterministic, and it
// promises: a task goes only to a candidate that knows its subtopology; within
// each subtopology, candidates that know it differ by at most one task; as far
// as these allow, a task stays with a candidate that holds it, and what moves
// goes to the one with the fewest tasks in all. partitions is the number of
// partitions of each subtopology.
func plan(candidates []candidate, partitions map[string]int32) map[string][]taskID {
	slices.SortFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.ID, b.ID) })
	p := &planner{result: make(map[string][]taskID), total: make(map[string]int)}
	for _, sub := range slices.Sorted(maps.Keys(partitions)) {
		p.place(sub, partitions[sub], candidates)
	}
	for _, tasks := range p.result {
		slices.SortFunc(tasks, compareTasks)
	}
	return p.result
}

type planner struct {
	result map[string][]taskID
	total  map[string]int // tasks in all, by candidate
}

// share is one candidate's part of a subtopology while it is placed.
type share struct {
	id    string
	holds []taskID // wishes to keep
	room  int
}

func (p *planner) place(sub string, n int32, candidates []candidate) {
	shares := p.shares(sub, candidates)
	if len(shares) == 0 {
		return
	}
	base, extra := int(n)/len(shares), int(n)%len(shares)
	// One task more for those who hold more, then for those with fewest in all.
	slices.SortStableFunc(shares, func(a, b *share) int {
		if c := cmp.Compare(min(len(b.holds), base+1), min(len(a.holds), base+1)); c != 0 {
			return c
		}
		return cmp.Compare(p.total[a.id], p.total[b.id])
	})
	taken := make(map[int32]bool)
	for i, s := range shares {
		s.room = base
		if i < extra {
			s.room++
		}
		for _, t := range s.holds {
			if s.room > 0 && t.Partition < n && !taken[t.Partition] {
				taken[t.Partition] = true
				p.give(s, t)
			}
		}
	}
	for part := range n {
		if taken[part] {
			continue
		}
		least := slices.MinFunc(shares, func(a, b *share) int {
			if c := cmp.Compare(min(b.room, 1), min(a.room, 1)); c != 0 {
				return c
			}
			return cmp.Compare(p.total[a.id], p.total[b.id])
		})
		p.give(least, taskID{sub, part})
	}
}

func (p *planner) shares(sub string, candidates []candidate) []*share {
	var shares []*share
	for _, c := range candidates {
		if !c.Knows[sub] {
			continue
		}
		s := &share{id: c.ID}
		for _, t := range c.Held {
			if t.Subtopology == sub {
				s.holds = append(s.holds, t)
			}
		}
		slices.SortFunc(s.holds, compareTasks)
		shares = append(shares, s)
	}
	return shares
}

func (p *planner) give(s *share, t taskID) {
	p.result[s.id] = append(p.result[s.id], t)
	p.total[s.id]++
	s.room--
}
