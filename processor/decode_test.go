package processor

import (
	"reflect"
	"testing"

	"github.com/streamgauge/streamgauge/view"
)

func someCommit() *commitRecord {
	return &commitRecord{
		Seq: 7, Wall: 8, Stream: noTime, Position: 9, CaughtUp: 10, Lag: 11, InputID: [16]byte{1}, SourceID: [16]byte{2},
		Upstream: []upstream{{Next: 1, Index: 2, Event: noTime, End: 3, CaughtUp: 4, Wall: 5, Idle: true}, {}},
		Columns:  map[string]string{"a.n": "f", "a.k": ""},
	}
}

func TestCommitRecordRoundTrip(t *testing.T) {
	want := someCommit()
	got, err := decodeCommit(want.encode())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	recs := map[string]*commitRecord{"a": want, "b": nil}
	back, err := decodeCommits(encodeCommits(recs))
	if err != nil || !reflect.DeepEqual(back["a"], want) || back["b"] != nil {
		t.Errorf("got %+v, %v", back, err)
	}
}

// FuzzDecoders reads arbitrary bytes as everything that tasks and members leave
// in Kafka or in files: an error, or what is written and read again the same.
func FuzzDecoders(f *testing.F) {
	fields := []view.Field{{Name: "k", Type: view.String}, {Name: "n", Type: view.Decimal}, {Name: "at", Type: view.DateTime}}
	f.Add(someCommit().encode())
	f.Add(encodeCommits(map[string]*commitRecord{"a": someCommit(), "b": nil}))
	f.Add((&mark{Wall: 3, Sources: []sourceMark{{Partition: 1, Next: 2, Event: noTime}}}).encode())
	f.Add(appendRecord(nil, origin{Partition: 1, Offset: 2, Index: 3, Event: 4}, fields, []int{0, 2}, []view.Value{view.OfString("x"), view.Null, view.OfTime(5)}))
	f.Add(encodeOffsets([]int64{1, 2}))
	f.Add([]byte(`{"version":1,"instance":"a","tasks":["b_1"],"active":{"b":["a",""]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := decodeCommit(b); err == nil {
			if again, err := decodeCommit(r.encode()); err != nil || again.Seq != r.Seq || len(again.Upstream) != len(r.Upstream) {
				t.Fatalf("commit record: %v", err)
			}
		}
		if recs, err := decodeCommits(b); err == nil {
			if again, err := decodeCommits(encodeCommits(recs)); err != nil || len(again) < len(recs) {
				t.Fatalf("commit records: %v", err)
			}
		}
		if next, err := decodeOffsets(b); err == nil {
			if again, err := decodeOffsets(encodeOffsets(next)); err != nil || len(again) != len(next) {
				t.Fatalf("offsets: %v", err)
			}
		}
		if d, err := decodeMember(b); err == nil {
			for _, name := range d.Tasks {
				if id, err := parseTaskID(name); err == nil && (id.Partition < 0 || id.Subtopology == "") {
					t.Fatalf("task %q is %v", name, id)
				}
			}
		}
		if d, err := decodeRoutes(b); err == nil {
			d.routes(1)
		}
		fuzzEnvelope(t, b, fields)
	})
}

func fuzzEnvelope(t *testing.T, b []byte, fields []view.Field) {
	kind, err := envelopeKind(b)
	if err != nil {
		return
	}
	if kind == kindMark {
		if m, err := decodeMark(b); err == nil {
			m.take(make([]upstream, 3), 0)
		}
		return
	}
	o, rest, err := readOrigin(b)
	if err != nil {
		return
	}
	values := make([]view.Value, len(fields))
	if readFields(values, fields, rest) != nil {
		return
	}
	again, rest, err := readOrigin(appendRecord(nil, o, fields, []int{0, 1, 2}, values))
	if err != nil || again != o || readFields(values, fields, rest) != nil {
		t.Fatalf("envelope of %+v: %+v, %v", o, again, err)
	}
}
