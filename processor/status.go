package processor

import (
	"fmt"
	"slices"

	"github.com/streamgauge/streamgauge/view/read"
)

// Status is what an instance says of itself, for people and for probes.
type Status struct {
	Instance   string        `json:"instance"`
	Generation int32         `json:"generation"`
	Live       bool          `json:"live"` // the group was heard of within a session timeout
	Ready      bool          `json:"ready"`
	Reason     string        `json:"reason,omitempty"` // why it is not ready
	Tasks      []TaskStatus  `json:"tasks"`
	Tables     []TableStatus `json:"tables"`
}

// TaskStatus is one task of an instance.
type TaskStatus struct {
	Task     string         `json:"task"`
	Stores   []string       `json:"stores"`
	State    string         `json:"state"`
	Role     string         `json:"role"`
	Error    string         `json:"error,omitempty"`
	Seq      uint64         `json:"seq"`
	Lag      int64          `json:"lag"`                // source records not yet in
	AsOf     int64          `json:"asOf"`               // ms
	Stream   *int64         `json:"streamTime"`         // ms; null: none yet
	HeldBy   *int32         `json:"heldBy,omitempty"`   // the source partition that keeps stream time back
	Progress *read.Progress `json:"progress,omitempty"` // of a restore
	Overlay  int64          `json:"overlayBytes"`       // rows that are not in the file yet
	Note     string         `json:"note,omitempty"`     // what is wrong while it works on

	owned   bool  // by this instance
	unheard int32 // the first source partition that is not heard of yet; −1: all are
}

// TableStatus is one global table's copy.
type TableStatus struct {
	Table string `json:"table"`
	State string `json:"state"`
	Rows  int64  `json:"rows"`
	Lag   int64  `json:"lag"`
}

// Status describes the instance now. It is ready when it has joined the group,
// its own tasks run and have heard of every source partition, so that their lag
// is known, its tables are whole, and a route is known for every partition; and,
// after a start, not before it has caught up once: its own tasks with their
// source, its standbys with their owners. Who waits for it, as a rolling restart
// does, can then take the next instance down.
func (w *Worker) Status() Status {
	m := w.membership()
	s := Status{Instance: w.cfg.Instance, Generation: m.generation, Live: w.live(), Tasks: []TaskStatus{}, Tables: []TableStatus{}}
	for _, t := range w.allTasks() {
		if w.task(t.id) == t {
			s.Tasks = append(s.Tasks, t.status(s.Live))
		}
	}
	slices.SortFunc(s.Tasks, func(a, b TaskStatus) int {
		x, _ := parseTaskID(a.Task)
		y, _ := parseTaskID(b.Task)
		return compareTasks(x, y)
	})
	for _, t := range w.cfg.Topology.Tables {
		s.Tables = append(s.Tables, w.globals[t.View.Store].status())
	}
	s.Reason = w.unready(&s, m)
	s.Ready = s.Reason == ""
	return s
}

func (w *Worker) unready(s *Status, m *membership) string {
	switch {
	case m.generation < 0:
		return "not yet in the group"
	case !s.Live:
		return "the group has not been heard of for a session timeout"
	}
	owned := 0
	for _, t := range s.Tasks {
		if !t.owned {
			continue
		}
		owned++
		if t.State != Running.String() && t.State != Waiting.String() && t.State != InDoubt.String() {
			return "task " + t.Task + " is " + t.State // why is with the task: a probe is told no more
		}
	}
	for _, t := range s.Tasks {
		if t.unheard >= 0 {
			return fmt.Sprintf("task %s has not heard of source partition %d yet", t.Task, t.unheard)
		}
	}
	if owned < len(m.tasks) {
		return "tasks are still to be opened"
	}
	for _, t := range s.Tables {
		if t.State != Running.String() {
			return "table " + t.Table + " is " + t.State
		}
	}
	for sub, owners := range m.routes.Active {
		if slices.Contains(owners, "") {
			return "no instance holds every partition of " + sub
		}
	}
	return w.behind(s)
}

// behind says what has not caught up since the start; "" from then on.
func (w *Worker) behind(s *Status) string {
	if w.caughtUp.Load() {
		return ""
	}
	for _, t := range s.Tasks {
		switch {
		case t.owned && t.Lag > w.cfg.ReadyLag:
			return fmt.Sprintf("task %s is %d records behind its source", t.Task, t.Lag)
		case !t.owned && t.Role == read.Standby.String() && t.State != Following.String():
			return "standby " + t.Task + " is " + t.State
		}
	}
	w.caughtUp.Store(true)
	return ""
}

func (t *task) status(live bool) TaskStatus {
	state, err := t.cond.get()
	s := TaskStatus{Task: t.id.String(), State: state.String(), Stores: storesOf(t.sub), Role: t.role().String(), owned: t.role() == read.Active, unheard: -1}
	if s.owned && !live {
		s.Role = read.Standby.String()
	}
	if err != nil {
		s.Error = err.Error()
	}
	t.cond.mu.Lock()
	for _, note := range t.cond.notes {
		if note != "" && s.Note != "" {
			note = "; " + note
		}
		s.Note += note
	}
	if state == Restoring {
		p := t.cond.progress
		s.Progress = &p
	}
	t.cond.mu.Unlock()
	if f := t.forward.Load(); f != nil && len(t.sub.Feeds) == 0 {
		landed, _, _ := f.flights.state()
		s.Lag, s.AsOf = max(0, landed.End-landed.Next), landed.CaughtUp
		if landed.Event != noTime {
			s.Stream = &landed.Event
		}
	}
	serving := t.serving.Load()
	if serving == nil {
		return s
	}
	if snap := serving.store.Snapshot(); snap != nil {
		pub, ok := snap.Commit().(*published)
		snap.Release()
		if !ok {
			return s // a restore has begun just now
		}
		rec := pub.rec
		s.unheard = unheard(rec.Upstream)
		s.Overlay = serving.store.OverlayBytes()
		s.Seq, s.Lag, s.AsOf = rec.Seq, rec.Lag, rec.CaughtUp
		if !t.leading.Load() {
			s.Lag = t.w.ends.lag(t.sub, t.id, &rec)
		}
		if rec.Stream != noTime {
			s.Stream = &rec.Stream
		}
		if h := holdsBack(rec.Upstream); h >= 0 {
			s.HeldBy = &h
		}
	}
	return s
}

func (g *global) status() TableStatus {
	state, _ := g.cond.get()
	s := TableStatus{Table: g.table.View.Store, State: state.String()}
	if serving := g.serving.Load(); serving != nil {
		if snap := serving.store.Snapshot(); snap != nil {
			s.Rows, s.Lag = snap.Count(0), snap.Commit().(*published).rec.Lag
			snap.Release()
		}
	}
	return s
}
