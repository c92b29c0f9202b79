package oracle

import (
	"math"
	"slices"
	"strings"
)

// Totals checks the answer to a lookup: the row of a key, nil: there is none,
// under the as-of that came with it (ms; 0: unknown).
func (l *Ledger) Totals(key string, row *Row, asOf int64) []Fault {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.totals(key, row, asOf)
}

// totals is Totals; the caller holds mu.
func (l *Ledger) totals(key string, row *Row, asOf int64) []Fault {
	spans := l.spans(l.keys[key], asOf)
	lo, hi := bounds(spans)
	switch {
	case row == nil && lo.Flights > 0:
		return []Fault{wrong("%s is missing, %d of its records were acknowledged before the answer's as-of", key, lo.Flights)}
	case row == nil:
		return nil
	case row.Origin != key:
		return []Fault{wrong("asked for %s, got %s", key, row.Origin)}
	case row.Flights == nil || *row.Flights <= 0:
		return []Fault{wrong("%s has no flights", key)}
	}
	n := *row.Flights
	if n > hi.Flights {
		return []Fault{wrong("%s has %d flights, only %d were ever sent", key, n, hi.Flights)}
	}
	var faults []Fault
	if n < lo.Flights {
		faults = append(faults, older("%s has %d flights, %d were acknowledged before the answer's as-of", key, n, lo.Flights))
		spans = l.spans(l.keys[key], 0)
	}
	return append(faults, columns(key, row, spans)...)
}

// columns checks the other columns of a row against its count.
func columns(key string, row *Row, spans []span) []Fault {
	n := *row.Flights
	lo, hi := bounds(spans)
	exact := n == hi.Flights || len(spans) == 1
	if len(spans) == 1 {
		hi = spans[0].line.prefix[n]
	}
	least, most := hi.DelayMinutes, hi.DelayMinutes
	if exact {
		lo = hi
	} else {
		least, most = sums(spans)
	}
	var c columnCheck
	c.integer("delayed", row.Delayed, lo.Delayed, hi.Delayed)
	c.integer("delayMinutes", row.DelayMinutes, least, most)
	c.integer("worstDelay", row.WorstDelay, lo.Worst, hi.Worst)
	c.number("averageDelay", row.AverageDelay, float64(least)/float64(n), float64(most)/float64(n))
	c.number("delayedShare", row.DelayedShare, float64(lo.Delayed)/float64(n), float64(hi.Delayed)/float64(n))
	if row.LastDeparture != nil {
		ms := row.LastDeparture.UnixMilli()
		c.integer("lastDeparture", &ms, lo.Last, hi.Last)
	}
	if row.AverageDelay != nil && row.DelayMinutes != nil {
		of := float64(*row.DelayMinutes) / float64(n)
		c.number("averageDelay", row.AverageDelay, of, of)
	}
	if len(c) == 0 {
		return nil
	}
	return []Fault{wrong("%s at %d flights: %s", key, n, strings.Join(c, "; "))}
}

// sums are the least and the greatest sum of delays within spans.
func sums(spans []span) (least, most int64) {
	for _, s := range spans {
		lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
		for n := s.lo; n <= s.hi; n++ {
			v := s.line.prefix[n].DelayMinutes
			lo, hi = min(lo, v), max(hi, v)
		}
		least += lo
		most += hi
	}
	return least, most
}

// Series checks the windows of a key, of its whole time.
func (l *Ledger) Series(key string, hours []Hour, asOf int64) []Fault {
	l.mu.RLock()
	defer l.mu.RUnlock()
	spans := l.spans(l.keys[key], asOf)
	lo, hi := bounds(spans)
	var n int64
	for i, h := range hours {
		n += h.Flights
		if i > 0 && !h.Start.After(hours[i-1].Start) {
			return []Fault{wrong("the windows of %s are not in order at %s", key, h.Start)}
		}
	}
	if n > hi.Flights {
		return []Fault{wrong("the windows of %s have %d flights, only %d were ever sent", key, n, hi.Flights)}
	}
	var faults []Fault
	if n < lo.Flights {
		kind := older
		if n == 0 {
			kind = wrong
		}
		faults = append(faults, kind("the windows of %s have %d flights, %d were acknowledged before the answer's as-of", key, n, lo.Flights))
		spans = l.spans(l.keys[key], 0)
	}
	if len(spans) == 1 {
		spans[0].lo, spans[0].hi = int(n), int(n)
	}
	return append(faults, windows(key, hours, spans)...)
}

// windows checks each window against the delays that it must and may have.
func windows(key string, hours []Hour, spans []span) []Fault {
	must, may := map[int64][]int64{}, map[int64][]int64{}
	for _, s := range spans {
		for i, e := range s.line.events[:s.hi] {
			w := windowOf(e.Date)
			may[w] = append(may[w], e.Delay)
			if i < s.lo {
				must[w] = append(must[w], e.Delay)
			}
		}
	}
	for i := range hours {
		h := &hours[i]
		w := h.Start.UnixMilli()
		if h.Flights < int64(len(must[w])) || h.Flights > int64(len(may[w])) {
			return []Fault{wrong("the window of %s at %s has %d flights, want %d to %d", key, h.Start, h.Flights, len(must[w]), len(may[w]))}
		}
		if len(must[w]) == len(may[w]) {
			if c := merged(h, must[w]); len(c) > 0 {
				return []Fault{wrong("the window of %s at %s: %s", key, h.Start, strings.Join(c, "; "))}
			}
		}
		delete(must, w)
	}
	for w, delays := range must {
		return []Fault{wrong("the window of %s at %d is missing, with %d flights", key, w, len(delays))}
	}
	return nil
}

// Period checks a key's whole time as one row; nil: there is none.
func (l *Ledger) Period(key string, h *Hour, asOf int64) []Fault {
	l.mu.RLock()
	defer l.mu.RUnlock()
	spans := l.spans(l.keys[key], asOf)
	lo, hi := bounds(spans)
	var n int64
	if h != nil {
		n = h.Flights
	}
	switch {
	case n > hi.Flights:
		return []Fault{wrong("%s has %d flights in all windows, only %d were ever sent", key, n, hi.Flights)}
	case n == 0 && lo.Flights > 0:
		return []Fault{wrong("%s has no windows, %d of its records were acknowledged before the answer's as-of", key, lo.Flights)}
	case n < lo.Flights:
		return []Fault{older("%s has %d flights in all windows, %d were acknowledged before the answer's as-of", key, n, lo.Flights)}
	case h == nil || (len(spans) > 1 && n != hi.Flights):
		return nil
	}
	var delays []int64
	for _, s := range spans {
		upto := s.hi
		if len(spans) == 1 {
			upto = int(n)
		}
		for _, e := range s.line.events[:upto] {
			delays = append(delays, e.Delay)
		}
	}
	if c := merged(h, delays); len(c) > 0 {
		return []Fault{wrong("all windows of %s: %s", key, strings.Join(c, "; "))}
	}
	return nil
}

// merged checks the columns of a window that holds these delays.
func merged(h *Hour, delays []int64) columnCheck {
	var c columnCheck
	if len(delays) == 0 {
		return c
	}
	delays = slices.Sorted(slices.Values(delays))
	sum := int64(0)
	for _, d := range delays {
		sum += d
	}
	avg := float64(sum) / float64(len(delays))
	c.number("averageDelay", h.AverageDelay, avg, avg)
	// The nearest rank, and the relative error that is promised.
	p95 := float64(delays[int(math.Ceil(0.95*float64(len(delays))*(1-1e-13)))-1])
	c.number("p95Delay", h.P95Delay, p95-0.01*math.Abs(p95), p95+0.01*math.Abs(p95))
	return c
}
