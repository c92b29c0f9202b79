package processor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
)

// stuck notes since when an input's last stable offset has stood still below its
// end.
type stuck struct {
	at    int64
	since time.Time
	told  bool
}

// heldUp notices an input that a transaction holds up, and says so in the status
// and the log. The records behind it are counted in the lag, and the as-of stands
// still with the offset: reads say that they are stale.
func (l *life) heldUp(ctx context.Context, c *broker.Chunk, now time.Time) {
	s := &l.stuck
	if c.LastStable < 0 || l.position < c.LastStable || c.LastStable >= c.HighWatermark {
		if s.told {
			l.cond.trouble(inputNote, "")
			l.log.Info("input goes on", "topic", l.input.Topic, "partition", l.input.Partition)
		}
		*s = stuck{}
		return
	}
	if s.since.IsZero() || s.at != c.LastStable {
		*s = stuck{at: c.LastStable, since: now, told: s.told}
		return
	}
	if s.told || now.Sub(s.since) < l.w.cfg.HeldUpAfter {
		return
	}
	s.told = true
	note := fmt.Sprintf("%s is held up at offset %d by %s", l.input, c.LastStable, l.holder(ctx))
	l.cond.trouble(inputNote, note)
	l.w.metrics.heldUp.Inc()
	l.log.Error("input is held up; its views are stale until the transaction ends",
		"topic", l.input.Topic, "partition", l.input.Partition, "offset", c.LastStable, "reason", note)
}

// holder names the producers whose transactions are open.
func (l *life) holder(ctx context.Context) string {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout/3)
	defer cancel()
	open, err := l.w.cfg.Client.OpenTransactions(bounded, l.input)
	if err != nil || len(open) == 0 {
		return "an open transaction"
	}
	var names []string
	for _, t := range open {
		names = append(names, fmt.Sprintf("%d (epoch %d, open since offset %d)", t.ProducerID, t.Epoch, t.First))
	}
	return "the transaction of producer " + strings.Join(names, ", ")
}

// stand notes since when a restore has read nothing.
type stand struct {
	done  int64
	since time.Time
}

// standsStill says that a restore does not go on, as while a transaction on a
// changelog is open.
func (f *follower) standsStill(now time.Time) {
	s := &f.moved
	if f.whole || f.arrived() || s.since.IsZero() || s.done != f.done {
		if f.cond.noted(changelogNote) && (f.whole || s.done != f.done) {
			f.cond.trouble(changelogNote, "")
		}
		*s = stand{f.done, now}
		return
	}
	if now.Sub(s.since) < f.w.cfg.HeldUpAfter || f.cond.noted(changelogNote) {
		return
	}
	for i, ln := range f.lanes {
		if ln.next < ln.target {
			note := fmt.Sprintf("the restore stands at offset %d of %d of changelog %s: a transaction may be open there, or its broker away", ln.next, ln.target, f.changelog[i])
			f.cond.trouble(changelogNote, note)
			f.log.Error("a restore stands still", "reason", note)
			return
		}
	}
}
