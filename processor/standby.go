package processor

import (
	"slices"

	"github.com/streamgauge/streamgauge/view/read"
)

// copies decides on the copies of a subtopology's tasks that are not the owners':
// a warm-up for each task that is to move, standbys, and former owners that linger
// until the new one runs.
func (p *planner) copies(sub string, others map[taskID][]otherOne) {
	if !p.Stateful[sub] {
		return
	}
	load := make(map[string]int) // copies of this subtopology, by candidate
	owned := int32(0)
	for part := range p.Partitions[sub] {
		if id, ok := p.owner[taskID{sub, part}]; ok {
			load[id]++
			owned++
		}
	}
	knowing := 0
	for i := range p.all {
		if _, ok := p.all[i].Knows[sub]; ok {
			knowing++
		}
	}
	if owned == 0 {
		return
	}
	// What each would have, if copies were dealt out evenly.
	even := (int(owned)*(1+p.Standbys) + knowing - 1) / knowing
	for part := range p.Partitions[sub] {
		t := taskID{sub, part}
		if _, ok := p.owner[t]; ok {
			if list := p.copiesOf(t, load, even); len(list) > 0 {
				others[t] = list
			}
		}
	}
}

func (p *planner) copiesOf(t taskID, load map[string]int, even int) []otherOne {
	list := p.standbys(t, load, even)
	wanted := p.wanted[t]
	warm := -1
	if wanted != p.owner[t] {
		if warm = slices.IndexFunc(list, func(o otherOne) bool { return o.Member == wanted }); warm < 0 && p.warming[wanted] < p.WarmUps {
			warm = len(list)
			list = append(list, otherOne{wanted, read.WarmUp})
			p.warming[wanted]++
			load[wanted]++
		}
	}
	if warm >= 0 {
		list[warm].Role = read.WarmUp
	}
	for i := range p.all {
		c := &p.all[i]
		if p.lingers(c, t) && !slices.ContainsFunc(list, func(o otherOne) bool { return o.Member == c.ID }) {
			list = append(list, otherOne{c.ID, read.Lingering})
		}
	}
	order := [...]read.Role{read.Standby, read.Lingering, read.WarmUp}
	slices.SortStableFunc(list, func(a, b otherOne) int {
		return slices.Index(order[:], a.Role) - slices.Index(order[:], b.Role)
	})
	return list
}

// lingers says whether a candidate goes on answering for a task that another
// takes over: while the new owner does not process it yet.
func (p *planner) lingers(c *candidate, t taskID) bool {
	owner := p.owner[t]
	if c.ID == owner || p.byID(owner).Copies[t].Use == processing {
		return false
	}
	is := c.Copies[t].Use
	return is == processing || is == leaving
}

// standbys chooses them one by one: on another rack than the copies there are; one
// that is a standby already, unless it has more than its share; one whose copy
// needs little reading; one with few copies.
func (p *planner) standbys(t taskID, load map[string]int, even int) []otherOne {
	var list []otherOne
	racks := []string{p.byID(p.owner[t]).Rack}
	best := p.newest(t)
	rank := func(c *candidate) []int {
		r := make([]int, 4)
		if c.Rack != "" && slices.Contains(racks, c.Rack) {
			r[0] = 1
		}
		if load[c.ID] >= even {
			r[1] = 1
		}
		if c.Copies[t].Use != following {
			r[2] = 1 + p.lagClass(c, t, best)
		}
		r[3] = load[c.ID]
		return r
	}
	for range p.Standbys {
		var chosen *candidate
		for i := range p.all { // by id: of two alike the first is chosen
			c := &p.all[i]
			if p.mayStandBy(c, t, list) && (chosen == nil || slices.Compare(rank(c), rank(chosen)) < 0) {
				chosen = c
			}
		}
		if chosen == nil {
			return list
		}
		list = append(list, otherOne{chosen.ID, read.Standby})
		racks = append(racks, chosen.Rack)
		load[chosen.ID]++
	}
	return list
}

// mayStandBy: whoever knows the subtopology as the owner does, and has no copy of
// the task by now.
func (p *planner) mayStandBy(c *candidate, t taskID, list []otherOne) bool {
	mark, ok := c.Knows[t.Subtopology]
	owner := p.byID(p.owner[t])
	return ok && c != owner && mark == owner.Knows[t.Subtopology] &&
		!slices.ContainsFunc(list, func(o otherOne) bool { return o.Member == c.ID })
}
