package processor

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// State is where a task is in its life.
//
//	   ┌───────◄─────────────────────────────────────┐ another role, or era; a fault
//	   ▼                                              │
//	Starting ─────┬──────────────► Following ─────────┤ a standby, a warm-up, a
//	   ▲          │                  ▲  │ compaction  │ lingering copy
//	   │          ▼                  │  ▼ overtook it │
//	Created    Restoring ────────────┘◄─┘             │
//	              │                                   │
//	              ▼          EndTxn unanswered        │
//	Starting ► Running ◄───────► InDoubt ─────────────┤ the owner
//	            ▲  │               ▲  │               │
//	            │  ▼ generation    │  │               │
//	           Waiting ◄───────────┴──┘ ──────────────┤
//	                                                  │
//	Failed ◄── from any above but Created ────────────┘ refused: needs a person;
//	   │                                                Starting again in another role
//	   ▼
//	Closing ► Closed   Closing from any state but Closed
type State uint8

// The states of a task.
const (
	Created   State = iota // not begun
	Starting               // opening the file, fencing the former owner, reading offsets
	Restoring              // reading the changelogs up to their end
	Following              // reading them on, answering as a copy that is not the owner's
	Running                // processing, answering
	Waiting                // holding a batch until the group has settled
	InDoubt                // finding out whether a transaction was committed
	Failed                 // refused to go on; says why
	Closing                // writing the store, releasing what it holds
	Closed
)

var stateNames = [...]string{"created", "starting", "restoring", "following", "running", "waiting", "in-doubt", "failed", "closing", "closed"}

func (s State) String() string { return stateNames[s] }

// transitions are the ones allowed; Closing is allowed from any but Closed.
var transitions = map[State][]State{
	Created:   {Starting},
	Starting:  {Restoring, Following, Running, Failed, Starting},
	Restoring: {Following, Running, Failed, Starting},
	Following: {Restoring, Failed, Starting},
	Running:   {Waiting, InDoubt, Failed, Starting},
	Waiting:   {Running, InDoubt, Failed, Starting},
	InDoubt:   {Running, Waiting, Failed, Starting},
	Failed:    {Starting},
	Closing:   {Closed},
}

// condition is a task's state with what belongs to it. Safe for concurrent use.
type condition struct {
	mu       sync.Mutex
	state    State
	since    time.Time
	err      error             // Failed: why; Starting: the fault that led there, if any
	notes    [noteKinds]string // what is wrong while it works on
	progress read.Progress
}

// set moves to a state; a transition that the table lacks is a broken
// invariant.
func (c *condition) set(s State, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == c.state && s != Starting {
		return
	}
	if !slices.Contains(transitions[c.state], s) && (s != Closing || c.state == Closed) {
		panic(fmt.Sprintf("processor: task goes from %s to %s", c.state, s))
	}
	c.state, c.since, c.err = s, time.Now(), err
	if s != Restoring {
		c.progress = read.Progress{}
	}
	if s == Starting {
		c.notes = [noteKinds]string{} // they were of the phase before; what still holds is noted again
	}
}

func (c *condition) get() (State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state, c.err
}

// noteKind is a kind of trouble that a task works on in.
type noteKind int

const (
	fileNote      noteKind = iota // checkpoints fail, such as on a full disk
	inputNote                     // the input is held up
	changelogNote                 // a restore stands still
	noteKinds
)

// trouble notes what is wrong while the task works on; "": nothing of the kind any
// more.
func (c *condition) trouble(kind noteKind, note string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes[kind] = note
}

func (c *condition) noted(kind noteKind) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notes[kind] != ""
}

// advance notes how far a restore is; start is when it began.
func (c *condition) advance(done, total int64, start time.Time) {
	p := read.Progress{Done: min(done, total), Total: total}
	if secs := time.Since(start).Seconds(); secs > 0 {
		p.Rate = float64(done) / secs
	}
	if p.Rate > 0 {
		p.ETA = time.Duration(float64(p.Total-p.Done) / p.Rate * float64(time.Second))
	}
	c.mu.Lock()
	c.progress = p
	c.mu.Unlock()
}

// unready says why a task in that state does not answer.
func (c *condition) unready() *read.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.state {
	case Failed:
		return &read.Error{Code: read.Unavailable, Message: "processing has stopped", Cause: c.err}
	case Closing, Closed:
		return &read.Error{Code: read.NotOwner, RetryAfter: 100 * time.Millisecond}
	}
	p := c.progress
	return &read.Error{Code: read.Restoring, RetryAfter: max(p.ETA, 200*time.Millisecond), Progress: &p}
}
