package processor

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// rebalance follows assignments from when they come until everything that they
// gave this instance works, so that the log tells in a few lines what hundreds of
// tasks did. What single tasks do is told at Debug. Safe for concurrent use.
type rebalance struct {
	log *slog.Logger

	mu         sync.Mutex // guards the following
	generation int32
	owned      underway // tasks gained that do not run yet
	copies     underway // new copies beside them that do not follow yet
	handed     underway // tasks lost whose successors do not run yet
}

// underway are tasks that are not yet where an assignment wants them, and the sum
// of those that have got there since there were none.
type underway struct {
	tasks    map[taskID]bool
	began    time.Time
	done     int
	recycled int // taken over with the store open
	failed   int
	records  int64 // of changelogs, read to get there
}

func newRebalance(log *slog.Logger) *rebalance { return &rebalance{log: log} }

// begin takes an assignment: those that it changes join those under way, and
// those that it has no such use for any more are forgotten.
func (r *rebalance) begin(generation int32, c *changes, roles map[taskID]read.Role) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(&r.owned, c.owned, func(id taskID) bool { role, some := roles[id]; return some && role == read.Active })
	r.add(&r.copies, c.copies, func(id taskID) bool { role, some := roles[id]; return some && role != read.Active })
	r.add(&r.handed, c.lingering, func(id taskID) bool { return roles[id] == read.Lingering })
	r.generation = generation
}

func (r *rebalance) add(u *underway, ids []taskID, wanted func(taskID) bool) {
	some := len(u.tasks) > 0
	maps.DeleteFunc(u.tasks, func(id taskID, _ bool) bool { return !wanted(id) })
	if len(u.tasks) == 0 {
		if some && u.done > 0 {
			r.tell(u) // the rest is not waited for any more
		}
		*u = underway{tasks: make(map[taskID]bool), began: time.Now()}
	}
	for _, id := range ids {
		u.tasks[id] = true
	}
}

// runs is told that a task processes; recycled: its store was open, as a
// standby's is; records were read of its changelogs. It says whether the task was
// waited for.
func (r *rebalance) runs(id taskID, recycled bool, records int64) bool {
	return r.arrived(&r.owned, id, func(u *underway) {
		u.records += records
		if recycled {
			u.recycled++
		}
	})
}

// follows is told that a copy follows its owner.
func (r *rebalance) follows(id taskID, records int64) {
	r.arrived(&r.copies, id, func(u *underway) { u.records += records })
}

// handedOver is told that the successor of a task runs.
func (r *rebalance) handedOver(id taskID) { r.arrived(&r.handed, id, func(*underway) {}) }

// failed is told that a task was refused.
func (r *rebalance) failed(id taskID) {
	for _, u := range []*underway{&r.owned, &r.copies} {
		r.arrived(u, id, func(u *underway) { u.failed++ })
	}
}

func (r *rebalance) arrived(u *underway, id taskID, count func(*underway)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !u.tasks[id] {
		return false
	}
	delete(u.tasks, id)
	u.done++
	count(u)
	if len(u.tasks) == 0 {
		r.tell(u)
	}
	return true
}

// tell says that nothing of a kind is under way any more.
func (r *rebalance) tell(u *underway) {
	took := slog.Duration("took", time.Since(u.began).Round(time.Millisecond))
	fields := []any{"generation", r.generation, "tasks", u.done - u.failed}
	if u.failed > 0 {
		fields = append(fields, "failed", u.failed)
	}
	switch u {
	case &r.owned:
		r.log.Info("all tasks gained run", append(fields, "fromOpenStandby", u.recycled, "restored", u.records, took)...)
	case &r.copies:
		r.log.Info("all new copies follow", append(fields, "restored", u.records, took)...)
	case &r.handed:
		r.log.Info("successors run; the copies of tasks lost have ended", append(fields, took)...)
	}
}

// changes are what an assignment changes here.
type changes struct {
	owned     []taskID // gained
	left      []taskID
	lingering []taskID // of those left, which serve on until their successors run
	copies    []taskID // new
}

// note takes a task that is open: what it was, and what it is to be, if anything.
func (c *changes) note(id taskID, was, is read.Role, some bool) {
	switch {
	case some && was != read.Active && is == read.Active:
		c.owned = append(c.owned, id)
	case was == read.Active && (!some || is != read.Active):
		c.left = append(c.left, id)
		if some && is == read.Lingering {
			c.lingering = append(c.lingering, id)
		}
	}
}

// gained takes a task that is opened.
func (c *changes) gained(id taskID, role read.Role) {
	if role == read.Active {
		c.owned = append(c.owned, id)
	} else {
		c.copies = append(c.copies, id)
	}
}

// fields are what is not empty, for the log: counts and some names.
func (c *changes) fields() []any {
	var fields []any
	for _, f := range []struct {
		key string
		ids []taskID
	}{{"gained", c.owned}, {"lost", c.left}, {"newCopies", c.copies}} {
		if len(f.ids) == 0 {
			continue
		}
		names := make([]string, 0, len(f.ids))
		for _, id := range slices.SortedFunc(slices.Values(f.ids), compareTasks) {
			names = append(names, id.String())
		}
		fields = append(fields, f.key, fmt.Sprintf("%d: %s", len(names), joinNames(names)))
	}
	return fields
}

// comings are the instances that were not in the routes before, and those that
// are not any more.
func comings(before, now *read.Routes) []any {
	var fields []any
	for _, f := range []struct {
		key      string
		in, than map[string]read.Peer
	}{{"joined", now.Instances, before.Instances}, {"gone", before.Instances, now.Instances}} {
		var names []string
		for _, id := range slices.Sorted(maps.Keys(f.in)) {
			if _, there := f.than[id]; !there {
				names = append(names, id)
			}
		}
		if len(names) > 0 {
			fields = append(fields, f.key, joinNames(names))
		}
	}
	return fields
}

const (
	sparingTime = 10 * time.Second
	sparingMost = 5
)

// sparing keeps tasks that all say the same, as when a broker is away, from
// flooding the log: of each message the first few in ten seconds are told, the
// rest at Debug. Safe for concurrent use.
type sparing struct {
	mu   sync.Mutex // guards said
	said map[string]saidOften
}

type saidOften struct {
	since time.Time
	times int
}

func newSparing() *sparing { return &sparing{said: make(map[string]saidOften)} }

// tell logs a message, which is one of few constants.
func (s *sparing) tell(log *slog.Logger, level slog.Level, message string, fields ...any) {
	now := time.Now()
	s.mu.Lock()
	o := s.said[message]
	if now.Sub(o.since) > sparingTime {
		o = saidOften{since: now}
	}
	o.times++
	s.said[message] = o
	s.mu.Unlock()
	switch {
	case o.times > sparingMost:
		level = slog.LevelDebug
	case o.times == sparingMost:
		fields = append(fields, "more", "further tasks in these seconds are told at debug level")
	}
	log.Log(context.Background(), level, message, fields...)
}
