package oracle

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Page is a page of the totals in key order, and what was asked.
type Page struct {
	Rows    []Row
	Prefix  string
	After   string // the key that it goes on after; "": from the start
	First   int
	More    bool // rows follow
	Partial bool // partitions are missing, said so
}

// Page checks a page: its order, each row, and that no key between its bounds
// is missing.
func (l *Ledger) Page(p *Page, asOf int64) []Fault {
	l.mu.Lock()
	l.sort()
	l.mu.Unlock()
	l.mu.RLock()
	defer l.mu.RUnlock()
	var faults []Fault
	for i := range p.Rows {
		key := p.Rows[i].Origin
		if i > 0 && key <= p.Rows[i-1].Origin || key <= p.After || !strings.HasPrefix(key, p.Prefix) {
			return append(faults, wrong("%s is out of place in the page of %q after %q", key, p.Prefix, p.After))
		}
		faults = append(faults, l.totals(key, &p.Rows[i], asOf)...)
	}
	if len(p.Rows) > p.First || p.More && len(p.Rows) < p.First && !p.Partial {
		faults = append(faults, wrong("a page of %d has %d rows, more follow: %t", p.First, len(p.Rows), p.More))
	}
	if !p.Partial {
		faults = append(faults, l.absent(p, asOf)...)
	}
	return faults
}

// absent looks for keys that the page must have and has not; the caller holds
// mu.
func (l *Ledger) absent(p *Page, asOf int64) []Fault {
	var last string
	if n := len(p.Rows); n > 0 {
		last = p.Rows[n-1].Origin
	}
	at := 0
	for _, h := range l.sorted {
		switch {
		case h.name <= p.After || !strings.HasPrefix(h.name, p.Prefix):
			continue
		case (p.More || len(p.Rows) >= p.First) && h.name > last:
			return nil
		}
		for at < len(p.Rows) && p.Rows[at].Origin < h.name {
			at++
		}
		if at < len(p.Rows) && p.Rows[at].Origin == h.name {
			continue
		}
		if lo, _ := bounds(l.spans(h, asOf)); lo.Flights > 0 {
			return []Fault{wrong("%s is missing in the page of %q after %q, %d of its records were acknowledged before the answer's as-of", h.name, p.Prefix, p.After, lo.Flights)}
		}
	}
	return nil
}

// Ranking is the largest rows of the totals by a value.
type Ranking struct {
	Rows    []Row
	First   int
	Partial bool
	// By gives the value, false: the row takes no part.
	By func(t Totals) (float64, bool)
}

// ByDelayMinutes ranks by the sum of delays.
func ByDelayMinutes(t Totals) (float64, bool) { return float64(t.DelayMinutes), t.Flights > 0 }

// ByDelayedShare ranks by the share of delayed flights, of fifty and more.
func ByDelayedShare(t Totals) (float64, bool) {
	return float64(t.Delayed) / float64(max(t.Flights, 1)), t.Flights >= 50
}

// Ranking checks each row and the order, and that no key whose row is certain
// ranks above the last and is not there.
func (l *Ledger) Ranking(r *Ranking, asOf int64) []Fault {
	l.mu.RLock()
	defer l.mu.RUnlock()
	var faults []Fault
	seen := make(map[string]bool, len(r.Rows))
	last, lastKey := math.Inf(1), ""
	for i := range r.Rows {
		row := &r.Rows[i]
		faults = append(faults, l.totals(row.Origin, row, asOf)...)
		if row.Flights == nil || row.Delayed == nil || row.DelayMinutes == nil {
			return append(faults, wrong("row %d of a ranking lacks columns", i))
		}
		v, ok := r.By(Totals{Flights: *row.Flights, Delayed: *row.Delayed, DelayMinutes: *row.DelayMinutes})
		switch {
		case !ok || seen[row.Origin]:
			faults = append(faults, wrong("%s has no place %d in the ranking", row.Origin, i))
		case v > last || v == last && row.Origin < lastKey:
			faults = append(faults, wrong("%s with %g ranks below %s with %g", row.Origin, v, lastKey, last))
		}
		seen[row.Origin] = true
		last, lastKey = v, row.Origin
	}
	if len(r.Rows) < r.First {
		last, lastKey = math.Inf(-1), ""
	}
	if r.Partial || len(faults) > 0 {
		return faults
	}
	for _, h := range l.keys {
		spans := l.spans(h, asOf)
		if seen[h.name] || !certain(spans) {
			continue
		}
		_, t := bounds(spans)
		if v, ok := r.By(t); ok && (v > last || v == last && h.name < lastKey) {
			return []Fault{wrong("%s with %g is not in the ranking that ends with %s at %g", h.name, v, lastKey, last)}
		}
	}
	return nil
}

// Size checks a number of keys.
func (l *Ledger) Size(n int64, partial bool, asOf int64) []Fault {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if n > int64(len(l.keys)) {
		return []Fault{wrong("there are %d keys, only %d were ever sent", n, len(l.keys))}
	}
	if partial {
		return nil
	}
	var known int64
	for _, h := range l.keys {
		if slices.ContainsFunc(h.lines, func(x *line) bool { return x.before(asOf, l.slack) > 0 }) {
			known++
		}
	}
	if n < known {
		return []Fault{older("there are %d keys, %d were acknowledged before the answer's as-of", n, known)}
	}
	return nil
}

// Busiest checks the keys with the most flights over all windows.
func (l *Ledger) Busiest(rows []Hour, first int, partial bool, asOf int64) []Fault {
	l.mu.RLock()
	defer l.mu.RUnlock()
	seen := make(map[string]bool, len(rows))
	for i := range rows {
		h := &rows[i]
		_, hi := bounds(l.spans(l.keys[h.Origin], asOf))
		lo, _ := bounds(l.spans(l.keys[h.Origin], asOf))
		switch {
		case h.Flights > hi.Flights:
			return []Fault{wrong("%s has %d flights in all windows, only %d were ever sent", h.Origin, h.Flights, hi.Flights)}
		case h.Flights < lo.Flights:
			return []Fault{older("%s has %d flights in all windows, %d were acknowledged before the answer's as-of", h.Origin, h.Flights, lo.Flights)}
		case seen[h.Origin] || i > 0 && cmp.Or(cmp.Compare(rows[i-1].Flights, h.Flights), cmp.Compare(h.Origin, rows[i-1].Origin)) < 0:
			return []Fault{wrong("%s is out of place in the ranking by flights", h.Origin)}
		}
		seen[h.Origin] = true
	}
	if partial || len(rows) == 0 {
		return nil
	}
	last := &rows[len(rows)-1]
	for _, h := range l.keys {
		lo, _ := bounds(l.spans(h, asOf))
		if !seen[h.name] && (len(rows) < first && lo.Flights > 0 || lo.Flights > last.Flights) {
			return []Fault{wrong("%s with %d flights is not in the ranking that ends with %s at %d", h.name, lo.Flights, last.Origin, last.Flights)}
		}
	}
	return nil
}
