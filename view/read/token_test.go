package read

import (
	"slices"
	"testing"
)

func TestTokenRoundTrip(t *testing.T) {
	a, b := [16]byte{1}, [16]byte{2}
	parts := []Part{
		{Partition: 2, Incarnation: b, Seq: 1 << 63}, {Partition: 1, Incarnation: a, Seq: 7}, {Partition: 0, Incarnation: a},
		{Partition: 3, Incarnation: a, Seq: 9, Err: Errorf(Timeout, "away")}, {Partition: 4, Err: Errorf(Timeout, "away")},
		{Partition: 1, Incarnation: a, Seq: 5},
	}
	got, err := DecodeToken(EncodeToken(parts))
	want := []Position{{a, 0, 0}, {a, 1, 7}, {a, 3, 9}, {b, 2, 1 << 63}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

func TestFreshnessOfTheLeastFresh(t *testing.T) {
	f := FreshnessOf([]Part{
		{AsOf: 30, Lag: 1}, {AsOf: 10, Lag: 2, Role: Standby}, {Partition: 4, Err: Errorf(Timeout, "away")}, {AsOf: 20, Role: Global},
	})
	if f.AsOf != 10 || f.Lag != 3 || !f.Standby || !f.Partial() || f.Missing[0] != (Missing{4, "timeout: away"}) {
		t.Errorf("%+v", f)
	}
	if f := FreshnessOf([]Part{{AsOf: 30}, {AsOf: 0}}); f.AsOf != 0 {
		t.Errorf("as of %d, where one part never was whole", f.AsOf)
	}
	// Rows that are shown although nothing newer comes have an age.
	if f := FreshnessOf([]Part{{AsOf: 30}, {AsOf: 20, Reset: true, Err: Errorf(Timeout, "away")}}); f.AsOf != 20 || !f.Partial() || !f.Reset {
		t.Errorf("%+v", f)
	}
}

// A token tells which of its positions are a store's.
func TestIncarnationOfAStore(t *testing.T) {
	topic := [16]byte{1, 2, 3, 4, 5, 6}
	p := Position{Incarnation: Incarnation(MarkOf("totals"), topic)}
	if !p.Of(MarkOf("totals")) || p.Of(MarkOf("hours")) {
		t.Errorf("of %x", p.Incarnation)
	}
	if other := Incarnation(MarkOf("hours"), topic); other == p.Incarnation {
		t.Error("two stores of one topic are the same incarnation")
	}
	topic[15] = 1
	if again := Incarnation(MarkOf("totals"), topic); again == p.Incarnation {
		t.Error("another topic is the same incarnation")
	}
}

func TestMissingPartitionsByReason(t *testing.T) {
	m := MissingPartitions{{1, "stale: 2m old"}, {2, "rebalancing"}, {5, "stale: 2m old"}}
	if got, want := m.Error(), "partitions 1, 5 (stale: 2m old); partition 2 (rebalancing)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzDecodeToken reads what a client may send: an error, or positions.
func FuzzDecodeToken(f *testing.F) {
	f.Add(EncodeToken([]Part{{Partition: 2, Incarnation: [16]byte{1}, Seq: 300}}))
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, s string) {
		ps, err := DecodeToken(s)
		if err != nil {
			return
		}
		if len(ps)*2 > len(s) {
			t.Fatalf("%d positions from %d characters", len(ps), len(s))
		}
		parts := make([]Part, len(ps))
		for i, p := range ps {
			parts[i] = Part{Incarnation: p.Incarnation, Partition: p.Partition, Seq: p.Seq}
		}
		again, err := DecodeToken(EncodeToken(parts))
		if err != nil || len(again) != len(ps) {
			t.Fatalf("%v reads back as %v, %v", ps, again, err)
		}
	})
}
