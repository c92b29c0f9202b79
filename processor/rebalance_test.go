package processor

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// logTo logs without the time and the level.
func logTo() (*slog.Logger, *bytes.Buffer) {
	var out bytes.Buffer
	return slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		},
	})), &out
}

func ids(n int) []taskID {
	var list []taskID
	for p := range n {
		list = append(list, taskID{"sub", int32(p)})
	}
	return list
}

// Hundreds of tasks make a line when the last of them runs; one that is taken
// away meanwhile is not waited for.
func TestRebalanceIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := logTo()
		r := newRebalance(log)
		all := ids(300)
		roles := make(map[taskID]read.Role)
		for i, id := range all {
			if roles[id] = read.Active; i >= 200 {
				roles[id] = read.Standby
			}
		}
		r.begin(7, &changes{owned: all[:200], copies: all[200:]}, roles)
		for i, id := range all[:198] {
			if !r.runs(id, i%2 == 0, 10) {
				t.Fatalf("%s was not waited for", id)
			}
		}
		r.failed(all[198])
		time.Sleep(3 * time.Second)
		if out.Len() > 0 {
			t.Errorf("told too soon: %s", out)
		}
		delete(roles, all[199])
		roles[all[0]] = read.Lingering
		r.begin(8, &changes{left: []taskID{all[0], all[199]}, lingering: all[:1], owned: ids(201)[200:]}, map[taskID]read.Role{
			all[0]: read.Lingering, all[200]: read.Active, all[299]: read.Standby,
		})
		r.runs(all[200], true, 5)
		r.follows(all[299], 40)
		r.follows(all[298], 40) // not there any more
		r.handedOver(all[0])
		if r.runs(all[5], false, 1) {
			t.Error("a task that starts over was waited for")
		}
		want := strings.Join([]string{
			`msg="all tasks gained run" generation=7 tasks=198 failed=1 fromOpenStandby=99 restored=1980 took=3s`,
			`msg="all tasks gained run" generation=8 tasks=1 fromOpenStandby=1 restored=5 took=0s`,
			`msg="all new copies follow" generation=8 tasks=1 restored=40 took=3s`,
			`msg="successors run; the copies of tasks lost have ended" generation=8 tasks=1 took=0s`,
		}, "\n") + "\n"
		if got := out.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

func TestChangesAreTold(t *testing.T) {
	c := &changes{}
	c.note(taskID{"sub", 0}, read.Standby, read.Active, true)
	c.note(taskID{"sub", 1}, read.Active, read.Active, true)
	c.note(taskID{"sub", 2}, read.Active, read.Lingering, true)
	c.note(taskID{"sub", 3}, read.Active, read.Active, false)
	for _, id := range ids(17)[10:] {
		c.gained(id, read.Active)
	}
	want := `[gained 8: sub_0, sub_10, sub_11, sub_12, sub_13 and 3 more lost 2: sub_2, sub_3]`
	if got := fmt.Sprint(c.fields()); got != want || len(c.lingering) != 1 {
		t.Errorf("got %s, lingering %v; want %s", got, c.lingering, want)
	}
	peers := func(names ...string) *read.Routes {
		r := &read.Routes{Instances: make(map[string]read.Peer)}
		for _, n := range names {
			r.Instances[n] = read.Peer{ID: n}
		}
		return r
	}
	if got := fmt.Sprint(comings(peers("a", "b"), peers("b", "d", "c"))); got != "[joined c, d gone a]" {
		t.Errorf("got %s", got)
	}
}

func TestSparing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, out := logTo()
		s := newSparing()
		for range 20 {
			s.tell(log, slog.LevelWarn, "task starts over")
		}
		s.tell(log, slog.LevelWarn, "another")
		time.Sleep(sparingTime + time.Second)
		s.tell(log, slog.LevelWarn, "task starts over")
		if got := strings.Count(out.String(), "\n"); got != sparingMost+2 || strings.Count(out.String(), "more=") != 1 {
			t.Errorf("got\n%s", out)
		}
	})
}
