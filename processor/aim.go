package processor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/processor/store"
)

// newFollower finds where to go on in each changelog and where it ends. A file
// that does not fit its changelogs is discarded.
func (c *taskCopy) newFollower(ctx context.Context, fenced bool) (*follower, error) {
	f := &follower{taskCopy: c, fenced: fenced, began: time.Now()}
	starts, ends, err := f.bounds(ctx)
	if err != nil {
		return nil, err
	}
	highs, err := f.offsets(ctx, broker.Latest)
	if err != nil {
		return nil, err
	}
	if reason := c.unfit(starts, highs); reason != "" {
		if err := c.discardStore(reason); err != nil {
			return nil, err
		}
	}
	if c.caughtUp == 0 {
		c.caughtUp = time.Now().UnixMilli() // begun now: nothing older was seen
	}
	for i, tp := range c.changelog {
		p := &c.positions[i]
		p.ID = c.w.layout.topics[tp.Topic].ID
		if p.Next == unread {
			p.Next = starts[tp]
		}
		ln := &lane{at: i, next: p.Next, target: max(ends[tp], p.Next), end: ends[tp]}
		f.total += ln.target - ln.next
		f.lanes = append(f.lanes, ln)
	}
	f.chunks = make(chan *broker.Chunk, len(f.lanes))
	return f, nil
}

// bounds are the starts of the changelogs and their ends for a reader, now. Those
// of a fenced task are whole: its former owner's transaction has ended.
func (f *follower) bounds(ctx context.Context) (starts, ends map[broker.TopicPartition]int64, err error) {
	end := broker.LastStable
	if f.fenced {
		end = broker.Latest
	}
	if ends, err = f.offsets(ctx, end); err != nil {
		return nil, nil, err
	}
	starts, err = f.offsets(ctx, broker.Earliest)
	return starts, ends, err
}

func (f *follower) offsets(ctx context.Context, at broker.OffsetAt) (map[broker.TopicPartition]int64, error) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	offsets, err := f.w.cfg.Client.Offsets(bounded, f.changelog, at)
	if err != nil {
		return nil, fmt.Errorf("read the ends of the changelogs: %w", err)
	}
	return offsets, nil
}

// unfit says why the copy cannot be continued from its changelogs; "": it can. ends
// are the high watermarks: a commit is answered before the last stable offset has
// come up to it.
func (c *taskCopy) unfit(starts, ends map[broker.TopicPartition]int64) string {
	some := slices.ContainsFunc(c.positions, func(p store.Position) bool { return p.Next != unread })
	for i, tp := range c.changelog {
		p := c.positions[i]
		switch {
		case p.Next == unread && some:
			return fmt.Sprintf("it knows nothing of changelog %s", tp.Topic)
		case p.Next == unread:
			continue
		case p.ID != c.w.layout.topics[tp.Topic].ID:
			return fmt.Sprintf("changelog %s was created anew", tp.Topic)
		case p.Next > ends[tp]:
			return fmt.Sprintf("position %d is beyond the end %d of changelog %s", p.Next, ends[tp], tp)
		case p.Next < starts[tp]:
			return fmt.Sprintf("position %d is before the start %d of changelog %s", p.Next, starts[tp], tp)
		}
	}
	if age := time.Since(time.UnixMilli(c.caughtUp)); some && age > c.w.tombstonesFor/2 {
		return fmt.Sprintf("it was last at the end of its changelogs %s ago, and tombstones are kept for %s", age.Round(time.Minute), c.w.tombstonesFor)
	}
	return ""
}
