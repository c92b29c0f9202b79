package chaos

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/streamgauge/streamgauge/internal/chaos/oracle"
)

// Selections of the columns that are checked.
const (
	totalsColumns = "origin flights delayed delayMinutes averageDelay worstDelay lastDeparture delayedShare"
	hourColumns   = "origin start flights averageDelay p95Delay"
)

// question is one read: what is asked, and whether the answer can be right.
type question struct {
	selection string
	key       string // for the trail
	probe     bool
	check     func(a *answer) ([]oracle.Fault, error)
	// counts are the flights by key that the answer has, which must not fall for
	// a client that demands what it has seen.
	counts func(a *answer) map[string]int64
}

// questions makes them up.
type questions struct {
	ledger   *oracle.Ledger
	airports map[string]airport
	real     []string // keys of the table
	keys     int
	rng      *rand.Rand
}

// key is a known key: real, hot, or any generated one.
func (q *questions) key() string {
	switch q.rng.IntN(4) {
	case 0, 1:
		return q.real[q.rng.IntN(len(q.real))]
	case 2:
		return generated(q.rng.IntN(hot))
	}
	return generated(q.rng.IntN(q.keys))
}

// next is the next question, of a random kind.
func (q *questions) next() question {
	switch q.rng.IntN(16) {
	case 0, 1, 2:
		return q.lookup(q.key())
	case 3, 4:
		return q.lookups()
	case 5, 6:
		return q.series(q.key())
	case 7:
		return q.period(q.key())
	case 8, 9:
		return q.page()
	case 10:
		return q.size()
	case 11:
		return q.ranking("topAirports", "rows { "+totalsColumns+" }", 1+q.rng.IntN(40), oracle.ByDelayMinutes)
	case 12:
		return q.ranking("leastPunctual", totalsColumns, 1+q.rng.IntN(20), oracle.ByDelayedShare)
	case 13:
		return q.busiest(1 + q.rng.IntN(20))
	}
	return q.nested(q.real[q.rng.IntN(len(q.real))])
}

// field reads one field of an answer's data.
func field[T any](a *answer, name string) (T, error) {
	var all map[string]json.RawMessage
	var v T
	if err := json.Unmarshal(a.data, &all); err != nil {
		return v, fmt.Errorf("data: %w", err)
	}
	raw, ok := all[name]
	if !ok {
		return v, fmt.Errorf("no %s in the answer", name)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("%s: %w", name, err)
	}
	return v, nil
}

func (q *questions) lookup(key string) question {
	return question{
		selection: fmt.Sprintf(`airportTotals(origin: %q) { %s }`, key, totalsColumns), key: key,
		check: func(a *answer) ([]oracle.Fault, error) {
			row, err := field[*oracle.Row](a, "airportTotals")
			if err != nil {
				return nil, err
			}
			return q.ledger.Totals(key, row, a.views["airportTotals"].asOf()), nil
		},
		counts: func(a *answer) map[string]int64 {
			row, err := field[*oracle.Row](a, "airportTotals")
			if err != nil {
				return nil
			}
			return countsOf([]string{key}, []*oracle.Row{row})
		},
	}
}

// countsOf are the flights of rows, 0 where there is none.
func countsOf(keys []string, rows []*oracle.Row) map[string]int64 {
	out := map[string]int64{}
	for i, r := range rows {
		if i >= len(keys) {
			break
		}
		out[keys[i]] = 0
		if r != nil && r.Flights != nil {
			out[keys[i]] = *r.Flights
		}
	}
	return out
}

func (q *questions) lookups() question {
	keys := make([]string, 2+q.rng.IntN(10))
	for i := range keys {
		keys[i] = q.key()
	}
	list, _ := json.Marshal(keys) // texts always do
	rows := func(a *answer) ([]*oracle.Row, error) { return field[[]*oracle.Row](a, "airportTotalsOf") }
	return question{
		selection: fmt.Sprintf(`airportTotalsOf(origins: %s) { %s }`, list, totalsColumns), key: keys[0],
		check: func(a *answer) ([]oracle.Fault, error) {
			got, err := rows(a)
			if err != nil {
				return nil, err
			}
			if len(got) != len(keys) {
				return nil, fmt.Errorf("%d rows for %d keys", len(got), len(keys))
			}
			var faults []oracle.Fault
			for i, key := range keys {
				faults = append(faults, q.ledger.Totals(key, got[i], a.views["airportTotalsOf"].asOf())...)
			}
			return faults, nil
		},
		counts: func(a *answer) map[string]int64 {
			got, err := rows(a)
			if err != nil {
				return nil
			}
			return countsOf(keys, got)
		},
	}
}

func (q *questions) series(key string) question {
	return question{
		selection: fmt.Sprintf(`airportHours(origin: %q) { %s }`, key, hourColumns), key: key,
		check: func(a *answer) ([]oracle.Fault, error) {
			hours, err := field[[]oracle.Hour](a, "airportHours")
			if err != nil {
				return nil, err
			}
			return q.ledger.Series(key, hours, a.views["airportHours"].asOf()), nil
		},
	}
}

func (q *questions) period(key string) question {
	return question{
		selection: fmt.Sprintf(`airportPeriod(origin: %q) { %s }`, key, hourColumns), key: key,
		check: func(a *answer) ([]oracle.Fault, error) {
			h, err := field[*oracle.Hour](a, "airportPeriod")
			if err != nil {
				return nil, err
			}
			return q.ledger.Period(key, h, a.views["airportPeriod"].asOf()), nil
		},
	}
}

// connection is a page as it is answered.
type connection struct {
	Edges    []struct{ Node oracle.Row }
	PageInfo struct {
		HasNextPage bool
		EndCursor   *string
	}
}

func (c *connection) rows() []oracle.Row {
	out := make([]oracle.Row, len(c.Edges))
	for i := range c.Edges {
		out[i] = c.Edges[i].Node
	}
	return out
}

const pageColumns = "edges { node { " + totalsColumns + " } } pageInfo { hasNextPage endCursor }"

func (q *questions) page() question {
	prefix := ""
	switch q.rng.IntN(4) {
	case 0:
		prefix = q.real[q.rng.IntN(len(q.real))][:1]
	case 1:
		prefix = generated(q.rng.IntN(q.keys))[:2+q.rng.IntN(3)]
	case 2:
		prefix = "z"
	}
	first := 1 + q.rng.IntN(100)
	return question{
		selection: fmt.Sprintf(`airportTotalsPage(first: %d, prefix: %q) { %s }`, first, prefix, pageColumns), key: prefix,
		check: func(a *answer) ([]oracle.Fault, error) {
			c, err := field[connection](a, "airportTotalsPage")
			if err != nil {
				return nil, err
			}
			f := a.views["airportTotalsPage"]
			return q.ledger.Page(&oracle.Page{Rows: c.rows(), Prefix: prefix, First: first, More: c.PageInfo.HasNextPage, Partial: f.Partial}, f.asOf()), nil
		},
	}
}

func (q *questions) size() question {
	return question{
		selection: "airportCount",
		check: func(a *answer) ([]oracle.Fault, error) {
			n, err := field[int64](a, "airportCount")
			if err != nil {
				return nil, err
			}
			f := a.views["airportCount"]
			return q.ledger.Size(n, f.Partial, f.asOf()), nil
		},
	}
}

func (q *questions) ranking(name, columns string, first int, by func(oracle.Totals) (float64, bool)) question {
	return question{
		selection: fmt.Sprintf(`%s(first: %d) { %s }`, name, first, columns),
		check: func(a *answer) ([]oracle.Fault, error) {
			rows, err := rankedRows(a, name, columns)
			if err != nil {
				return nil, err
			}
			f := a.views[name]
			return q.ledger.Ranking(&oracle.Ranking{Rows: rows, First: first, Partial: f.Partial, By: by}, f.asOf()), nil
		},
	}
}

func rankedRows(a *answer, name, columns string) ([]oracle.Row, error) {
	if !strings.HasPrefix(columns, "rows") {
		return field[[]oracle.Row](a, name)
	}
	wrapped, err := field[struct{ Rows []oracle.Row }](a, name)
	return wrapped.Rows, err
}

func (q *questions) busiest(first int) question {
	return question{
		selection: fmt.Sprintf(`busiestAirports(first: %d) { %s }`, first, hourColumns),
		check: func(a *answer) ([]oracle.Fault, error) {
			rows, err := field[[]oracle.Hour](a, "busiestAirports")
			if err != nil {
				return nil, err
			}
			f := a.views["busiestAirports"]
			return q.ledger.Busiest(rows, first, f.Partial, f.asOf()), nil
		},
	}
}

// nested asks for a row, its airport in the table, and its windows.
func (q *questions) nested(key string) question {
	type row struct {
		oracle.Row
		Airport *airport
		Hours   []oracle.Hour
	}
	return question{
		selection: fmt.Sprintf(`airportTotals(origin: %q) { %s airport { iata name city } hours { %s } }`, key, totalsColumns, hourColumns), key: key,
		check: func(a *answer) ([]oracle.Fault, error) {
			r, err := field[*row](a, "airportTotals")
			if err != nil {
				return nil, err
			}
			if r == nil {
				return q.ledger.Totals(key, nil, a.views["airportTotals"].asOf()), nil
			}
			faults := q.ledger.Totals(key, &r.Row, a.views["airportTotals"].asOf())
			want, known := q.airports[key]
			if got := r.Airport; known && (got == nil || got.Name != want.Name || (got.City == nil) != (want.City == nil)) {
				faults = append(faults, oracle.Fault{Kind: oracle.Wrong, Text: fmt.Sprintf("the airport of %s is %+v, want %+v", key, got, want)})
			}
			return append(faults, q.ledger.Series(key, r.Hours, a.views["airportTotals.hours"].asOf())...), nil
		},
	}
}

// probes are the keys whose gaps are measured.
func probes() []string {
	out := make([]string, hot)
	for i := range out {
		out[i] = generated(i)
	}
	return slices.Clip(out)
}
