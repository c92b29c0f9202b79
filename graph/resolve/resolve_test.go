package resolve

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// FC-10: a Long is exact, as a literal and as a variable, and never a fraction.
func TestFC10Long(t *testing.T) {
	for _, c := range []struct {
		in   any
		want int64
		bad  bool
	}{
		{json.Number("9007199254740993"), 9007199254740993, false},
		{int64(-9223372036854775808), -9223372036854775808, false},
		{"9007199254740993", 9007199254740993, false},
		{json.Number("1e3"), 1000, false},
		{json.Number("1.5"), 0, true},
		{json.Number("9223372036854775808"), 0, true},
		{"x", 0, true}, {nil, 0, true}, {true, 0, true}, {[]any{}, 0, true},
	} {
		got, err := UnmarshalLong(c.in)
		if (err != nil) != c.bad || got != c.want {
			t.Errorf("%v: got %d, %v", c.in, got, err)
		}
	}
}

func TestScalarsOnTheWire(t *testing.T) {
	var at DateTime
	if err := at.UnmarshalGQL("2024-01-01T00:00:00.25+01:00"); err != nil {
		t.Fatal(err)
	}
	var span Duration
	if err := span.UnmarshalGQL("1h30m"); err != nil {
		t.Fatal(err)
	}
	var amount Decimal
	if err := amount.UnmarshalGQL(json.Number("0.10")); err != nil {
		t.Fatal(err)
	}
	var fill Fill
	if err := fill.UnmarshalGQL("PREVIOUS"); err != nil || view.Fill(fill) != view.FillPrevious {
		t.Fatal(fill, err)
	}
	var b bytes.Buffer
	at.MarshalGQL(&b)
	span.MarshalGQL(&b)
	amount.MarshalGQL(&b)
	fill.MarshalGQL(&b)
	MarshalLong(-5).MarshalGQL(&b)
	if got, want := b.String(), `"2023-12-31T23:00:00.250Z""1h30m""0.1""PREVIOUS"-5`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if fill.UnmarshalGQL("OTHER") == nil || span.UnmarshalGQL("-1h") == nil || at.UnmarshalGQL("yesterday") == nil {
		t.Error("took what it should refuse")
	}
}

func TestCursor(t *testing.T) {
	key := view.AppendKey(nil, view.OfString("x\x00y"))
	got, err := decodeCursor("totals", encodeCursor("totals", key))
	if err != nil || !bytes.Equal(got, key) {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"", "xx", "!", "AAAA", encodeCursor("others", key)} {
		if _, err := decodeCursor("totals", bad); err == nil || read.AsError(err).Code != read.BadInput {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestWindowCount(t *testing.T) {
	const hour, day = 3_600_000, 86_400_000
	last := Duration(day)
	from, to, far, step := DateTime(0), DateTime(10*day), DateTime(view.MaxTime), Duration(day)
	fill := Fill(view.FillEmpty)
	for _, c := range []struct {
		name string
		o    Options
		want int
	}{
		{"whole retention, bounded", Options{}, 1000},
		{"whole retention, filled", Options{Fill: &fill}, 120 * 24},
		{"last", Options{Last: &last}, 24},
		{"range in steps", Options{From: &from, To: &to, Step: &step}, 10},
		{"nothing", Options{From: &to, To: &from}, 1},
		{"far into the future, filled", Options{From: &to, To: &far, Step: &step, Fill: &fill}, (view.MaxTime - 10*day) / day},
		{"far into the future", Options{From: &to, To: &far, Step: &step}, 120},
	} {
		if got := WindowCount(hour, 120*day, &c.o); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// Lists in lists must not overflow to something cheap.
func TestCostDoesNotOverflow(t *testing.T) {
	c := 1
	for range 20 {
		if c = Cost(1_000_000, c); c < 1_000_000 {
			t.Fatalf("costs %d", c)
		}
	}
}

// A variable may bring null past a default; it is no value.
func TestNullIsNoScalar(t *testing.T) {
	if _, err := UnmarshalInt(nil); err == nil {
		t.Error("Int took null")
	}
	if _, err := UnmarshalInt("1"); err == nil {
		t.Error("Int took a text")
	}
	if n, err := UnmarshalInt(json.Number("1.0")); err != nil || n != 1 {
		t.Errorf("1.0 as Int: %d, %v", n, err)
	}
	if _, err := UnmarshalString(nil); err == nil {
		t.Error("String took null")
	}
	if _, err := UnmarshalString([]any{}); err == nil || err.Error() != "a list where a String is due" {
		t.Errorf("String took a list: %v", err)
	}
	if _, err := UnmarshalBoolean(nil); err == nil {
		t.Error("Boolean took null")
	}
	if s, err := UnmarshalID(json.Number("7")); err != nil || s != "7" {
		t.Errorf("7 as ID: %s, %v", s, err)
	}
}
