package processor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/streamgauge/streamgauge/view/read"
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
	ID     string
	Rack   string
	Knows  map[string]string   // mark of what it would keep, by subtopology of its schema
	Active []taskID            // tasks that it owns now
	Copies map[taskID]heldCopy // that it has, of any use
}

// candidate makes a candidate of what a member told.
func (d *memberData) candidate(id string) candidate {
	c := candidate{ID: id, Rack: d.Rack, Knows: make(map[string]string), Copies: make(map[taskID]heldCopy)}
	for _, s := range d.Subtopologies {
		c.Knows[s] = d.Inputs[s].Schema
	}
	for _, name := range d.Tasks {
		if t, err := parseTaskID(name); err == nil {
			c.Active = append(c.Active, t)
		}
	}
	for sub, copies := range d.Copies {
		for _, h := range copies {
			h.Position = max(h.Position, 0)
			c.Copies[taskID{sub, h.Partition}] = h
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

// terms are what an assignment goes by, beside its members.
type terms struct {
	Partitions    map[string]int32 // of each subtopology
	Stateful      map[string]bool  // subtopologies that keep state
	Standbys      int              // wanted of each task
	AcceptableLag int64            // changelog offsets that a new owner may be behind
	WarmUps       int              // of one member at a time

	topics map[string]string // that the subtopologies read; the plan has no use for it
}

// assignment is a plan: who owns what, and the other copies.
type assignment struct {
	Active map[string][]taskID   // by member
	Others map[taskID][]otherOne // standbys, lingering copies, warm-ups, in this order
}

type otherOne struct {
	Member string
	Role   read.Role
}

// plan gives each task to one candidate, and says who keeps copies of it. It is
// pure and deterministic, and it promises:
//   - A task goes only to a candidate that knows its subtopology; one that was
//     written by another schema than the newest copy's takes it only when nobody of
//     that schema is there.
//   - Within each subtopology, candidates that know it are to differ by at most one
//     task; as far as this allows, a task stays with its owner, and one that moves
//     goes to whoever has a copy, then to the one with the fewest tasks in all.
//   - A task with state moves only to a copy within the acceptable lag of the
//     newest one. Who is to have it and is not yet there warms up; until then the
//     task stays, or, without its owner, goes to the best copy there is.
//   - Standbys are kept where they are, on other racks than the owner as far as
//     there are any, evenly.
//   - A plan over the outcome of a plan changes nothing.
func plan(candidates []candidate, t terms) *assignment {
	candidates = slices.SortedFunc(slices.Values(candidates), func(a, b candidate) int { return cmp.Compare(a.ID, b.ID) })
	p := &planner{terms: t, all: candidates, total: make(map[string]int), wanted: make(map[taskID]string), owner: make(map[taskID]string), warming: make(map[string]int)}
	result := &assignment{Active: make(map[string][]taskID), Others: make(map[taskID][]otherOne)}
	for _, sub := range slices.Sorted(maps.Keys(t.Partitions)) {
		for _, class := range p.classes(sub) {
			p.place(sub, class)
		}
		p.settle(sub)
		p.copies(sub, result.Others)
	}
	for id, member := range p.owner {
		result.Active[member] = append(result.Active[member], id)
	}
	for _, tasks := range result.Active {
		slices.SortFunc(tasks, compareTasks)
	}
	return result
}

type planner struct {
	terms
	all     []candidate
	total   map[string]int    // tasks in all that are wanted there, by candidate
	wanted  map[taskID]string // who is to own each task in the end
	owner   map[taskID]string // who is to own it now
	warming map[string]int    // warm-ups by candidate
}

// class is some tasks of a subtopology and the candidates that may own them.
type class struct {
	tasks   []taskID
	members []*candidate
}

// classes divides a subtopology's tasks by the schema that wrote their state: in
// a rolling upgrade some members know another one.
func (p *planner) classes(sub string) []*class {
	var knowing []*candidate
	for i := range p.all {
		if _, ok := p.all[i].Knows[sub]; ok {
			knowing = append(knowing, &p.all[i])
		}
	}
	if len(knowing) == 0 {
		return nil
	}
	byMark := make(map[string]*class)
	for part := range p.Partitions[sub] {
		id := taskID{sub, part}
		mark := p.writtenBy(id, knowing)
		if byMark[mark] == nil {
			members := slices.DeleteFunc(slices.Clone(knowing), func(c *candidate) bool { return mark != "" && c.Knows[sub] != mark })
			if len(members) == 0 {
				members = knowing
			}
			byMark[mark] = &class{members: members}
		}
		byMark[mark].tasks = append(byMark[mark].tasks, id)
	}
	var classes []*class
	for _, mark := range slices.Sorted(maps.Keys(byMark)) {
		classes = append(classes, byMark[mark])
	}
	return classes
}

// writtenBy is the mark of the schema that the newest copy of a task was written
// with; "" when there is none, or all members have the same schema.
func (p *planner) writtenBy(id taskID, knowing []*candidate) string {
	first := knowing[0].Knows[id.Subtopology]
	if !slices.ContainsFunc(knowing, func(c *candidate) bool { return c.Knows[id.Subtopology] != first }) {
		return ""
	}
	best, mark := int64(-1), ""
	for _, c := range knowing {
		if h, ok := c.Copies[id]; ok && h.Position > best {
			best, mark = h.Position, h.Schema
		}
	}
	return mark
}

// share is one candidate's part of a class while it is placed.
type share struct {
	*candidate
	holds []taskID // wishes to keep
	room  int
}

// place decides who is to own the tasks of a class in the end.
func (p *planner) place(sub string, c *class) {
	shares := p.shares(c)
	base, extra := len(c.tasks)/len(shares), len(c.tasks)%len(shares)
	// One task more for those who hold more, then for those with fewest in all.
	slices.SortStableFunc(shares, func(a, b *share) int {
		return cmp.Or(
			cmp.Compare(min(len(b.holds), base+1), min(len(a.holds), base+1)),
			cmp.Compare(p.total[a.ID], p.total[b.ID]))
	})
	taken := make(map[taskID]bool)
	for i, s := range shares {
		s.room = base
		if i < extra {
			s.room++
		}
		for _, t := range s.holds {
			if s.room > 0 && !taken[t] {
				taken[t] = true
				p.want(s, t)
			}
		}
	}
	for _, t := range c.tasks {
		if taken[t] {
			continue
		}
		best := p.newest(t)
		p.want(slices.MinFunc(shares, func(a, b *share) int {
			return cmp.Or(
				cmp.Compare(min(b.room, 1), min(a.room, 1)),
				cmp.Compare(p.lagClass(a.candidate, t, best), p.lagClass(b.candidate, t, best)),
				cmp.Compare(p.total[a.ID], p.total[b.ID]))
		}), t)
	}
}

func (p *planner) want(s *share, t taskID) {
	p.wanted[t] = s.ID
	p.total[s.ID]++
	s.room--
}

func (p *planner) shares(c *class) []*share {
	var shares []*share
	for _, m := range c.members {
		s := &share{candidate: m}
		for _, t := range m.Active {
			if slices.Contains(c.tasks, t) {
				s.holds = append(s.holds, t)
			}
		}
		slices.SortFunc(s.holds, compareTasks)
		s.holds = slices.Compact(s.holds)
		shares = append(shares, s)
	}
	return shares
}

// newest is the position of the copy of a task that is furthest; 0 without one.
func (p *planner) newest(t taskID) int64 {
	best := int64(0)
	for i := range p.all {
		best = max(best, p.all[i].Copies[t].Position)
	}
	return best
}

// lagClass orders copies by how soon they could take a task over: at once, after
// some reading, or from nothing.
func (p *planner) lagClass(c *candidate, t taskID, best int64) int {
	switch at := c.Copies[t].Position; {
	case at > 0 && best-at <= p.AcceptableLag:
		return 0
	case at > 0:
		return 1
	}
	return 2
}

// ready says whether a candidate may take a task over now.
func (p *planner) ready(c *candidate, t taskID, best int64) bool {
	return !p.Stateful[t.Subtopology] || best-c.Copies[t].Position <= p.AcceptableLag
}

// settle decides who owns each task now: who is to have it in the end, or, as
// long as that one has too much to read, whoever has it or could.
func (p *planner) settle(sub string) {
	for part := range p.Partitions[sub] {
		t := taskID{sub, part}
		id, ok := p.wanted[t]
		if !ok {
			continue
		}
		best := p.newest(t)
		if p.ready(p.byID(id), t, best) {
			p.owner[t] = id
			continue
		}
		p.owner[t] = p.keeper(t, p.byID(id), best).ID
	}
}

// keeper is who has the best copy of a task: its owner, if that is near enough to
// the newest, else the newest.
func (p *planner) keeper(t taskID, wanted *candidate, best int64) *candidate {
	mark := wanted.Knows[t.Subtopology]
	var able []*candidate
	for i := range p.all {
		c := &p.all[i]
		if m, ok := c.Knows[t.Subtopology]; ok && m == mark {
			able = append(able, c)
		}
	}
	owns := func(c *candidate) int {
		if slices.Contains(c.Active, t) && p.ready(c, t, best) {
			return 0
		}
		return 1
	}
	return slices.MinFunc(able, func(a, b *candidate) int {
		return cmp.Or(
			cmp.Compare(owns(a), owns(b)),
			cmp.Compare(b.Copies[t].Position, a.Copies[t].Position),
			cmp.Compare(p.total[a.ID], p.total[b.ID]))
	})
}

func (p *planner) byID(id string) *candidate {
	i, _ := slices.BinarySearchFunc(p.all, id, func(c candidate, id string) int { return cmp.Compare(c.ID, id) })
	return &p.all[i]
}
