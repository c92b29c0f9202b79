package gateway

import (
	"time"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// demand is what the answers to a query must be, made ready once for all of its
// pieces; nil: no more than the gateway's default.
type demand struct {
	maxAge     int64 // ms, of every copy; 0: the default, of copies that are not active
	activeOnly bool
	complete   bool
	least      map[spot]uint64          // the token's positions in this store
	held       map[int32]*read.Position // one of them by partition
}

// spot is a partition of an incarnation.
type spot struct {
	incarnation [16]byte
	partition   int32
}

// newDemand takes what concerns the store out of what the operation demands.
func newDemand(d *read.Demand, store read.Mark) *demand {
	if d == nil {
		return nil
	}
	out := &demand{maxAge: d.MaxAge, activeOnly: d.ActiveOnly, complete: d.Complete}
	for i := range d.AtLeast {
		p := &d.AtLeast[i]
		if !p.Of(store) {
			continue
		}
		if out.least == nil {
			out.least, out.held = make(map[spot]uint64), make(map[int32]*read.Position)
		}
		at := spot{p.Incarnation, p.Partition}
		out.least[at] = max(out.least[at], p.Seq)
		if h := out.held[p.Partition]; h == nil || h.Incarnation == p.Incarnation && h.Seq < p.Seq {
			out.held[p.Partition] = p
		}
	}
	return out
}

// hopeless is by how much an active copy must be too old for the query not to
// wait: as-of moves on once a second, so that one which is a little too old may
// be fresh in a moment.
const hopeless = 2 * time.Second

// refuse says why an answer may not be given; nil: it may. behind says that it is
// an active copy's that will hardly be fresh before the deadline.
func (g *Gateway) refuse(pc *piece, p *read.Part) (why *read.Error, behind bool) {
	d, flagged := pc.demand, p.Role.Flagged()
	if d == nil && !flagged {
		return nil, false
	}
	bound := int64(0)
	if flagged {
		bound = g.cfg.MaxAge.Milliseconds()
	}
	if d != nil {
		if d.activeOnly && flagged {
			return &read.Error{Code: read.Rebalancing, Message: "the active copy is away, and no other was allowed", RetryAfter: time.Second}, false
		}
		if seq, ok := d.least[spot{p.Incarnation, p.Partition}]; ok && p.Seq < seq {
			return &read.Error{Code: read.Stale, Message: "the state is older than what the token has seen", RetryAfter: time.Second}, false
		}
		if d.maxAge > 0 {
			bound = d.maxAge
		}
	}
	if bound == 0 {
		return nil, false
	}
	return tooOld(p, time.Now().UnixMilli()-p.AsOf, bound)
}

func tooOld(p *read.Part, age, bound int64) (why *read.Error, behind bool) {
	switch {
	case p.AsOf == 0:
		return read.Errorf(read.Stale, "the state has not held everything in its source yet, and at most %s of age was allowed", view.FormatDuration(bound)), false
	case age > bound:
		why = read.Errorf(read.Stale, "the state is %s old, and at most %s was allowed", ageText(age), view.FormatDuration(bound))
		why.RetryAfter = time.Second
		return why, !p.Role.Flagged() && age-bound > hopeless.Milliseconds()
	}
	return nil, false
}

// ageText is an age in a few words: whole seconds once it is some.
func ageText(ms int64) string {
	if ms >= 5000 {
		ms -= ms % 1000
	}
	return view.FormatDuration(ms)
}

// reset says whether the token holds positions of the part's partition, all of
// them of other incarnations.
func (d *demand) reset(p *read.Part) bool {
	if d == nil || d.held[p.Partition] == nil {
		return false
	}
	_, same := d.least[spot{p.Incarnation, p.Partition}]
	return !same
}
