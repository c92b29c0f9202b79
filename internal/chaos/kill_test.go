package chaos

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fold is the answer that a plain loop over the records gives.
type fold struct {
	Flights, Delayed, DelayMinutes int64
	WorstDelay                     *int64
}

func foldFlights(t *testing.T, lines []string) map[string]*fold {
	t.Helper()
	totals := map[string]*fold{}
	for _, line := range lines {
		var r struct {
			Origin string
			Delay  int64
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		f := totals[r.Origin]
		if f == nil {
			f = &fold{}
			totals[r.Origin] = f
		}
		f.Flights++
		f.DelayMinutes += r.Delay
		if r.Delay > 15 {
			f.Delayed++
		}
		if f.WorstDelay == nil || *f.WorstDelay < r.Delay {
			f.WorstDelay = &r.Delay
		}
	}
	return totals
}

// Invariants 1, 2 and 4: instances are killed, at random moments, while the
// flights come in and readers ask the others. No count goes back, no airport
// that was there is missing, and at the end every airport has what the fold has.
func TestInvariant1KilledInstances(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	brokers := kafka(t)
	bin := build(t)
	flights, airports := lines(t, "flights-20k.jsonl.gz"), lines(t, "airports.jsonl")
	table := newFeed(t, brokers, "airports")
	table.write("iata", airports)
	table.stop()
	events := newFeed(t, brokers, "flights")
	defer events.stop()

	app := fmt.Sprintf("chaos-%d", seed%1_000_000)
	var instances []*process
	for _, name := range []string{"a", "b", "c"} {
		p := newProcess(t, bin, app, name, brokers)
		p.start()
		instances = append(instances, p)
	}
	t.Cleanup(func() {
		for _, p := range instances {
			if p.kill(); t.Failed() {
				t.Logf("%s\n%s", p.http, clip(p.out.String()))
			}
		}
	})
	readers := startReaders(t, instances)
	for from := 0; from < len(flights); from += 1000 {
		events.write("", flights[from:min(from+1000, len(flights))])
		if from%4000 == 2000 {
			// One that has joined: the embedded broker never forgets a member that
			// dies while it joins.
			victim := instances[rng.IntN(len(instances))]
			until(t, victim.ready, func() string { return victim.http + " to be ready" })
			victim.kill()
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Millisecond) // a moment, not a wait
			victim.start()
		}
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
	}
	want := foldFlights(t, flights)
	for _, p := range instances {
		awaitFold(t, p, want)
	}
	readers.stop()
	t.Logf("%d answers, %d requests without one, longest time without any at one instance %s",
		readers.answers.Load(), readers.failed.Load(), time.Duration(readers.gap.Load()).Round(time.Millisecond))
}

// awaitFold waits until an instance answers every airport as the fold does.
func awaitFold(t *testing.T, p *process, want map[string]*fold) {
	t.Helper()
	why := "no answer"
	until(t, func() bool {
		var r struct {
			Data struct {
				AirportTotalsPage struct {
					Edges []struct {
						Node struct {
							Origin string
							fold
						}
					}
				}
			}
		}
		text := p.ask(`{ airportTotalsPage(first: 500) { edges { node { origin flights delayed delayMinutes worstDelay } } freshness { partial } } }`)
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return false
		}
		edges := r.Data.AirportTotalsPage.Edges
		if len(edges) != len(want) {
			why = fmt.Sprintf("%d airports of %d: %s", len(edges), len(want), text[max(0, len(text)-400):])
			return false
		}
		for _, e := range edges {
			w := want[e.Node.Origin]
			if w == nil || e.Node.Flights != w.Flights || e.Node.Delayed != w.Delayed || e.Node.DelayMinutes != w.DelayMinutes || *e.Node.WorstDelay != *w.WorstDelay {
				why = fmt.Sprintf("%s is %+v, want %+v", e.Node.Origin, e.Node.fold, w)
				return false
			}
		}
		return true
	}, func() string { return "the fold's numbers: " + why })
}

// readers ask each instance for one airport, over and over.
type readers struct {
	stopping chan struct{}
	wg       sync.WaitGroup
	answers  atomic.Int64
	failed   atomic.Int64
	gap      atomic.Int64 // ns
}

func startReaders(t *testing.T, instances []*process) *readers {
	r := &readers{stopping: make(chan struct{})}
	for _, p := range instances {
		r.wg.Go(func() { r.read(t, p) })
	}
	return r
}

func (r *readers) stop() {
	close(r.stopping)
	r.wg.Wait()
}

func (r *readers) read(t *testing.T, p *process) {
	last, since, why := int64(0), time.Now(), ""
	for {
		select {
		case <-r.stopping:
			return
		case <-time.After(20 * time.Millisecond):
		}
		text := p.ask(`{ airportTotals(origin: "DFW") { flights } }`)
		var a struct {
			Data   struct{ AirportTotals *struct{ Flights int64 } }
			Errors []any
		}
		if text == "" || json.Unmarshal([]byte(text), &a) != nil || len(a.Errors) > 0 {
			r.failed.Add(1)
			why = clip(text)
			continue
		}
		r.answers.Add(1)
		if gap := time.Since(since); gap > 5*time.Second {
			t.Logf("%s: no answer for %s, at last: %s", p.http, gap.Round(time.Millisecond), why)
		}
		r.gap.Store(max(r.gap.Load(), int64(time.Since(since))))
		since = time.Now()
		switch {
		case a.Data.AirportTotals == nil && last > 0:
			t.Errorf("DFW had %d flights and is missing: %s", last, text)
		case a.Data.AirportTotals == nil:
		case a.Data.AirportTotals.Flights < last:
			t.Errorf("DFW went back from %d to %d", last, a.Data.AirportTotals.Flights)
		default:
			last = a.Data.AirportTotals.Flights
		}
	}
}

func lines(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open("../../cmd/flights/data/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	s := bufio.NewScanner(r)
	for s.Scan() {
		out = append(out, s.Text())
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return out
}
