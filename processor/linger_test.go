package processor

import (
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// A former owner ends some time after its successor's first commit, unless the
// group has made it a standby meanwhile.
func TestLingeringBecomesStandby(t *testing.T) {
	tk := &task{ctx: t.Context()}
	f := &follower{taskCopy: &taskCopy{task: tk}}
	now := time.Now()

	tk.order(read.Lingering, 1)
	if f.leaves(now) {
		t.Error("it ended before its successor committed")
	}
	f.leaveAt = now.Add(lingerFor)
	if f.leaves(now) || !f.leaves(now.Add(lingerFor+time.Second)) {
		t.Error("it does not end at its time")
	}

	tk.order(read.Standby, 2)
	if f.leaves(now.Add(time.Hour)) {
		t.Error("a standby ended")
	}
	tk.order(read.Lingering, 3)
	if f.leaves(now.Add(time.Hour)) {
		t.Error("it ended by the time of the first successor")
	}
}
