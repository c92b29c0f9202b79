package processor

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// answered is the answer of the one task of a life.
func (l *life) answered(ctx context.Context, t testing.TB, q read.Query) *read.Answer {
	t.Helper()
	as, err := l.w.Read(ctx, []*read.Request{{Query: q}})
	if err != nil {
		t.Fatal(err)
	}
	return as[0]
}

func hoursOf(key string, from, to int64) read.Query {
	return read.Query{Store: "hours", Op: read.Fetch, Keys: [][]view.Value{{view.OfString(key)}},
		Time: read.Time{HasFrom: true, HasTo: true, From: from, To: to}}
}

// A zone whose days the windows do not divide is refused, whether there is data
// or not.
func TestGridIsRefusedWithoutData(t *testing.T) {
	_, in := one(t, levelSchema, "levels", 1)
	kolkata := windows("hourly", view.OfString("ganga"), "2024-01-01T00:00:00+05:30", "2024-01-03T00:00:00+05:30", aDay, "Asia/Kolkata", view.FillNone)
	until(t, "ready", func() bool { return in.Status().Ready })
	wantText(t, in.answer(t, kolkata, "q"), "bad input", "a window of 1h does not divide the days of Asia/Kolkata")
	kolkata.Time.HasFrom, kolkata.Time.From = false, 0
	wantText(t, in.answer(t, kolkata, "q"), "bad input", "a window of 1h does not divide the days of Asia/Kolkata")
	zurich := kolkata
	zurich.Time.Zone = "Europe/Zurich"
	zurich.Time.HasFrom, zurich.Time.From = true, ms("1800-01-01T00:00:00Z") // local mean time then
	if got := in.answer(t, zurich, "q"); got != "" {
		t.Errorf("Zurich: %s", got)
	}
}

func TestSeriesLimit(t *testing.T) {
	const hour = 3_600_000
	l := benched(t, 3, 30)
	l.w.cfg.MaxPoints, l.w.cfg.MaxRows = 20, 50
	code := func(q read.Query) string {
		a := l.answered(t.Context(), t, q)
		if a.Err != nil {
			return a.Err.Code.String()
		}
		return "answered"
	}
	filled := func(to int64, keys ...string) read.Query {
		q := hoursOf(keys[0], 0, to)
		q.Time.Fill = view.FillEmpty
		for _, k := range keys[1:] {
			q.Keys = append(q.Keys, []view.Value{view.OfString(k)})
		}
		return q
	}
	merged := hoursOf("key0000000", 0, 30*hour)
	merged.Merge = true
	three := []string{"key0000000", "key0000001", "key0000002"}
	tests := []struct {
		name string
		q    read.Query
		want string
	}{
		{"as many as allowed", hoursOf("key0000000", 0, 20*hour), "answered"},
		{"one more", hoursOf("key0000000", 0, 21*hour), "limit exceeded"},
		{"filled, as many as allowed", filled(20*hour, "nobody"), "answered"},
		{"filled, one more", filled(21*hour, "nobody"), "limit exceeded"},
		{"filled, all of time", filled(math.MaxInt64, "nobody"), "limit exceeded"},
		{"merged, of more windows", merged, "answered"},
		{"all keys together, as many as allowed", filled(16*hour, three...), "answered"},
		{"all keys together, too many", filled(18*hour, three...), "limit exceeded"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := code(test.q); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// A read that nobody waits for any more ends before it has looked at everything.
func TestReadEndsWithItsContext(t *testing.T) {
	l := benched(t, 3000, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	hours := func(op read.Op) read.Query { return read.Query{Store: "hours", Op: op, First: 1000} }
	top := hours(read.Top)
	top.Ranking, top.Time = "flights", read.Time{HasTo: true, To: math.MaxInt64}
	page := read.Query{Store: "totals", Op: read.Range, First: 5000}
	many := hoursOf("key0000000", 0, 1)
	for name, q := range map[string]read.Query{"top over time": top, "size": hours(read.Size), "page": page, "fetch": many} {
		if a := l.answered(t.Context(), t, q); a.Err != nil {
			t.Errorf("%s: %v", name, a.Err)
		}
		if a := l.answered(ctx, t, q); a.Err == nil || a.Err.Code != read.Timeout {
			t.Errorf("%s, cancelled: %v", name, a.Err)
		}
	}
}

// What is merged over time has the bounds of the time asked for, however it is
// asked for.
func TestTopOverTimeHasTheBoundsOfAPeriod(t *testing.T) {
	const hour = 3_600_000
	l := benched(t, 2, 5)
	v := l.w.views["hours"]
	for name, at := range map[string]read.Time{
		"closed":    {HasFrom: true, HasTo: true, From: -30 * hour, To: 40 * hour},
		"unaligned": {HasFrom: true, HasTo: true, From: hour + 1, To: 3*hour + 1},
		"open from": {HasTo: true, To: 9 * hour},
		"open to":   {HasFrom: true, From: -hour, To: 9 * hour},
	} {
		t.Run(name, func(t *testing.T) {
			period := hoursOf("key0000000", 0, 0)
			period.Time, period.Merge = at, true
			want := l.answered(t.Context(), t, period)
			got := l.answered(t.Context(), t, read.Query{Store: "hours", Op: read.Top, Ranking: "flights", First: 1, Time: at})
			if want.Err != nil || got.Err != nil {
				t.Fatal(want.Err, got.Err)
			}
			const columns = "origin start end flights minutes"
			if g, w := show(v, got.Rows, columns), show(v, want.Series[0], columns); g != w || w == "" {
				t.Errorf("top    %s\nperiod %s", g, w)
			}
			if string(got.Rows[0].Key) != string(want.Series[0][0].Key) {
				t.Error("their keys differ")
			}
		})
	}
}

// Times at the ends of what a number holds neither overflow nor take long.
func TestReadTakesAnyTime(t *testing.T) {
	l := benched(t, 2, 5)
	ends := []int64{math.MinInt64, math.MinInt64 + 1, view.MinTime - 1, view.MinTime, -1, 0, 1, view.MaxTime, view.MaxTime + 1, math.MaxInt64 - 1, math.MaxInt64}
	for _, from := range ends {
		for _, to := range ends {
			for _, step := range append([]int64{3_600_000, aDay, 7 * aDay, 100_000 * aDay}, ends...) {
				for i := range 8 {
					q := hoursOf("key0000001", from, to)
					q.Time.HasFrom, q.Time.Step, q.Time.Zone = i&1 > 0, step, "America/Sao_Paulo"
					if i&2 > 0 {
						q.Time.Fill = view.FillEmpty
					}
					q.Merge = i&4 > 0
					if a := l.answered(t.Context(), t, q); a.Err != nil && a.Err.Code == read.Internal {
						t.Fatalf("%+v: %v", q.Time, a.Err)
					}
				}
			}
			q := read.Query{Store: "hours", Op: read.Top, Ranking: "flights", First: 3, Time: read.Time{HasFrom: true, HasTo: true, From: from, To: to}}
			if a := l.answered(t.Context(), t, q); a.Err != nil && a.Err.Code == read.Internal {
				t.Fatalf("top %+v: %v", q.Time, a.Err)
			}
		}
	}
	a := l.answered(t.Context(), t, hoursOf("key0000001", math.MinInt64, math.MaxInt64))
	if a.Err != nil || len(a.Series[0]) != 5 {
		t.Errorf("all of time: %d windows, %v", len(a.Series[0]), a.Err)
	}
}

func TestTableRecordWithoutKey(t *testing.T) {
	c := newTestCluster(t, `
type Airport @table(topic: "airports", key: "iata", global: true) { iata: String! name: String! }
type Hit @source(topic: "hits", key: "page") { page: String! }
type PageTotals @view(from: "Hit", by: "page") { page: String! hits: Long! @count }
type Query { airport(iata: String!): Airport @lookup pageTotals(page: String!): PageTotals @lookup }`)
	c.create("airports", 1)
	c.create("hits", 1)
	c.produce("airports", keyed("ZRH", `{"name":"Zürich"}`), message{value: []byte(`{"iata":"BSL","name":"Basel"}`)}, message{})
	in := c.start("one")
	until(t, "ready", func() bool { return in.Status().Ready })
	letters := strings.Join(c.letters(2), "\n")
	wantText(t, letters, "airports/1 Airport: the record has no Kafka key", "airports/2 Airport: the record has no Kafka key")
	as, err := in.Read(t.Context(), []*read.Request{{Query: read.Query{Store: "airport", Op: read.Size}}})
	if err != nil || as[0].Count != 1 {
		t.Errorf("%d rows, %v, want 1", as[0].Count, err)
	}
}

// What a peer asks with keys of another form is refused, whatever it wants of them.
func TestReadRefusesKeysOfAnotherForm(t *testing.T) {
	l := benched(t, 3, 2)
	for _, q := range []read.Query{
		{Store: "hours", Op: read.Fetch, Keys: [][]view.Value{{}}, Time: read.Time{HasFrom: true, HasTo: true, To: 7_200_000, Fill: view.FillEmpty}},
		{Store: "totals", Op: read.Get, Keys: [][]view.Value{{view.OfString("a"), view.OfString("b")}}},
		{Store: "totals", Op: read.Range, First: 5, Prefix: []view.Value{view.OfString("a"), view.OfString("b")}},
	} {
		as, err := l.w.Read(t.Context(), []*read.Request{{Query: q}})
		if err != nil || as[0].Err == nil || as[0].Err.Code != read.BadInput {
			t.Errorf("%s of %s: %+v, %v", q.Op, q.Store, as[0], err)
		}
	}
}

// Member data that is out of bounds, or plans that it would lead to, hurt nobody
// else (invariant 6).
func TestMemberDataIsBounded(t *testing.T) {
	l := benched(t, 0, 0)
	sub := l.sub.Name
	good := &memberData{Version: memberVersion, Instance: "a", Addr: "a:1", Subtopologies: []string{sub}}
	for name, d := range map[string]*memberData{
		"no name":        {Version: memberVersion},
		"a long name":    {Version: memberVersion, Instance: strings.Repeat("x", 300)},
		"a name of text": {Version: memberVersion, Instance: "a\nb"},
	} {
		if _, err := decodeMember(encodeData(d)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	evil := &memberData{Version: memberVersion, Instance: "b", Addr: "b:1", Inputs: map[string]inputData{}}
	for i := range 300 {
		name := fmt.Sprint("s", i)
		evil.Subtopologies = append(evil.Subtopologies, name)
		evil.Inputs[name] = inputData{Topic: name, Partitions: 60_000}
	}
	as, err := l.w.balance([]broker.GroupMember{
		{ID: "m1", Subscription: broker.Subscription{UserData: encodeData(good)}},
		{ID: "m2", Subscription: broker.Subscription{UserData: encodeData(evil)}},
	})
	if err != nil || len(as["m1"].Partitions["flights"]) != 1 {
		t.Fatalf("the good member got %+v, %v", as["m1"].Partitions, err)
	}
	if _, err := decodeRoutes(as["m1"].UserData); err != nil {
		t.Errorf("the plan is not understood: %v", err)
	}
}
