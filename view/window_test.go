package view

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the cases need every zone
)

func zoneOf(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func at(s string) int64 {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t.UnixMilli()
}

func TestGridBounds(t *testing.T) {
	const hour, half = 3_600_000, 1_800_000
	tests := []struct {
		name         string
		window, step int64
		zone, at     string
		from, to     string // "": refused
	}{
		{"window itself", hour, 0, "Europe/Zurich", "2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z", "2024-01-01T11:00:00Z"},
		{"rounded up", hour, 90 * 60_000, "UTC", "2024-01-01T03:00:00Z", "2024-01-01T02:00:00Z", "2024-01-01T04:00:00Z"},
		{"23 hours", hour, day, "Europe/Zurich", "2017-03-26T10:00:00Z", "2017-03-25T23:00:00Z", "2017-03-26T22:00:00Z"},
		{"25 hours", hour, day, "Europe/Zurich", "2017-10-29T10:00:00Z", "2017-10-28T22:00:00Z", "2017-10-29T23:00:00Z"},
		{"6 hours from local midnight", hour, 6 * hour, "Europe/Zurich", "2024-01-01T23:00:00Z", "2024-01-01T23:00:00Z", "2024-01-02T05:00:00Z"},
		{"week from Monday", hour, 7 * day, "UTC", "2024-01-03T00:00:00Z", "2024-01-01T00:00:00Z", "2024-01-08T00:00:00Z"},
		{"before 1970", hour, 7 * day, "UTC", "1969-12-31T23:00:00Z", "1969-12-29T00:00:00Z", "1970-01-05T00:00:00Z"},
		{"half an hour off", half, day, "Asia/Kolkata", "2024-01-01T18:30:00Z", "2024-01-01T18:30:00Z", "2024-01-02T18:30:00Z"},
		{"half an hour off, refused", hour, day, "Asia/Kolkata", "2024-01-01T18:00:00Z", "", ""},
		{"Lord Howe, 24.5 hours", half, day, "Australia/Lord_Howe", "2024-04-07T00:00:00Z", "2024-04-06T13:00:00Z", "2024-04-07T13:30:00Z"},
		{"midnight skipped", hour, day, "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"},
		{"before a midnight skipped", hour, day, "America/Sao_Paulo", "2018-11-04T02:00:00Z", "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z"},
		{"clocks go back over midnight", hour, day, "America/Sao_Paulo", "2018-02-18T02:00:00Z", "2018-02-17T02:00:00Z", "2018-02-18T03:00:00Z"},
		{"midnight twice", hour, day, "America/Havana", "2024-11-03T04:00:00Z", "2024-11-03T04:00:00Z", "2024-11-04T05:00:00Z"},
		{"a day that was not", hour, day, "Pacific/Apia", "2011-12-30T12:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g, err := NewGrid(test.window, test.step, zoneOf(t, test.zone))
			if err != nil {
				t.Fatal(err)
			}
			from, to, err := g.Bounds(at(test.at))
			if test.from == "" {
				if !errors.Is(err, ErrGrid) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil || from != at(test.from) || to != at(test.to) {
				t.Errorf("%s to %s, %v; want %s to %s", OfTime(from), OfTime(to), err, test.from, test.to)
			}
		})
	}
}

func TestNewGridRefuses(t *testing.T) {
	for _, step := range []int64{-1, 36 * 3_600_000, maxStep + 1} {
		if _, err := NewGrid(3_600_000, step, time.UTC); !errors.Is(err, ErrGrid) {
			t.Errorf("step %d: %v", step, err)
		}
	}
}

// TestGridIsAPartition: in any zone, each moment is in the bounds that it is
// given, all of these share them, and the next begin where they end.
func TestGridIsAPartition(t *testing.T) {
	zones := []string{"UTC", "Europe/Zurich", "America/Sao_Paulo", "America/Havana", "Australia/Lord_Howe", "Pacific/Apia", "America/St_Johns", "Asia/Kathmandu", "Africa/Casablanca", "Antarctica/Troll"}
	const window = 900_000
	rng := rand.New(rand.NewPCG(5, 6))
	for _, name := range zones {
		zone := zoneOf(t, name)
		for _, step := range []int64{3_600_000, 6 * 3_600_000, day, 7 * day} {
			g, err := NewGrid(window, step, zone)
			if err != nil {
				t.Fatal(err)
			}
			for range 300 {
				ms := floorTo(at("1970-01-01T00:00:00Z")+rng.Int64N(60*365*day), window)
				from, to, err := g.Bounds(ms)
				if errors.Is(err, ErrGrid) {
					continue // a zone by minutes, long ago
				}
				if err != nil || from > ms || to <= ms {
					t.Fatalf("%s: %s is in %s to %s, %v", name, OfTime(ms), OfTime(from), OfTime(to), err)
				}
				if f, u, err := g.Bounds(to - window); err != nil || f != from || u != to {
					t.Fatalf("%s: %s to %s ends in %s to %s, %v", name, OfTime(from), OfTime(to), OfTime(f), OfTime(u), err)
				}
				f, u, err := g.Bounds(to)
				if err == nil && f != to {
					t.Fatalf("%s: after %s to %s comes what begins at %s", name, OfTime(from), OfTime(to), OfTime(f))
				}
				anew, aerr := NewGrid(window, step, zone) // remembers no midnight
				if aerr != nil {
					t.Fatal(aerr)
				}
				if af, au, aerr := anew.Bounds(to); af != f || au != u || (aerr == nil) != (err == nil) {
					t.Fatalf("%s: after %s, %s to %s; without what went before %s to %s", name, OfTime(from), OfTime(f), OfTime(u), OfTime(af), OfTime(au))
				}
			}
		}
	}
}

// series adds windows with one record each and returns the rows as text.
func seriesText(t *testing.T, from, to int64, step int64, zone string, fill Fill, limit int, starts ...int64) (string, error) {
	t.Helper()
	v := readings()
	g, err := NewGrid(v.Window.Size, step, zoneOf(t, zone))
	if err != nil {
		return "", err
	}
	s := NewSeries(v, g, from, to, to, limit)
	for i, start := range starts {
		cells := accumulate(t, v, []reading{{OfInt(int64(i + 1)), Place{Time: start}}})
		if err := s.Add(start, cells); err != nil {
			return "", err
		}
	}
	points, err := s.Points(fill)
	if err != nil {
		return "", err
	}
	rows, err := v.Rows(points, []Value{OfString("a")}, fill)
	if err != nil {
		return "", err
	}
	var out []string
	for i, r := range rows {
		out = append(out, fmt.Sprintf("%s+%dh n=%s sum=%s", time.UnixMilli(points[i].Start).UTC().Format("02T15"), (points[i].End-points[i].Start)/3_600_000, r[1], r[2]))
	}
	return strings.Join(out, "; "), nil
}

func TestSeriesFills(t *testing.T) {
	from, to := at("2024-01-01T00:00:00Z"), at("2024-01-01T05:00:00Z")
	starts := []int64{at("2024-01-01T01:00:00Z"), at("2024-01-01T02:00:00Z"), at("2024-01-01T04:00:00Z")}
	tests := []struct {
		name string
		step int64
		fill Fill
		want string
	}{
		{"none", 0, FillNone, "01T01+1h n=1 sum=1; 01T02+1h n=1 sum=2; 01T04+1h n=1 sum=3"},
		{"empty", 0, FillEmpty, "01T00+1h n=0 sum=0; 01T01+1h n=1 sum=1; 01T02+1h n=1 sum=2; 01T03+1h n=0 sum=0; 01T04+1h n=1 sum=3"},
		{"null", 0, FillNull, "01T00+1h n=null sum=null; 01T01+1h n=1 sum=1; 01T02+1h n=1 sum=2; 01T03+1h n=null sum=null; 01T04+1h n=1 sum=3"},
		{"previous", 0, FillPrevious, "01T00+1h n=0 sum=0; 01T01+1h n=1 sum=1; 01T02+1h n=1 sum=2; 01T03+1h n=1 sum=2; 01T04+1h n=1 sum=3"},
		{"merged, the last cut to the range", 7_200_000, FillEmpty, "01T00+2h n=1 sum=1; 01T02+2h n=1 sum=2; 01T04+1h n=1 sum=3"},
		{"a day cut to the range", day, FillNone, "01T00+5h n=3 sum=6"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := seriesText(t, from, to, test.step, "UTC", test.fill, 100, starts...)
			if err != nil || got != test.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, test.want)
			}
		})
	}
	if _, err := seriesText(t, from, to, 0, "UTC", FillEmpty, 4, starts...); !errors.Is(err, ErrTooLong) {
		t.Errorf("five points where four are allowed: %v", err)
	}
	if _, err := seriesText(t, -1<<63, 1<<63-1, 0, "UTC", FillEmpty, 4); !errors.Is(err, ErrTooLong) {
		t.Errorf("all of time: %v", err)
	}
}

func TestGridTakesAnyTime(t *testing.T) {
	for _, step := range []int64{0, 3_600_000, day, 7 * day, maxStep} {
		g, err := NewGrid(3_600_000, step, zoneOf(t, "America/Havana"))
		if err != nil {
			t.Fatal(err)
		}
		for _, ms := range []int64{-1 << 63, -1<<63 + 1, MinTime, MaxTime, 1<<63 - 1} {
			if from, to, err := g.Bounds(ms); err == nil && from >= to {
				t.Errorf("step %d: %d is in %d to %d", step, ms, from, to)
			}
		}
	}
}

func TestWindowEdges(t *testing.T) {
	w := Window{Size: 60_000, Grace: 10_000, Retain: 3_600_000}
	for ms, want := range map[int64]int64{0: 0, 59_999: 0, 60_000: 60_000, -1: -60_000, -60_000: -60_000, -60_001: -120_000} {
		if got := w.Start(ms); got != want {
			t.Errorf("%d is in the window from %d, want %d", ms, got, want)
		}
	}
	if w.Closed(0, 69_999) || !w.Closed(0, 70_000) {
		t.Error("a window closes when stream time reaches its end and grace")
	}
	if w.Expired(0, 3_659_999) || !w.Expired(0, 3_660_000) {
		t.Error("a window expires when stream time reaches its end and retention")
	}
}
