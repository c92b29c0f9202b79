package oracle

import "math"

// delayedOver is the schema's: a flight counts as delayed when it is later.
const delayedOver = 15

// hour is the schema's window.
const hour = int64(3600 * 1000)

// noDelay stands for the worst of no flights.
const noDelay = math.MinInt64

// Totals is the fold of some of a key's records.
type Totals struct {
	Flights, Delayed, DelayMinutes int64
	Worst                          int64 // noDelay: none
	Last                           int64 // ms; the least number: none
}

func nothing() Totals { return Totals{Worst: noDelay, Last: math.MinInt64} }

// with is the fold with one record more.
func (t Totals) with(e *Event) Totals {
	t.Flights++
	t.DelayMinutes += e.Delay
	if e.Delay > delayedOver {
		t.Delayed++
	}
	t.Worst, t.Last = max(t.Worst, e.Delay), max(t.Last, e.Date)
	return t
}

// plus is the fold of both.
func (t Totals) plus(o Totals) Totals {
	t.Flights += o.Flights
	t.Delayed += o.Delayed
	t.DelayMinutes += o.DelayMinutes
	t.Worst, t.Last = max(t.Worst, o.Worst), max(t.Last, o.Last)
	return t
}

// windowOf is the start of the window that a time falls in.
func windowOf(ms int64) int64 {
	start := ms - ms%hour
	if ms%hour < 0 {
		start -= hour
	}
	return start
}
