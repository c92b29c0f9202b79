package processor

import (
	"testing"
	"time"
)

// Stream time is the least of the source partitions, without those at their end
// for a while, and never goes back (invariant 9).
func TestStreamTime(t *testing.T) {
	tests := []struct {
		name string
		now  int64
		ups  []upstream
		want int64
	}{
		{"nothing told yet", noTime, []upstream{{Event: noTime}, {Event: noTime}}, noTime},
		{"one has told none", noTime, []upstream{{Event: 100, Wall: 5}, {Event: noTime}}, noTime},
		{"the slowest counts", 10, []upstream{{Event: 100, Wall: 5}, {Event: 40, Wall: 5}}, 40},
		{"idle is left out", 10, []upstream{{Event: 100, Wall: 5}, {Event: 40, Wall: 5, Idle: true}}, 100},
		{"idle, but of an older mark than one that counts", 10, []upstream{{Event: 100, Wall: 6}, {Event: 40, Wall: 5, Idle: true}}, 40},
		{"all idle: the greatest", 10, []upstream{{Event: 100, Wall: 5, Idle: true}, {Event: 40, Wall: 6, Idle: true}}, 100},
		{"idle, but silent since: it may be stopped", 10, []upstream{{Event: 100, Wall: 20_000, Idle: true}, {Event: 40, Wall: 9000, Idle: true}}, 40},
		{"never back", 90, []upstream{{Event: 100, Wall: 5}, {Event: 40, Wall: 5}}, 90},
		{"before 1970", noTime, []upstream{{Event: -5, Wall: 5}, {Event: -7, Wall: 5}}, -7},
		{"idle without any record", noTime, []upstream{{Event: 100, Wall: 5}, {Event: noTime, Wall: 5, Idle: true}}, 100},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for i := range test.ups {
				test.ups[i].Place = test.ups[i].Wall
			}
			if got := streamTime(test.now, test.ups); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// A partition is idle only while its end is known to be where it is: not once its
// broker has not been heard of.
func TestMarkIsIdleOnlyAtAKnownEnd(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	quiet := sourceProgress{Next: 7, End: 7, CaughtUp: ago(time.Second), LastNew: ago(idleAfter)}
	if !quiet.mark(0, now).Idle {
		t.Error("quiet, and not idle")
	}
	behind, busy, blind, never := quiet, quiet, quiet, quiet
	behind.End = 8
	busy.LastNew = ago(idleAfter - time.Millisecond)
	blind.CaughtUp = ago(5 * time.Second)
	never.CaughtUp = 0
	for name, p := range map[string]sourceProgress{"behind": behind, "busy": busy, "blind": blind, "never caught up": never} {
		if p.mark(0, now).Idle {
			t.Errorf("%s, and idle", name)
		}
	}
}

// A mark that does not know the newest record, of a former owner or under steady
// input, tells what lies below it, and not that nothing is new; a newer one brings
// the records that it speaks of to an end.
func TestMarkTake(t *testing.T) {
	ups := []upstream{{Next: 10, Index: 3, Event: 50, Wall: 9}}
	(&mark{Wall: 99, Sources: []sourceMark{{Next: 9, Event: 90, End: 13, CaughtUp: 4, Idle: true}, {Partition: 7}, {Partition: -1}}}).take(ups, 1)
	if ups[0] != (upstream{Next: 10, Index: 3, Event: 90, End: 13, CaughtUp: 4, Wall: 99, Place: 1}) {
		t.Errorf("an older mark made it %+v", ups[0])
	}
	(&mark{Wall: 99, Sources: []sourceMark{{Next: 12, Event: 40, End: 12, CaughtUp: 5, Idle: true}}}).take(ups, 2)
	if ups[0] != (upstream{Next: 12, Event: 90, End: 13, CaughtUp: 5, Wall: 99, Place: 2, Idle: true}) {
		t.Errorf("a newer mark made it %+v", ups[0])
	}
	if lag, caughtUp := standing(ups); lag != 1 || caughtUp != 5 {
		t.Errorf("lag %d, caught up %d", lag, caughtUp)
	}
	ups[0].took(origin{Offset: 12, Index: 1})
	if ups[0] != (upstream{Next: 12, Index: 2, Event: 90, End: 13, CaughtUp: 5, Wall: 99, Place: 2}) {
		t.Errorf("a record made it %+v", ups[0])
	}
}

// Under steady input, when records are on their way with every mark, as-of and
// stream time go on all the same; invariant 9: no record of a partition counts as
// late because that one was idle once.
func TestSteadyInputMovesTime(t *testing.T) {
	ups := []upstream{{Event: noTime}, {Event: noTime}}
	stream := int64(noTime)
	for i := range int64(30) {
		now := 1000 * (i + 1)
		for p := range int32(2) {
			ups[p].took(origin{Partition: p, Offset: i + 1}) // one ahead of the mark
		}
		m := &mark{Wall: now, Sources: []sourceMark{
			{Partition: 0, Next: i + 1, End: i + 2, Event: now, CaughtUp: now, Idle: i < 3},
			{Partition: 1, Next: i + 1, End: i + 2, Event: now - 500, CaughtUp: now - 100, Idle: i < 3},
		}}
		m.take(ups, i)
		stream = streamTime(stream, ups)
		if stream != now-500 {
			t.Fatalf("at %d stream time is %d, want that of the slower partition", now, stream)
		}
		if _, caughtUp := standing(ups); caughtUp != now-100 {
			t.Fatalf("at %d it is as of %d", now, caughtUp)
		}
	}
}

// Clocks of instances differ: which mark is the newer goes by the log, and an idle
// partition does not hold time back because its instance's clock is behind.
func TestStreamTimeDoesNotGoByClocks(t *testing.T) {
	ups := []upstream{{Event: 1000}, {Event: 1000}}
	now := int64(noTime)
	for i := range int64(120) {
		wall := 1_000_000 + 1000*i
		busy := mark{Wall: wall, Sources: []sourceMark{{Partition: 0, Next: i + 1, End: i + 1, Event: 1000 + 1000*i, CaughtUp: wall}}}
		busy.take(ups, 2*i)
		now = streamTime(now, ups)
		idle := mark{Wall: wall - 50, Sources: []sourceMark{{Partition: 1, Next: 1, End: 1, Event: 1000, CaughtUp: wall, Idle: true}}}
		idle.take(ups, 2*i+1)
		now = streamTime(now, ups)
		if now != 1000+1000*i {
			t.Fatalf("after %d s stream time is %d, and the busy partition is at %d", i, now, 1000+1000*i)
		}
		if i > 0 && holdsBack(ups) != 0 {
			t.Fatalf("partition %d holds time back", holdsBack(ups))
		}
	}
}
