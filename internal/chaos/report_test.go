package chaos

import (
	"regexp"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/internal/chaos/oracle"
)

func TestClosingLine(t *testing.T) {
	r := newReport()
	for i := range 100 {
		r.answer(time.Duration(i+1) * time.Millisecond)
	}
	now := time.Now()
	r.probe("a", now)
	r.probe("b", now.Add(time.Second))
	r.probe("a", now.Add(300*time.Millisecond))
	r.endProbes(now.Add(1500 * time.Millisecond))
	r.fault(oracle.Failed)
	r.add(&r.kills)
	const want = "chaos: seed=9 kills=1 reads=100 wrong=0 lost=0 failed=1 backwards=0 false_freshness=0 p50_ms=51.0 p99_ms=100.0 max_gap_ms=1200"
	if got := r.closing(9); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if r.sum() != 1 {
		t.Errorf("%d faults, want 1", r.sum())
	}
	if got := newReport().closing(1); !regexp.MustCompile(`p50_ms=0\.0 p99_ms=0\.0 max_gap_ms=0$`).MatchString(got) {
		t.Error(got)
	}
}
