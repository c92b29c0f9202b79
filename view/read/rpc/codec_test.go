package rpc

import (
	"bytes"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

func someRequests() []*read.Request {
	return []*read.Request{
		{Query: read.Query{Store: "a", Op: read.Get, Keys: [][]view.Value{{view.OfString("x"), view.Null}, {view.OfInt(math.MinInt64)}}}, Partition: 7},
		{Query: read.Query{Store: "b", Op: read.Fetch, Merge: true, Time: read.Time{HasFrom: true, From: -5, To: 9, Step: 60_000, Zone: "Europe/Zurich", Fill: view.FillPrevious}}},
		{Query: read.Query{Store: "c", Op: read.Range, Prefix: []view.Value{view.OfBool(true)}, HasText: true, Text: "pre\x00", First: 10, After: []byte{0, 1}, Reverse: true}},
		{Query: read.Query{Store: "d", Op: read.Top, Ranking: "n where n > 1", First: 3}},
	}
}

func someAnswers() []*read.Answer {
	row := &read.Row{Key: []byte{1, 2}, Partition: 3, Values: []view.Value{
		view.OfFloat(1.5), view.OfTime(-1), view.OfDuration(60), view.OfDecimal(decimal.RequireFromString("-10.99999999999999999")), view.Null,
	}}
	failed := &read.Error{Code: read.Restoring, Message: "wait", RetryAfter: time.Second, Progress: &read.Progress{Done: 1, Total: 2, Rate: 0.5, ETA: time.Minute}}
	return []*read.Answer{
		{Rows: []*read.Row{row, nil}, Part: read.Part{Partition: 7, Instance: "i", Role: read.Standby, Incarnation: [16]byte{9}, Seq: math.MaxUint64, Lag: 4, AsOf: 5, Stream: math.MinInt64}},
		{Series: [][]*read.Row{{row}, nil}, Count: 8, More: true},
		{Err: failed, Part: read.Part{Err: failed}},
	}
}

func TestMessagesRoundTrip(t *testing.T) {
	requests, err := decodeRequests(encodeRequests(someRequests()))
	if err != nil || !reflect.DeepEqual(requests, someRequests()) {
		t.Errorf("requests: %v, %v", requests, err)
	}
	sent := encodeAnswers(someAnswers())
	answers, err := decodeAnswers(sent)
	if err != nil || !bytes.Equal(encodeAnswers(answers), sent) || len(answers) != 3 || answers[2].Part.Err != answers[2].Err {
		t.Errorf("answers: %v, %v", answers, err)
	}
	for _, c := range []read.WatchCommand{
		{Remove: 5}, {Add: &read.Interest{ID: 1, Store: "a", Partition: 2, Keys: [][]byte{{1}, {2, 3}}}}, {Add: &read.Interest{ID: 1, Store: "a", Prefix: []byte{9}}},
	} {
		if got, err := decodeCommand(encodeCommand(c)); err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("command: %+v, %v", got, err)
		}
	}
	e := read.Event{Kind: read.Beat, ID: 3, Seq: 4, Stream: -5}
	if got, err := decodeEvent(encodeEvent(e)); err != nil || got != e {
		t.Errorf("event: %+v, %v", got, err)
	}
}

// A peer's answers have the form of the requests, or are no answers.
func TestFitting(t *testing.T) {
	requests := someRequests()
	good := []*read.Answer{{Rows: []*read.Row{nil, nil}}, {}, {}, {}}
	if err := fitting(requests, good); err != nil {
		t.Error(err)
	}
	for name, answers := range map[string][]*read.Answer{
		"too few answers": good[:3],
		"too few rows":    {{Rows: []*read.Row{nil}}, {}, {}, {}},
		"a row missing":   {good[0], {}, {Rows: []*read.Row{nil}}, {}},
		"too many series": {good[0], {Series: [][]*read.Row{nil}}, {}, {}},
	} {
		if fitting(requests, answers) == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestOtherVersionIsRefused(t *testing.T) {
	b := encodeRequests(someRequests())
	b[0]++
	if _, err := decodeRequests(b); err == nil {
		t.Error("a message of another version was read")
	}
}

// FuzzDecode reads arbitrary bytes as every message: an error, or a message that
// is written and read again the same.
func FuzzDecode(f *testing.F) {
	f.Add(encodeRequests(someRequests()))
	f.Add(encodeAnswers(someAnswers()))
	f.Add(encodeCommand(read.WatchCommand{Add: &read.Interest{ID: 1, Keys: [][]byte{{1}}}}))
	f.Add(encodeEvent(read.Event{Kind: read.Moved, ID: 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if rs, err := decodeRequests(b); err == nil {
			if again, err := decodeRequests(encodeRequests(rs)); err != nil || len(again) != len(rs) {
				t.Fatalf("requests: %v", err)
			}
		}
		if as, err := decodeAnswers(b); err == nil {
			if again, err := decodeAnswers(encodeAnswers(as)); err != nil || len(again) != len(as) {
				t.Fatalf("answers: %v", err)
			}
		}
		if c, err := decodeCommand(b); err == nil {
			if _, err := decodeCommand(encodeCommand(c)); err != nil {
				t.Fatalf("command: %v", err)
			}
		}
		if e, err := decodeEvent(b); err == nil {
			if again, err := decodeEvent(encodeEvent(e)); err != nil || again != e {
				t.Fatalf("event: %v", err)
			}
		}
	})
}
