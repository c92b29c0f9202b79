package processor

import (
	"fmt"
	"testing"

	"github.com/streamgauge/streamgauge/view/read"
)

// An instance is ready once the lag is known: the first answer after it counts
// every record that it does not hold.
func TestLagIsKnownWhenReady(t *testing.T) {
	const schema = `
type Hit @source(topic: "hits"%s, time: "at") { page: String! at: DateTime! }
type PageTotals @view(from: "Hit", by: "page") { page: String! hits: Long! @count }
type Query { pageTotals(page: String!): PageTotals @lookup }`
	const total = 30_000
	for name, key := range map[string]string{"from the source": `, key: "page"`, "over a repartition": ""} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t, fmt.Sprintf(schema, key))
			c.create("hits", 1)
			var records []message
			for i := range total {
				k := fmt.Sprint("p", i%10)
				records = append(records, message{key: []byte(k), value: fmt.Appendf(nil, `{"page":"%s","at":"2024-01-01T00:00:00Z"}`, k)})
			}
			c.produce("hits", records...)
			in := c.start("one")
			until(t, "ready", func() bool { return in.Status().Ready })
			as, err := in.Read(t.Context(), []*read.Request{{Query: all("page-totals")}})
			if err != nil || as[0].Err != nil {
				t.Fatal(err, as[0].Err)
			}
			held := int64(0)
			for _, r := range as[0].Rows {
				held += column(in, "page-totals", r, "hits").Int()
			}
			if part := as[0].Part; held+part.Lag < total {
				t.Errorf("%d held and a lag of %d, as of %d: of %d records", held, part.Lag, part.AsOf, total)
			}
		})
	}
}

func TestUnheard(t *testing.T) {
	for want, ups := range map[int32][]upstream{
		-1: {{Wall: 1}, {Wall: 2}},
		0:  {{}, {Wall: 2}, {}},
		1:  {{Wall: 1}, {End: 7}},
	} {
		if got := unheard(ups); got != want {
			t.Errorf("%+v: %d, want %d", ups, got, want)
		}
	}
}

// A source task says how far its input reaches before it has read any of it.
func TestForwarderKnowsTheEnd(t *testing.T) {
	l := benched(t, 0, 0)
	l.end = 42
	l.setPosition(40)
	landed, _, _ := l.newForwarder().flights.state()
	if landed.Next != 40 || landed.End != 42 {
		t.Errorf("at %d of %d, want 40 of 42", landed.Next, landed.End)
	}
}

// As-of goes on under steady input, though no chunk reaches the end that it tells of.
func TestGoalIsReachedBehindAMovingEnd(t *testing.T) {
	var g goal
	for _, step := range []struct{ next, end, at, want int64 }{
		{10, 10, 1, 1}, {15, 30, 2, 0}, {25, 40, 3, 0}, {30, 50, 4, 2}, {45, 60, 5, 0}, {50, 70, 6, 4}, {70, 70, 7, 7}, {71, 80, 8, 0}, {80, 80, 9, 9},
	} {
		if got := g.reached(step.next, step.end, step.at); got != step.want {
			t.Errorf("at %d: %d, want %d", step.at, got, step.want)
		}
	}
}
