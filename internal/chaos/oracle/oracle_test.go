package oracle

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var start = time.UnixMilli(1_000_000_000_000)

func at(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }

func asOf(s float64) int64 { return at(s).UnixMilli() }

// ledger has A in partition 0, three records acknowledged at 1, 2 and 3 s and a
// fourth on its way; B over two partitions; C on its way alone.
func ledger() *Ledger {
	l := NewLedger(2, 100*time.Millisecond)
	for i, delay := range []int64{20, -5, 40, 10} {
		l.Sent(0, Event{Key: "A", Date: int64(i) * hour, Delay: delay})
	}
	l.Acked(0, 1, at(1))
	l.Acked(0, 1, at(2))
	l.Acked(0, 1, at(3))
	for i := range 2 {
		l.Sent(1, Event{Key: "B", Date: int64(i), Delay: 30})
	}
	l.Acked(1, 2, at(1))
	l.Sent(0, Event{Key: "B", Date: 5, Delay: -10})
	l.Sent(1, Event{Key: "C", Date: 9, Delay: 1})
	return l
}

func row(t *testing.T, text string) *Row {
	t.Helper()
	var r *Row
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// kindsOf lists the kinds of faults.
func kindsOf(faults []Fault) string {
	var out []string
	for _, f := range faults {
		out = append(out, string(f.Kind))
	}
	return strings.Join(out, " ")
}

func TestTotals(t *testing.T) {
	const (
		one   = `{"origin":"A","flights":1,"delayed":1,"delayMinutes":20,"averageDelay":20,"worstDelay":20,"lastDeparture":"1970-01-01T00:00:00Z","delayedShare":1}`
		three = `{"origin":"A","flights":3,"delayed":2,"delayMinutes":55,"averageDelay":18.333333333333332,"worstDelay":40,"lastDeparture":"1970-01-01T02:00:00Z","delayedShare":0.6666666666666666}`
	)
	for _, c := range []struct {
		name, key, row string
		asOf           int64
		want           string
	}{
		{"as it was", "A", one, asOf(1.9), ""},
		{"newer than it claims", "A", three, asOf(1.9), ""},
		{"on its way may be in", "A", `{"origin":"A","flights":4,"delayMinutes":65}`, asOf(9), ""},
		{"unknown as-of", "A", one, 0, ""},
		{"older than it claims", "A", one, asOf(2.5), "false_freshness"},
		{"within the slack", "A", one, asOf(2.05), ""},
		{"more than sent", "A", `{"origin":"A","flights":5}`, asOf(9), "wrong"},
		{"a sum of another count", "A", `{"origin":"A","flights":2,"delayMinutes":55}`, asOf(1), "wrong"},
		{"a maximum that is to come", "A", `{"origin":"A","flights":2,"worstDelay":40}`, asOf(1), "wrong"},
		{"an average that is not the sum's", "A", `{"origin":"A","flights":2,"delayMinutes":15,"averageDelay":7}`, asOf(1), "wrong"},
		{"another key", "A", `{"origin":"B","flights":1}`, asOf(1), "wrong"},
		{"none at all", "A", `{"origin":"A","flights":0}`, asOf(1), "wrong"},
		{"missing and known", "A", `null`, asOf(2.5), "wrong"},
		{"missing, not acknowledged then", "A", `null`, asOf(1), ""},
		{"missing, never sent", "Z", `null`, asOf(9), ""},
		{"there, never sent", "Z", `{"origin":"Z","flights":1}`, asOf(9), "wrong"},
		{"two partitions, least", "B", `{"origin":"B","flights":2,"delayMinutes":60}`, asOf(9), ""},
		{"two partitions, all", "B", `{"origin":"B","flights":3,"delayMinutes":50,"delayed":2}`, asOf(9), ""},
		{"two partitions, too little", "B", `{"origin":"B","flights":1}`, asOf(9), "false_freshness"},
		{"two partitions, a sum that cannot be", "B", `{"origin":"B","flights":2,"delayMinutes":70}`, asOf(9), "wrong"},
		{"on its way, there", "C", `{"origin":"C","flights":1,"delayMinutes":1}`, asOf(9), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ledger().Totals(c.key, row(t, c.row), c.asOf); kindsOf(got) != c.want {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

func float(f float64) *float64 { return &f }

func hours(counts ...int64) []Hour {
	var out []Hour
	for i, n := range counts {
		if n > 0 {
			out = append(out, Hour{Origin: "A", Start: time.UnixMilli(int64(i) * hour), Flights: n})
		}
	}
	return out
}

func TestSeries(t *testing.T) {
	wrongAverage := hours(1, 1)
	wrongAverage[1].AverageDelay = float(20)
	for _, c := range []struct {
		name  string
		hours []Hour
		asOf  int64
		want  string
	}{
		{"as it was", hours(1, 1), asOf(2.05), ""},
		{"all", hours(1, 1, 1, 1), asOf(9), ""},
		{"older than it claims", hours(1, 1), asOf(3.5), "false_freshness"},
		{"empty and known", nil, asOf(1.5), "wrong"},
		{"a hole", hours(1, 0, 1), asOf(2.05), "wrong"},
		{"one twice", hours(2, 1), asOf(2.05), "wrong"},
		{"more than sent", hours(1, 1, 1, 1, 1), asOf(9), "wrong"},
		{"an average of another window", wrongAverage, asOf(2.05), "wrong"},
		{"out of order", []Hour{hours(0, 1)[0], hours(1)[0]}, asOf(1), "wrong"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ledger().Series("A", c.hours, c.asOf); kindsOf(got) != c.want {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

func TestPeriod(t *testing.T) {
	for _, c := range []struct {
		name string
		hour *Hour
		asOf int64
		want string
	}{
		{"as it was", &Hour{Flights: 2, AverageDelay: float(7.5), P95Delay: float(20.1)}, asOf(2.05), ""},
		{"none and known", nil, asOf(1.5), "wrong"},
		{"none yet", nil, asOf(1), ""},
		{"older than it claims", &Hour{Flights: 2}, asOf(3.5), "false_freshness"},
		{"a quantile too far", &Hour{Flights: 2, P95Delay: float(21)}, asOf(2.05), "wrong"},
		{"more than sent", &Hour{Flights: 5}, asOf(9), "wrong"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ledger().Period("A", c.hour, c.asOf); kindsOf(got) != c.want {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

func rows(t *testing.T, keys ...string) []Row {
	t.Helper()
	sums := map[string]string{
		"A": `{"origin":"A","flights":3,"delayed":2,"delayMinutes":55}`,
		"B": `{"origin":"B","flights":2,"delayed":2,"delayMinutes":60}`,
		"C": `{"origin":"C","flights":1,"delayed":0,"delayMinutes":1}`,
	}
	var out []Row
	for _, k := range keys {
		out = append(out, *row(t, sums[k]))
	}
	return out
}

func TestPage(t *testing.T) {
	for _, c := range []struct {
		name string
		page Page
		asOf int64
		want string
	}{
		{"all", Page{Rows: rows(t, "A", "B", "C"), First: 9}, asOf(9), ""},
		{"C is on its way", Page{Rows: rows(t, "A", "B"), First: 9}, asOf(9), ""},
		{"the first", Page{Rows: rows(t, "A"), First: 1, More: true}, asOf(9), ""},
		{"B is missing", Page{Rows: rows(t, "A", "C"), First: 9}, asOf(9), "wrong"},
		{"B was not yet", Page{Rows: rows(t, "A", "C"), First: 9}, asOf(1), ""},
		{"B is missing, said so", Page{Rows: rows(t, "A", "C"), First: 9, Partial: true}, asOf(9), ""},
		{"the last is missing", Page{Rows: rows(t, "A"), First: 9}, asOf(9), "wrong"},
		{"after A", Page{Rows: rows(t, "B"), First: 9, After: "A"}, asOf(9), ""},
		{"A again", Page{Rows: rows(t, "A", "B"), First: 9, After: "A"}, asOf(9), "wrong"},
		{"order", Page{Rows: rows(t, "B", "A"), First: 9}, asOf(9), "wrong"},
		{"prefix", Page{Rows: rows(t, "B"), Prefix: "B", First: 9}, asOf(9), ""},
		{"not of the prefix", Page{Rows: rows(t, "A"), Prefix: "B", First: 9}, asOf(1), "wrong"},
		{"more than asked", Page{Rows: rows(t, "A", "B"), First: 1}, asOf(9), "wrong"},
		{"short, and more follow", Page{Rows: rows(t, "A"), First: 2, More: true}, asOf(9), "wrong"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ledger().Page(&c.page, c.asOf); kindsOf(got) != c.want {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

func TestRanking(t *testing.T) {
	whole := ledger()
	whole.Acked(0, 2, at(5))
	whole.Acked(1, 1, at(5))
	// Now A has 65 of 4, B 50 of 3, C 1.
	a, b, c := `{"origin":"A","flights":4,"delayed":2,"delayMinutes":65}`, `{"origin":"B","flights":3,"delayed":2,"delayMinutes":50}`, `{"origin":"C","flights":1,"delayed":0,"delayMinutes":1}`
	for _, x := range []struct {
		name  string
		rows  []string
		first int
		want  string
	}{
		{"all", []string{a, b, c}, 3, ""},
		{"the first", []string{a}, 1, ""},
		{"the wrong first", []string{b}, 1, "wrong"},
		{"order", []string{b, a}, 2, "wrong"},
		{"twice", []string{a, a}, 2, "wrong"},
		{"short", []string{a, b}, 3, "wrong"},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := Ranking{First: x.first, By: ByDelayMinutes}
			for _, s := range x.rows {
				r.Rows = append(r.Rows, *row(t, s))
			}
			if got := whole.Ranking(&r, All); kindsOf(got) != x.want {
				t.Errorf("got %v, want %q", got, x.want)
			}
		})
	}
	// While records are on their way, only what is certain must be there.
	if got := ledger().Ranking(&Ranking{First: 1, Rows: rows(t, "A"), By: ByDelayMinutes}, asOf(9)); len(got) > 0 {
		t.Errorf("got %v of rows that are not certain", got)
	}
	if _, ok := ByDelayedShare(Totals{Flights: 49, Delayed: 49}); ok {
		t.Error("49 flights rank by share")
	}
}

func TestSizeAndBusiest(t *testing.T) {
	l := ledger()
	for _, c := range []struct {
		n       int64
		partial bool
		want    string
	}{{2, false, ""}, {3, false, ""}, {1, false, "false_freshness"}, {1, true, ""}, {4, false, "wrong"}} {
		if got := l.Size(c.n, c.partial, asOf(9)); kindsOf(got) != c.want {
			t.Errorf("size %d: got %v, want %q", c.n, got, c.want)
		}
	}
	for _, c := range []struct {
		name string
		rows []Hour
		want string
	}{
		{"all", []Hour{{Origin: "A", Flights: 3}, {Origin: "B", Flights: 2}}, ""},
		{"order", []Hour{{Origin: "B", Flights: 2}, {Origin: "A", Flights: 3}}, "wrong"},
		{"A is missing", []Hour{{Origin: "B", Flights: 2}}, "wrong"},
		{"too few of A", []Hour{{Origin: "A", Flights: 2}}, "false_freshness"},
		{"too many", []Hour{{Origin: "B", Flights: 4}}, "wrong"},
	} {
		if got := l.Busiest(c.rows, 2, false, asOf(9)); kindsOf(got) != c.want {
			t.Errorf("%s: got %v, want %q", c.name, got, c.want)
		}
	}
}

func TestOldestUnacked(t *testing.T) {
	l := ledger()
	if got, ok := l.OldestUnacked(); !ok || got != 9 {
		t.Errorf("oldest is %d, %t, want C's 9", got, ok)
	}
	l.Acked(1, 1, at(4))
	if got, ok := l.OldestUnacked(); !ok || got != 3*hour {
		t.Errorf("oldest is %d, %t, want A's fourth", got, ok)
	}
	l.Acked(0, 2, at(4))
	if got, ok := l.OldestUnacked(); ok {
		t.Errorf("oldest is %d of none", got)
	}
	if got := l.Tell("A"); !strings.Contains(got, "partition 0 sent 4 acknowledged 4") {
		t.Error(got)
	}
}

// Every prefix of a key's records is an answer, and no answer with one column of
// another prefix is, unless it is the same there.
func TestEveryPrefix(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	l := NewLedger(1, 0)
	sum := []int64{0}
	for i := range 200 {
		delay := rng.Int64N(300) - 60
		l.Sent(0, Event{Key: "K", Date: int64(i) * 1000, Delay: delay})
		l.Acked(0, 1, at(float64(i)))
		sum = append(sum, sum[i]+delay)
	}
	for n := int64(1); n <= 200; n++ {
		for _, m := range []int64{n, 1 + rng.Int64N(200)} {
			s := sum[m]
			got := l.Totals("K", &Row{Origin: "K", Flights: &n, DelayMinutes: &s}, 0)
			if (len(got) == 0) != (s == sum[n]) {
				t.Fatalf("sum of %d at %d flights: %v", m, n, got)
			}
		}
	}
}

func TestEventJSON(t *testing.T) {
	e := Event{Key: `A"B`, Date: 978307200000, Destination: "C", Delay: -3, Distance: 7}
	want := `{"date":"2001-01-01T00:00:00Z","origin":"A\"B","destination":"C","delay":-3,"distance":7}`
	if got := string(e.JSON()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWindowOf(t *testing.T) {
	for ms, want := range map[int64]int64{0: 0, hour - 1: 0, hour: hour, -1: -hour, -hour: -hour} {
		if got := windowOf(ms); got != want {
			t.Errorf("%d is in the window at %d, want %d", ms, got, want)
		}
	}
}
