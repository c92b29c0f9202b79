package oracle

import (
	"fmt"
	"time"
)

// Row is a row of the totals as an answer has it. A column that was not asked
// for is nil and not checked.
type Row struct {
	Origin        string     `json:"origin"`
	Flights       *int64     `json:"flights"`
	Delayed       *int64     `json:"delayed"`
	DelayMinutes  *int64     `json:"delayMinutes"`
	AverageDelay  *float64   `json:"averageDelay"`
	WorstDelay    *int64     `json:"worstDelay"`
	LastDeparture *time.Time `json:"lastDeparture"`
	DelayedShare  *float64   `json:"delayedShare"`
}

// Hour is a window, or several merged, as an answer has it.
type Hour struct {
	Origin       string    `json:"origin"`
	Start        time.Time `json:"start"`
	Flights      int64     `json:"flights"`
	AverageDelay *float64  `json:"averageDelay"`
	P95Delay     *float64  `json:"p95Delay"`
}

// Kind is what is wrong with an answer.
type Kind string

// The kinds. Failed and Lost are for those who ask.
const (
	Wrong          Kind = "wrong"           // a value that was never the case
	FalseFreshness Kind = "false_freshness" // older than it claims
	Backwards      Kind = "backwards"       // older than what was seen before
	Failed         Kind = "failed"          // no answer
	Lost           Kind = "lost"            // acknowledged and not there at the end
)

// Fault is one thing that is wrong.
type Fault struct {
	Kind Kind
	Text string
}

func wrong(format string, args ...any) Fault { return Fault{Wrong, fmt.Sprintf(format, args...)} }
func older(format string, args ...any) Fault {
	return Fault{FalseFreshness, fmt.Sprintf(format, args...)}
}
