package processor

import "slices"

// Stream time is a property of the source, not of who is fastest: downstream of
// a repartition it is the minimum over the source partitions of the last event
// time that their marks told. One that has told none yet holds it back: nothing
// is late. A partition is left out only while its newest mark says that it is
// idle, and is no older than any mark that counts nor much older than any other:
// who tells nothing may be stopped, with records that nobody has read. If all are
// left out, it is the maximum. It never goes back (invariant 9).
func streamTime(now int64, ups []upstream) int64 {
	out := leftOut(ups)
	least, greatest, some := int64(0), int64(noTime), false
	for i := range ups {
		u := &ups[i]
		greatest = max(greatest, u.Event)
		if out(u) {
			continue
		}
		if !some || u.Event < least {
			least = u.Event
		}
		some = true
	}
	if !some {
		least = greatest
	}
	return max(now, least)
}

// leftOut says which partitions do not count now. Older and newer go by the place
// of the marks in the log: clocks of instances differ.
func leftOut(ups []upstream) func(*upstream) bool {
	counting, newest := int64(-1), int64(noTime) // place of the newest mark that counts; time of the newest at all
	for i := range ups {
		newest = max(newest, ups[i].Wall)
		if !ups[i].Idle {
			counting = max(counting, ups[i].Place)
		}
	}
	return func(u *upstream) bool {
		return u.Idle && u.Place >= counting && newest-u.Wall <= silentAfter.Milliseconds()
	}
}

// holdsBack is the source partition that keeps stream time where it is, −1 when
// none does: the one with the least event time among those that count.
func holdsBack(ups []upstream) int32 {
	out := leftOut(ups)
	holder, least := int32(-1), int64(0)
	for i := range ups {
		if u := &ups[i]; !out(u) && (holder < 0 || u.Event < least) {
			holder, least = int32(i), u.Event
		}
	}
	return holder
}

// take takes a mark into what is known upstream. Everything below what it says
// comes before it in the log, so what it says of that holds, though more may have
// come since: under steady input every mark is behind the newest record. But one
// that does not know the newest record cannot say that nothing is new.
// place is the mark's offset.
func (m *mark) take(ups []upstream, place int64) {
	for _, s := range m.Sources {
		if s.Partition < 0 || int(s.Partition) >= len(ups) {
			continue
		}
		u := &ups[s.Partition]
		u.End = max(u.End, s.End)
		u.Event = max(u.Event, s.Event)
		u.CaughtUp = max(u.CaughtUp, s.CaughtUp)
		if s.Next < u.Next || s.Next == u.Next && u.Index > 0 {
			if !u.Idle {
				u.Wall, u.Place = max(u.Wall, m.Wall), place
			}
			continue
		}
		if s.Next > u.Next {
			u.Next, u.Index = s.Next, 0
		}
		u.Wall, u.Place, u.Idle = m.Wall, place, s.Idle
	}
}

// took notes that a record of a source partition was taken.
func (u *upstream) took(o origin) {
	u.Next, u.Index, u.Idle = o.Offset, o.Index+1, false
}

// unheard is the first source partition that no mark has spoken of, −1 when
// there is none: the lag is not known before.
func unheard(ups []upstream) int32 {
	return int32(slices.IndexFunc(ups, func(u upstream) bool { return u.Wall == 0 }))
}

// standing sums up what is known upstream: the records known and not yet in,
// and since when everything known is in (0: some partition never was).
func standing(ups []upstream) (lag, caughtUp int64) {
	for i := range ups {
		u := &ups[i]
		lag += max(0, u.End-u.Next)
		if i == 0 || u.CaughtUp < caughtUp {
			caughtUp = u.CaughtUp
		}
	}
	return lag, caughtUp
}
