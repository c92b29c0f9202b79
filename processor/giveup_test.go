package processor

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// refuseForwards has the broker refuse what goes to repartition topics while on.
func (c *testCluster) refuseForwards(on *atomic.Bool) {
	c.fake().ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.fake().KeepControl()
		req := r.(*kmsg.ProduceRequest)
		if !on.Load() || !strings.HasSuffix(req.Topics[0].Topic, "-repartition") {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, topic := range req.Topics {
			rt := kmsg.NewProduceResponseTopic()
			rt.Topic = topic.Topic
			for _, p := range topic.Partitions {
				rp := kmsg.NewProduceResponseTopicPartition()
				rp.Partition, rp.ErrorCode = p.Partition, broker.ErrNotLeader.Code()
				rt.Partitions = append(rt.Partitions, rp)
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp, nil, true
	})
}

// Repartition topics that are out of reach for longer than the producer tries:
// what is queued is given up, and sent again from the commit, nothing left out in
// between (invariant 1).
func TestGivingUpLosesNothing(t *testing.T) {
	c := newTestCluster(t, `
type Hit @source(topic: "hits", time: "at") { page: String! at: DateTime! }
type PageTotals @view(from: "Hit", by: "page") { page: String! hits: Long! @count }
type Query { pageTotals(page: String!): PageTotals @lookup }`)
	c.create("hits", 1)
	var away atomic.Bool
	c.refuseForwards(&away)
	in := c.start("one", func(cfg *Config) {
		cfg.Standbys, cfg.deliveryTimeout, cfg.queueBytes = -1, 300*time.Millisecond, 64<<10
	})
	until(t, "ready", func() bool { return in.Status().Ready })
	want := int64(0)
	produce := func() {
		var ms []message
		for i := range 5000 {
			ms = append(ms, message{value: fmt.Appendf(nil, `{"page":"p%d","at":"2024-01-01T00:00:00Z"}`, i%10)})
		}
		c.produce("hits", ms...)
		want += 5000
	}
	for round := range 12 {
		away.Store(round%4 == 1)
		produce()
		if away.Load() {
			restarts := count(t, in.metrics.restarts)
			until(t, "the source task starts over", func() bool { return count(t, in.metrics.restarts) > restarts })
		}
	}
	until(t, "every record counts once", func() bool {
		as, err := in.Read(t.Context(), []*read.Request{{Query: all("page-totals")}})
		if err != nil || as[0].Err != nil {
			return false
		}
		sum := int64(0)
		for _, row := range as[0].Rows {
			sum += column(in, "page-totals", row, "hits").Int()
		}
		if sum > want {
			t.Fatalf("%d counted of %d", sum, want)
		}
		return sum == want
	})
}
