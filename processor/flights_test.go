package processor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/streamgauge/streamgauge/view"
)

// loadFlights puts the airports and the flights into their topics: flight i
// into partition i mod 6.
func loadFlights(t *testing.T, c *testCluster) {
	t.Helper()
	c.create("flights", 6)
	c.create("airports", 1)
	var airports []message
	for s := range strings.Lines(readFile(t, "../cmd/flights/data/airports.jsonl")) {
		airports = append(airports, message{key: []byte(s[len(`{"iata":"`) : len(`{"iata":"`)+3]), value: []byte(strings.TrimSpace(s))})
	}
	c.produce("airports", airports...)
	c.produce("flights", lines(6, flightLines(t)...)...)
}

// known answers over the 20,000 flights.
var known = []struct {
	origin                        string
	flights, delayed, delay, most int64
}{
	{"DFW", 1103, 269, 10462, 298},
	{"ORD", 1095, 254, 8181, 259},
	{"ATL", 846, 174, 6611, 365},
}

func checkKnown(t *testing.T, ins ...*instance) {
	t.Helper()
	for _, k := range known {
		want := fmt.Sprint(k.flights, k.delayed, k.delay, k.most)
		got := ""
		until(t, k.origin+" = "+want, func() bool {
			row := ask(t, ins, "airport-totals", view.OfString(k.origin))
			if row == nil {
				return false
			}
			in := ins[0]
			col := func(n string) int64 { return column(in, "airport-totals", row, n).Int() }
			got = fmt.Sprint(col("flights"), col("delayed"), col("delayMinutes"), col("worstDelay"))
			return got == want
		})
	}
}

func TestKnownAnswers(t *testing.T) {
	c := newTestCluster(t, readFile(t, "../schema.graphqls"))
	loadFlights(t, c)
	in := c.start("a")
	checkKnown(t, in)
	until(t, "ready", func() bool { return in.Status().Ready })
}
