package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/internal/chaos/oracle"
)

// watcher keeps one subscription to a key open, at one instance after the other,
// and demands what it has seen.
type watcher struct {
	run   *run
	name  string
	key   string
	ws    bool
	rng   *rand.Rand
	http  *http.Client
	known tokens

	mu     sync.Mutex // guards the following
	seen   int64
	latest *asked // the last event, or error
	heard  time.Time
}

func (r *run) newWatcher(i int) *watcher {
	name := fmt.Sprintf("event stream %d", i)
	if i%2 == 1 {
		name = fmt.Sprintf("websocket %d", i)
	}
	rng := rand.New(rand.NewPCG(r.cfg.Seed, 1000+uint64(i)))
	key := generated(rng.IntN(hot))
	if i%3 == 2 {
		key = r.real[rng.IntN(len(r.real))]
	}
	return &watcher{run: r, name: name, key: key, ws: i%2 == 1, rng: rng, http: &http.Client{Transport: &http.Transport{}}, known: tokens{}}
}

// loop subscribes until ctx ends.
func (w *watcher) loop(ctx context.Context) {
	defer w.http.CloseIdleConnections()
	list := w.run.cluster.list
	for i := w.rng.IntN(len(list)); ctx.Err() == nil; i++ {
		if in := list[i%len(list)]; w.may(in) {
			w.subscribe(ctx, in)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *watcher) may(in *instance) bool {
	c, _, _ := in.now()
	return c == up
}

func (w *watcher) subscribe(ctx context.Context, in *instance) {
	query, vars := w.run.directive.operation(fmt.Sprintf("airportTotals(origin: %q) { %s }", w.key, totalsColumns), demand{kind: "subscription", token: w.known.text()})
	request := body(query, vars)
	began := time.Now()
	each := func(a answer) {
		w.event(&asked{client: w.name, in: in, q: &question{key: w.key}, request: string(request), sent: began, took: time.Since(began), answer: a})
	}
	_, _, epoch := in.now()
	err := error(nil)
	if w.ws {
		err = socket(ctx, in.http, request, each)
	} else {
		err = events(ctx, w.http, in.http, request, each)
	}
	if cond, _, now := in.now(); cond == up && now == epoch && ctx.Err() == nil {
		// An instance that lives, and that nobody touched, has ended it.
		w.run.trail.event("%s at %s for %s ended after %s: %v", w.name, in.name, w.key, time.Since(began).Round(time.Millisecond), err)
	}
}

// event follows one.
func (w *watcher) event(at *asked) {
	r := w.run
	w.mu.Lock()
	w.latest, w.heard = at, time.Now()
	w.mu.Unlock()
	if at.answer.err != nil {
		cond, isolated, _ := at.in.now()
		if cond == up && !isolated && !r.brokersAway.Load() {
			r.violation(at, oracle.Fault{Kind: oracle.Failed, Text: "an event of a subscription: " + at.answer.err.Error()})
		}
		return
	}
	r.report.add(&r.report.events)
	row, err := field[*oracle.Row](&at.answer, "airportTotals")
	if err != nil {
		r.violation(at, oracle.Fault{Kind: oracle.Wrong, Text: err.Error()})
		return
	}
	f := at.answer.views["airportTotals"]
	if f.Partial {
		return // nothing can be read, and it says so: the rows are the last known
	}
	faults := r.ledger.Totals(w.key, row, f.asOf())
	if err := w.known.take(f.Token); err != nil {
		faults = append(faults, oracle.Fault{Kind: oracle.Wrong, Text: err.Error()})
	}
	n := int64(0)
	if row != nil && row.Flights != nil {
		n = *row.Flights
	}
	w.mu.Lock()
	if n < w.seen {
		faults = append(faults, oracle.Fault{Kind: oracle.Backwards, Text: fmt.Sprintf("a subscription to %s had %d flights and has %d", w.key, w.seen, n)})
	}
	w.seen = max(w.seen, n)
	w.mu.Unlock()
	for _, fault := range faults {
		r.violation(at, fault)
	}
}

// last is the number of flights that it has been told, and its last event; nil:
// none.
func (w *watcher) last() (n int64, at *asked, heard time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen, w.latest, w.heard
}
