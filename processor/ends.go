package processor

import (
	"context"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/schema"
)

// sourceEnds are the ends of the source topics as this instance saw them last. A
// copy that is not the owner's learns of its source through commit records alone:
// what came since would be missing from its lag. Safe for concurrent use.
type sourceEnds struct {
	mu   sync.RWMutex // guards the following
	ends map[broker.TopicPartition]int64
}

const endsInterval = time.Second

// watchEnds reads the ends of the sources, once a second while copies are here
// that need them.
func (w *Worker) watchEnds(ctx context.Context) error {
	var sources []broker.TopicPartition
	for _, s := range w.cfg.Topology.Subtopologies {
		if s.Repartition == nil {
			for p := range w.layout.partitions[s.Name] {
				sources = append(sources, broker.TopicPartition{Topic: s.Topic, Partition: p})
			}
		}
	}
	tick := time.NewTicker(endsInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if !w.follows() {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, requestTimeout)
		ends, err := w.cfg.Client.Offsets(bounded, sources, broker.LastStable)
		cancel()
		if err != nil {
			w.log.Debug("ends of the sources not read", "err", err)
			continue // what was known stays true: ends only grow
		}
		w.ends.mu.Lock()
		w.ends.ends = ends
		w.ends.mu.Unlock()
	}
}

// follows says whether copies are here that are not the owner's.
func (w *Worker) follows() bool {
	for _, t := range w.allTasks() {
		if t.serving.Load() != nil && !t.leading.Load() {
			return true
		}
	}
	return false
}

// lag is how many source records known here are not in a state that ends at rec;
// at least what the record knew itself.
func (e *sourceEnds) lag(sub *schema.Subtopology, id taskID, rec *commitRecord) int64 {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if sub.Repartition == nil {
		return max(rec.Lag, e.ends[broker.TopicPartition{Topic: sub.Topic, Partition: id.Partition}]-rec.Position)
	}
	lag := int64(0)
	for p := range rec.Upstream {
		u := &rec.Upstream[p]
		end := max(u.End, e.ends[broker.TopicPartition{Topic: sub.Repartition.Source.Topic, Partition: int32(p)}])
		lag += max(0, end-u.Next)
	}
	return lag
}
