package chaos

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/internal/chaos/oracle"
)

// report counts. Safe for concurrent use.
type report struct {
	mu        sync.Mutex // guards the following
	reads     int64
	unready   int64 // asked of an instance that is not counted: down, paused, cut off
	stale     int64 // refused as older than demanded
	events    int64 // of subscriptions
	kills     int64
	faults    map[oracle.Kind]int64
	latencies []int32             // µs, of good answers
	good      map[string]lastGood // by probe key
	gap       time.Duration
	gapKey    string
	gapAt     time.Time
}

// lastGood is when a probe key was answered last.
type lastGood struct{ at time.Time }

func newReport() *report {
	return &report{faults: map[oracle.Kind]int64{}, good: map[string]lastGood{}}
}

// answer counts a good answer and its time.
func (r *report) answer(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	r.latencies = append(r.latencies, int32(min(took.Microseconds(), 1<<31-1)))
}

// probe notes a good answer for a probe key.
func (r *report) probe(key string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.good[key]; ok && at.Sub(last.at) > r.gap {
		r.gap, r.gapKey, r.gapAt = at.Sub(last.at), key, last.at
	}
	if at.After(r.good[key].at) {
		r.good[key] = lastGood{at}
	}
}

// endProbes takes the time until now as a gap.
func (r *report) endProbes(now time.Time) {
	r.mu.Lock()
	keys := make([]string, 0, len(r.good))
	for k := range r.good {
		keys = append(keys, k)
	}
	r.mu.Unlock()
	for _, k := range keys {
		r.probe(k, now)
	}
}

func (r *report) add(counter *int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*counter++
}

func (r *report) fault(k oracle.Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[k]++
}

// sum is the number of all faults.
func (r *report) sum() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var n int64
	for _, c := range r.faults {
		n += c
	}
	return n
}

func (r *report) result() Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Result{Reads: r.reads, Kills: r.kills, Faults: maps.Clone(r.faults)}
}

// progress is a line about how it stands.
func (r *report) progress() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := fmt.Sprintf("reads=%d events=%d kills=%d", r.reads, r.events, r.kills)
	for _, k := range []oracle.Kind{oracle.Wrong, oracle.Lost, oracle.Failed, oracle.Backwards, oracle.FalseFreshness} {
		if n := r.faults[k]; n > 0 {
			s += fmt.Sprintf(" %s=%d", k, n)
		}
	}
	if r.unready+r.stale > 0 {
		s += fmt.Sprintf(" (not counted: %d of instances that are away, %d refused as too old)", r.unready, r.stale)
	}
	return s
}

// closing is the one line at the end.
func (r *report) closing(seed uint64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.latencies)
	return fmt.Sprintf("chaos: seed=%d kills=%d reads=%d wrong=%d lost=%d failed=%d backwards=%d false_freshness=%d p50_ms=%s p99_ms=%s max_gap_ms=%d",
		seed, r.kills, r.reads, r.faults[oracle.Wrong], r.faults[oracle.Lost], r.faults[oracle.Failed], r.faults[oracle.Backwards],
		r.faults[oracle.FalseFreshness], millis(quantile(r.latencies, 0.5)), millis(quantile(r.latencies, 0.99)), r.gap.Milliseconds())
}

// quantile is the nearest rank's of sorted numbers; 0 of none.
func quantile(sorted []int32, q float64) int32 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func millis(us int32) string { return fmt.Sprintf("%.1f", float64(us)/1000) }
