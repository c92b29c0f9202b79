package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

const knownTotals = `{"a":{"flights":1103,"delayed":269,"delayMinutes":10462,"worstDelay":298},` +
	`"b":{"flights":1095,"delayed":254,"delayMinutes":8181,"worstDelay":259},` +
	`"c":{"flights":846,"delayed":174,"delayMinutes":6611,"worstDelay":365},"airportCount":220,` +
	`"topAirports":{"rows":[{"origin":"DFW","delayMinutes":10462},{"origin":"ORD","delayMinutes":8181},` +
	`{"origin":"PHX","delayMinutes":7627},{"origin":"LAX","delayMinutes":7289},{"origin":"ATL","delayMinutes":6611}]}}`

const totalsQuery = `{
  a: airportTotals(origin: "DFW") { ...T } b: airportTotals(origin: "ORD") { ...T } c: airportTotals(origin: "ATL") { ...T }
  airportCount topAirports(first: 5) { rows { origin delayMinutes } }
} fragment T on AirportTotals { flights delayed delayMinutes worstDelay }`

// The known answers, the same from whichever instance is asked.
func TestKnownAnswersFromEveryInstance(t *testing.T) {
	c := newCluster(t)
	c.write("flights", "", flightLines(t))
	c.write("airports", "iata", airportLines(t))
	nodes := []*node{c.start("a"), c.start("b"), c.start("c")}
	for i, n := range nodes {
		got := ""
		until(t, fmt.Sprintf("known answers of instance %d", i), func() bool {
			got = n.query(totalsQuery)
			return same(got, knownTotals)
		})
	}
	for i, n := range nodes {
		until(t, fmt.Sprintf("instance %d ready", i), func() bool { return n.worker.Status().Ready })
	}
	t.Run("queries", func(t *testing.T) { testQueries(t, nodes) })
	t.Run("subscription outlives an instance", func(t *testing.T) { testInstanceStops(t, c, nodes) })
}

func testQueries(t *testing.T, nodes []*node) {
	for _, q := range []struct{ name, query, want string }{
		{"missing key", `{ airportTotals(origin: "XXX") { flights } }`, `{"airportTotals":null}`},
		{"list in order", `{ airportTotalsOf(origins: ["ORD", "XXX", "DFW", "ORD"]) { origin } }`,
			`{"airportTotalsOf":[{"origin":"ORD"},null,{"origin":"DFW"},{"origin":"ORD"}]}`},
		{"nested lookup", `{ airportTotals(origin: "DFW") { airport { city state } } }`,
			`{"airportTotals":{"airport":{"city":"Dallas-Fort Worth","state":"TX"}}}`},
		{"first zero", `{ leastPunctual(first: 0) { origin } }`, `{"leastPunctual":[]}`},
		{"merged", `{ airportPeriod(origin: "DFW", from: "2001-01-01T00:00:00Z", to: "2001-04-01T00:00:00Z") { flights start end } }`,
			`{"airportPeriod":{"flights":1103,"start":"2001-01-01T00:00:00Z","end":"2001-04-01T00:00:00Z"}}`},
	} {
		t.Run(q.name, func(t *testing.T) {
			for i, n := range nodes {
				if got := n.query(q.query); !same(got, q.want) {
					t.Errorf("instance %d: got %s, want %s", i, got, q.want)
				}
			}
		})
	}
	t.Run("pages", func(t *testing.T) { testPages(t, nodes[0]) })
	t.Run("days sum up", func(t *testing.T) { testDays(t, nodes[1]) })
}

// testPages walks all airports in pages, in key order.
func testPages(t *testing.T, n *node) {
	var origins []string
	after := "null"
	for {
		var r struct {
			AirportTotalsPage struct {
				Edges    []struct{ Node struct{ Origin string } }
				PageInfo struct {
					HasNextPage bool
					EndCursor   string
				}
			}
		}
		got := n.query(`{ airportTotalsPage(first: 30, after: ` + after + `) { edges { node { origin } } pageInfo { hasNextPage endCursor } } }`)
		if err := json.Unmarshal([]byte(got), &r); err != nil {
			t.Fatal(got)
		}
		for _, e := range r.AirportTotalsPage.Edges {
			if k := len(origins); k > 0 && origins[k-1] >= e.Node.Origin {
				t.Fatalf("%s after %s", e.Node.Origin, origins[k-1])
			}
			origins = append(origins, e.Node.Origin)
		}
		if !r.AirportTotalsPage.PageInfo.HasNextPage {
			break
		}
		after = `"` + r.AirportTotalsPage.PageInfo.EndCursor + `"`
	}
	if len(origins) != 220 {
		t.Errorf("%d airports, want 220", len(origins))
	}
}

// testDays merges hours into days; with the empty days filled there are 90.
func testDays(t *testing.T, n *node) {
	got := n.query(`{ airportHours(origin: "DFW", from: "2001-01-01T00:00:00Z", to: "2001-04-01T00:00:00Z", step: "1d", fill: EMPTY) { start flights } }`)
	var r struct{ AirportHours []struct{ Flights int } }
	if err := json.Unmarshal([]byte(got), &r); err != nil {
		t.Fatal(got)
	}
	sum := 0
	for _, d := range r.AirportHours {
		sum += d.Flights
	}
	if len(r.AirportHours) != 90 || sum != 1103 {
		t.Errorf("%d days with %d flights, want 90 with 1103", len(r.AirportHours), sum)
	}
}

// testInstanceStops: a subscription at one instance goes on while another is
// stopped, and nothing that it shows goes back.
func testInstanceStops(t *testing.T, c *cluster, nodes []*node) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := nodes[0].subscribe(ctx, `subscription { airportTotals(origin: "DFW") { flights freshness { partial } } }`)
	next := func(what string, want int) {
		t.Helper()
		deadline := time.After(40 * time.Second)
		last := 0
		for {
			select {
			case e, ok := <-events:
				if !ok {
					t.Fatalf("%s: the subscription ended", what)
				}
				var r struct{ AirportTotals struct{ Flights int } }
				if err := json.Unmarshal([]byte(e), &r); err != nil {
					t.Fatalf("%s: %s", what, e)
				}
				if r.AirportTotals.Flights < last {
					t.Fatalf("%s: went back from %d to %d", what, last, r.AirportTotals.Flights)
				}
				if last = r.AirportTotals.Flights; last == want {
					return
				}
			case <-deadline:
				t.Fatalf("%s: waited in vain for %d, last was %d", what, want, last)
			}
		}
	}
	next("snapshot", 1103)
	more := strings.Repeat(`{"date":"2001-03-31T23:00:00Z","origin":"DFW","destination":"LAX","delay":1,"distance":1}`+"\n", 6)
	c.write("flights", "", strings.Split(strings.TrimSpace(more), "\n"))
	next("six more", 1109)
	nodes[1].stop()
	nodes[2].stop()
	c.write("flights", "", strings.Split(strings.TrimSpace(more), "\n"))
	next("after two instances went away", 1115)
}
