package gateway

import (
	"slices"
	"time"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// piece is one partition's share of a query, on its way to an answer. It belongs
// to the goroutine that gathers; calls see its request alone.
type piece struct {
	view   *view.View
	mark   read.Mark // of the store
	demand *demand
	req    *read.Request
	places []int // of a Get or Fetch: the places of req.Keys in the query's Keys

	answer *read.Answer // what is given, be it a failure; nil: still open
	best   *read.Answer // the freshest of copies that are not active: given when no active one answers
	why    *read.Error  // why there is no answer so far
	behind bool         // the active copy is so far behind that waiting is in vain
	rounds int
	round  *progress // nil before the first
}

// progress is how a piece stands within one round of calls.
type progress struct {
	active bool      // the active copy is being asked
	others int       // how many other copies are being asked
	fell   bool      // the other copies have been asked
	misled bool      // the routes named an active copy that is none
	bestOf *call     // which brought best; nil: an earlier round
	bestAt time.Time // when
}

// weigh takes an answer of a copy, or why there is none. It says whether that
// settles the piece: an acceptable answer of an active copy does, and a failure
// that no other copy would mend.
func (pc *piece) weigh(g *Gateway, a *read.Answer, err *read.Error, fallback bool) bool {
	if err == nil {
		err = pc.fault(a)
	}
	if err == nil {
		a.Part.Incarnation = read.Incarnation(pc.mark, a.Part.Incarnation)
		var behind bool
		err, behind = g.refuse(pc, &a.Part)
		pc.behind = pc.behind || behind
		if err == nil {
			if a.Part.Role.Flagged() {
				pc.keep(a)
				return false
			}
			pc.settle(a)
			return true
		}
	}
	pc.note(err)
	if atFault(err.Code) || !fallback && !elsewhere(err.Code) {
		pc.fail(err)
		return true
	}
	return false
}

// fault is the error of an answer, or what is wrong with its form.
func (pc *piece) fault(a *read.Answer) *read.Error {
	switch {
	case a == nil:
		return &read.Error{Code: read.Internal, Message: "an instance left a request unanswered"}
	case a.Err != nil:
		return a.Err
	case !whole(pc.view, a):
		return &read.Error{Code: read.Unavailable, Message: "an instance answered by another schema", RetryAfter: retrySoon}
	}
	return nil
}

// whole says whether the rows have the columns of the view: in a rolling upgrade
// an instance may know another.
func whole(v *view.View, a *read.Answer) bool {
	fits := func(rows []*read.Row) bool {
		return !slices.ContainsFunc(rows, func(r *read.Row) bool { return r != nil && len(r.Values) != len(v.Columns) })
	}
	return fits(a.Rows) && !slices.ContainsFunc(a.Series, func(rows []*read.Row) bool { return !fits(rows) })
}

// atFault says whether the question is at fault, whichever copy says so.
func atFault(c read.Code) bool {
	return c == read.BadInput || c == read.TooLarge || c == read.Forbidden
}

// elsewhere says whether another copy, or the same one later, may have what this
// one has not.
func elsewhere(c read.Code) bool { return c.Retry() || c == read.Stale || c == read.Timeout }

// keep keeps the freshest answer of copies that are not active.
func (pc *piece) keep(a *read.Answer) {
	if pc.best == nil || a.Part.AsOf > pc.best.Part.AsOf {
		pc.best = a
	}
}

// note keeps the reason that tells most of several copies' and rounds'.
func (pc *piece) note(err *read.Error) {
	if pc.why == nil || telling(err.Code) >= telling(pc.why.Code) {
		pc.why = err
	}
}

// telling ranks reasons.
func telling(c read.Code) int {
	switch c {
	case read.Stale:
		return 4
	case read.Restoring:
		return 3
	case read.CircuitOpen:
		return 2
	case read.NotOwner:
		return 0
	}
	return 1
}

func (pc *piece) settle(a *read.Answer) {
	a.Part.Reset = pc.demand.reset(&a.Part)
	pc.answer = a
}

// fail settles the piece without an answer. Its part keeps the position of the
// demanded token, which so never goes back.
func (pc *piece) fail(err *read.Error) {
	part := read.Part{Partition: pc.req.Partition, Err: err}
	if pc.demand != nil {
		if p := pc.demand.held[part.Partition]; p != nil {
			part.Incarnation, part.Seq = p.Incarnation, p.Seq
		}
	}
	pc.answer = &read.Answer{Err: err, Part: part}
}

// conclude settles a piece when the time is over: with the best answer that came,
// or with why there is none.
func (pc *piece) conclude(otherwise *read.Error) {
	switch {
	case pc.answer != nil:
	case pc.best != nil:
		pc.settle(pc.best)
	case pc.why != nil:
		pc.fail(pc.why)
	default:
		pc.fail(otherwise)
	}
}
