package processor

import (
	"maps"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// asking decides when the group is asked for the tasks that have warmed up here.
// Copies that have caught up say so each second: no timer is needed.
type asking struct {
	last  time.Time // when the group was asked, or gave an assignment
	wait  time.Duration
	asked bool
	warm  map[taskID]bool // warm-ups of the assignment in force
}

const (
	rejoinEvery  = 2 * time.Second // least time between rebalances asked for
	rejoinAtMost = time.Minute
	// warmTogether is how long those that have caught up wait for the others.
	warmTogether = 20 * time.Second
)

func newAsking() *asking { return &asking{wait: rejoinEvery} }

// assigned takes a new assignment. One that was asked for and gives nothing makes
// the next question wait longer.
func (a *asking) assigned(m *membership) {
	warm := make(map[taskID]bool)
	for id, role := range m.others {
		if role == read.WarmUp {
			warm[id] = true
		}
	}
	if a.asked && maps.Equal(warm, a.warm) {
		a.wait = min(2*a.wait, rejoinAtMost)
	} else {
		a.wait = rejoinEvery
	}
	a.last, a.asked, a.warm = time.Now(), false, warm
}

// due says whether to ask now; reading is how many warm-ups have not caught up.
func (a *asking) due(reading int) bool {
	since := time.Since(a.last)
	if a.asked || since < a.wait || reading > 0 && since < max(warmTogether, a.wait) {
		return false
	}
	a.asked = true
	return true
}

// warmed tells that a warm-up here has caught up.
func (w *Worker) warmed() {
	select {
	case w.warm <- struct{}{}:
	default:
	}
}

// warming is how many warm-ups here are still reading.
func (w *Worker) warming() int {
	n := 0
	for _, t := range w.allTasks() {
		if state, _ := t.cond.get(); t.role() == read.WarmUp && state != Following && t.ctx.Err() == nil {
			n++
		}
	}
	return n
}
