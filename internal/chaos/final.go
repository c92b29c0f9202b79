package chaos

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/streamgauge/streamgauge/internal/chaos/oracle"
)

// finalBound is how long the views may take, after the last fault is healed, to
// hold everything.
const finalBound = 120 * time.Second

// final waits until every view, through every instance, is the fold of all that
// was acknowledged, and every subscription has been told the last of its key.
// What differs at the end is lost.
func (r *run) final(ctx context.Context) error {
	if _, why := r.whole(ctx); why != "" {
		r.trail.event("not whole at the end: %s", why)
		r.picture(ctx)
	}
	deadline := time.Now().Add(finalBound)
	for _, in := range r.cluster.list {
		began := time.Now()
		var wrong []asked
		var faults [][]oracle.Fault
		for {
			wrong, faults = r.compare(ctx, in)
			if len(wrong) == 0 || time.Now().After(deadline) || ctx.Err() != nil {
				break
			}
			pause(ctx, 500*time.Millisecond)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range wrong {
			for _, f := range faults[i] {
				r.violation(&wrong[i], oracle.Fault{Kind: oracle.Lost, Text: "at the end: " + f.Text})
			}
		}
		if len(wrong) > 0 {
			r.picture(ctx)
		} else {
			r.trail.event("%s has every view as the fold has it, after %s", in.name, time.Since(began).Round(time.Millisecond))
		}
	}
	r.finalWatches(ctx, deadline)
	return ctx.Err()
}

// finalWatches waits until subscriptions have caught up.
func (r *run) finalWatches(ctx context.Context, deadline time.Time) {
	for _, w := range r.watchers {
		for ctx.Err() == nil {
			n, last, heard := w.last()
			faults := r.ledger.Totals(w.key, &oracle.Row{Origin: w.key, Flights: &n}, oracle.All)
			if len(faults) == 0 {
				break
			}
			if time.Now().After(deadline) {
				f := oracle.Fault{Kind: oracle.Lost, Text: fmt.Sprintf("a subscription to %s was told of %d flights at last, at %s", w.key, n, heard.UTC().Format("15:04:05.000"))}
				if last == nil {
					last = &asked{client: w.name, in: r.cluster.list[0], q: &question{key: w.key}}
				}
				r.violation(last, f)
				break
			}
			pause(ctx, 200*time.Millisecond)
		}
	}
}

// compare asks one instance for everything and returns what is not the fold.
func (r *run) compare(ctx context.Context, in *instance) ([]asked, [][]oracle.Fault) {
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	f := &finalizer{run: r, in: in, http: c}
	f.pages(ctx)
	f.rankings(ctx)
	for i := 0; i < len(r.real); i += 10 {
		f.series(ctx, r.real[i:min(i+10, len(r.real))])
	}
	keys := r.ledger.Keys()
	step := max(1, len(keys)/200)
	for i := 0; i < len(keys); i += 10 * step {
		var some []string
		for j := i; j < min(i+10*step, len(keys)); j += step {
			some = append(some, keys[j])
		}
		f.series(ctx, some)
	}
	return f.wrong, f.faults
}

// finalizer collects what one instance has wrong. It stops at a few.
type finalizer struct {
	run    *run
	in     *instance
	http   *http.Client
	wrong  []asked
	faults [][]oracle.Fault
}

func (f *finalizer) full() bool { return len(f.wrong) >= 20 }

// ask asks and has the answer checked; false: there is none.
func (f *finalizer) ask(ctx context.Context, selection, key string, check func(a *answer) ([]oracle.Fault, error)) bool {
	if f.full() {
		return false
	}
	query := body("{ "+selection+" }", nil)
	at := asked{client: "final comparison", in: f.in, q: &question{key: key}, request: string(query), sent: time.Now()}
	at.answer = post(ctx, f.http, f.in.http, query, 2*patience)
	at.took = time.Since(at.sent)
	err := at.answer.err
	var faults []oracle.Fault
	if err == nil {
		faults, err = check(&at.answer)
	}
	for path, v := range at.answer.views {
		if v.Partial {
			faults = append(faults, oracle.Fault{Text: path + " lacks partitions"})
		}
	}
	if err != nil {
		faults = append(faults, oracle.Fault{Text: err.Error()})
	}
	if len(faults) > 0 {
		f.wrong, f.faults = append(f.wrong, at), append(f.faults, faults)
	}
	return err == nil
}

// pages reads all totals.
func (f *finalizer) pages(ctx context.Context) {
	cursor, after := "", ""
	for more := true; more; {
		selection := fmt.Sprintf("airportTotalsPage(first: 500%s) { %s }", cursor, pageColumns)
		ok := f.ask(ctx, selection, "", func(a *answer) ([]oracle.Fault, error) {
			c, err := field[connection](a, "airportTotalsPage")
			if err != nil {
				return nil, err
			}
			more = c.PageInfo.HasNextPage
			faults := f.run.ledger.Page(&oracle.Page{Rows: c.rows(), After: after, First: 500, More: more}, oracle.All)
			if n := len(c.Edges); n > 0 && c.PageInfo.EndCursor != nil {
				after, cursor = c.Edges[n-1].Node.Origin, fmt.Sprintf(", after: %q", *c.PageInfo.EndCursor)
			} else if more {
				return faults, fmt.Errorf("more rows follow a page without any")
			}
			return faults, nil
		})
		if !ok {
			return
		}
	}
}

// rankings reads the rankings and the size.
func (f *finalizer) rankings(ctx context.Context) {
	l := f.run.ledger
	f.ask(ctx, "topAirports(first: 100) { rows { "+totalsColumns+" } }", "", func(a *answer) ([]oracle.Fault, error) {
		rows, err := rankedRows(a, "topAirports", "rows")
		return l.Ranking(&oracle.Ranking{Rows: rows, First: 100, By: oracle.ByDelayMinutes}, oracle.All), err
	})
	f.ask(ctx, "leastPunctual(first: 50) { "+totalsColumns+" }", "", func(a *answer) ([]oracle.Fault, error) {
		rows, err := rankedRows(a, "leastPunctual", "")
		return l.Ranking(&oracle.Ranking{Rows: rows, First: 50, By: oracle.ByDelayedShare}, oracle.All), err
	})
	f.ask(ctx, "busiestAirports(first: 50) { "+hourColumns+" }", "", func(a *answer) ([]oracle.Fault, error) {
		rows, err := field[[]oracle.Hour](a, "busiestAirports")
		return l.Busiest(rows, 50, false, oracle.All), err
	})
	f.ask(ctx, "airportCount", "", func(a *answer) ([]oracle.Fault, error) {
		n, err := field[int64](a, "airportCount")
		return l.Size(n, false, oracle.All), err
	})
}

// series reads the windows of some keys, and each key's as one row.
func (f *finalizer) series(ctx context.Context, keys []string) {
	selection := ""
	for i, key := range keys {
		selection += fmt.Sprintf("s%d: airportHours(origin: %q) { %s } ", i, key, hourColumns)
	}
	f.ask(ctx, selection, keys[0], func(a *answer) ([]oracle.Fault, error) {
		var faults []oracle.Fault
		for i, key := range keys {
			hours, err := field[[]oracle.Hour](a, fmt.Sprintf("s%d", i))
			if err != nil {
				return faults, err
			}
			faults = append(faults, f.run.ledger.Series(key, hours, oracle.All)...)
		}
		return faults, nil
	})
}
