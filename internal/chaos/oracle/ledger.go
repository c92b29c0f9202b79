package oracle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// All is an as-of after everything: an answer with it must be the whole fold.
const All = math.MaxInt64

// Ledger is what was sent and what of it was acknowledged. Safe for concurrent
// use.
type Ledger struct {
	slack int64 // ns

	mu         sync.RWMutex // guards the following
	keys       map[string]*history
	sorted     []*history // by name, when clean
	clean      bool
	partitions []partition
}

// partition is the order of one source partition.
type partition struct {
	records []*line // whose record each is
	dates   []int64
	acked   int
}

// history is one key's records, a line a partition that has any.
type history struct {
	name  string
	lines []*line
}

// line is one key's records in one partition, in the order of the log.
type line struct {
	partition int
	events    []Event
	acked     []int64  // ns, of the first so many events; never falls
	prefix    []Totals // prefix[n]: of the first n events
}

// NewLedger makes the ledger of a topic. slack is by how much an answer's as-of
// may be ahead of what it holds: clocks are read a little before or after what
// they stand for.
func NewLedger(partitions int, slack time.Duration) *Ledger {
	return &Ledger{
		slack: int64(slack), keys: make(map[string]*history),
		partitions: make([]partition, partitions),
	}
}

// Sent notes a record before it goes out. The order within a partition is the
// log's.
func (l *Ledger) Sent(p int, e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.keys[e.Key]
	if h == nil {
		h = &history{name: e.Key}
		l.keys[e.Key] = h
		l.sorted, l.clean = append(l.sorted, h), false
	}
	i := slices.IndexFunc(h.lines, func(x *line) bool { return x.partition == p })
	if i < 0 {
		i = len(h.lines)
		h.lines = append(h.lines, &line{partition: p, prefix: []Totals{nothing()}})
	}
	n := h.lines[i]
	n.events = append(n.events, e)
	n.prefix = append(n.prefix, n.prefix[len(n.prefix)-1].with(&e))
	part := &l.partitions[p]
	part.records = append(part.records, n)
	part.dates = append(part.dates, e.Date)
}

// Acked notes that the next n records of a partition were acknowledged.
func (l *Ledger) Acked(p, n int, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	part := &l.partitions[p]
	for _, r := range part.records[part.acked : part.acked+n] {
		r.acked = append(r.acked, at.UnixNano())
	}
	part.acked += n
}

// OldestUnacked is the least event time among the records that are on their way;
// false: there are none.
func (l *Ledger) OldestUnacked() (int64, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	oldest, found := int64(math.MaxInt64), false
	for i := range l.partitions {
		if p := &l.partitions[i]; p.acked < len(p.dates) {
			oldest, found = min(oldest, p.dates[p.acked]), true
		}
	}
	return oldest, found
}

// Counts are the records sent and acknowledged, by partition.
func (l *Ledger) Counts() (sent, acked []int64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for i := range l.partitions {
		sent = append(sent, int64(len(l.partitions[i].records)))
		acked = append(acked, int64(l.partitions[i].acked))
	}
	return sent, acked
}

// Keys are the names of all keys with a record sent, sorted.
func (l *Ledger) Keys() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sort()
	names := make([]string, len(l.sorted))
	for i, h := range l.sorted {
		names[i] = h.name
	}
	return names
}

// sort puts the keys in order; the caller holds mu for writing.
func (l *Ledger) sort() {
	if !l.clean {
		slices.SortFunc(l.sorted, func(a, b *history) int { return cmp.Compare(a.name, b.name) })
		l.clean = true
	}
}

// Tell describes what is known of a key, for a trail: each partition's sent and
// acknowledged records, and the last of each.
func (l *Ledger) Tell(key string) string {
	l.mu.RLock()
	defer l.mu.RUnlock()
	h := l.keys[key]
	if h == nil {
		return key + ": never sent"
	}
	s := key + ":"
	for _, n := range h.lines {
		s += fmt.Sprintf(" partition %d sent %d acknowledged %d", n.partition, len(n.events), len(n.acked))
		if k := len(n.acked); k > 0 {
			s += " (last " + time.Unix(0, n.acked[k-1]).UTC().Format("15:04:05.000") + ")"
		}
	}
	return s
}

// before is how many of a line's records were acknowledged before asOf, in ms;
// 0 as-of: unknown, none must be in.
func (n *line) before(asOf, slack int64) int {
	switch asOf {
	case 0:
		return 0
	case All:
		return len(n.acked)
	}
	i, _ := slices.BinarySearch(n.acked, asOf*int64(time.Millisecond)-slack)
	return i
}

// span is how many records of a line an answer may hold.
type span struct {
	line   *line
	lo, hi int
}

// spans are those of a key; the caller holds mu.
func (l *Ledger) spans(h *history, asOf int64) []span {
	if h == nil {
		return nil
	}
	out := make([]span, len(h.lines))
	for i, n := range h.lines {
		out[i] = span{n, n.before(asOf, l.slack), len(n.events)}
	}
	return out
}

// bounds are the totals at the least and at the most records.
func bounds(spans []span) (lo, hi Totals) {
	lo, hi = nothing(), nothing()
	for _, s := range spans {
		lo, hi = lo.plus(s.line.prefix[s.lo]), hi.plus(s.line.prefix[s.hi])
	}
	return lo, hi
}

// certain says whether a key can have one row only.
func certain(spans []span) bool {
	return !slices.ContainsFunc(spans, func(s span) bool { return s.lo != s.hi })
}
