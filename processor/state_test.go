package processor

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// drawn are the arrows of the diagram above State, but for Closing, to which one
// leads from every state but Closed.
var drawn = map[State][]State{
	Created:   {Starting},
	Starting:  {Starting, Restoring, Following, Running, Failed},
	Restoring: {Starting, Following, Running, Failed},
	Following: {Starting, Restoring, Failed},
	Running:   {Starting, Waiting, InDoubt, Failed},
	Waiting:   {Starting, Running, InDoubt, Failed},
	InDoubt:   {Starting, Running, Waiting, Failed},
	Failed:    {Starting},
	Closing:   {Closed},
	Closed:    {},
}

// moved says whether a condition in a state takes another; it panics otherwise.
func moved(from, to State, err error) (c *condition, ok bool) {
	c = &condition{state: from}
	defer func() { ok = recover() == nil }()
	c.set(to, err)
	return c, true
}

func TestEveryTransition(t *testing.T) {
	if len(drawn) != len(stateNames) {
		t.Fatalf("%d states are drawn, and there are %d", len(drawn), len(stateNames))
	}
	why := errors.New("a reason")
	for from := Created; from <= Closed; from++ {
		for to := Created; to <= Closed; to++ {
			want := from == to || slices.Contains(drawn[from], to) || to == Closing && from != Closed
			c, ok := moved(from, to, why)
			if ok != want {
				t.Errorf("%s to %s: allowed %t, drawn %t", from, to, ok, want)
			}
			now, err := c.get()
			switch {
			case !ok && now != from:
				t.Errorf("%s to %s was refused, and it is %s", from, to, now)
			case ok && (now != to || from != to && !errors.Is(err, why)):
				t.Errorf("%s to %s: it is %s, because of %v", from, to, now, err)
			}
		}
	}
}

// What was said of one state is not said of the next.
func TestConditionForgets(t *testing.T) {
	c := &condition{}
	c.set(Starting, nil)
	c.set(Restoring, nil)
	c.advance(250, 1000, time.Now().Add(-time.Second))
	c.trouble(fileNote, "the disk is full")
	if e := c.unready(); e.Code != read.Restoring || e.Progress.Done != 250 || e.Progress.Total != 1000 || e.Progress.ETA < 2*time.Second || e.RetryAfter != e.Progress.ETA {
		t.Errorf("restoring: %+v, progress %+v", e, e.Progress)
	}
	c.set(Following, nil)
	if c.progress != (read.Progress{}) || c.notes[fileNote] == "" {
		t.Errorf("following: progress %+v, note %q", c.progress, c.notes[fileNote])
	}
	c.set(Starting, nil)
	if c.notes[fileNote] != "" {
		t.Errorf("starting: note %q", c.notes[fileNote])
	}
	c.set(Failed, errors.New("the input is gone"))
	if e := c.unready(); e.Code != read.Unavailable || e.Message != "processing has stopped" || e.Cause == nil {
		t.Errorf("failed: %+v", e)
	}
	c.set(Closing, nil)
	if e := c.unready(); e.Code != read.NotOwner {
		t.Errorf("closing: %+v", e)
	}
}
