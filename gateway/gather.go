package gateway

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

const (
	// retrySoon is when asking again may help, where nothing better is known.
	retrySoon = time.Second
	// preferFor is how long an answer of a copy that is not active waits for a
	// fresher one of the others asked with it.
	preferFor = 30 * time.Millisecond
	// leastLeft is the time that another round needs.
	leastLeft = 20 * time.Millisecond
	// misledFor is how long an answer waits for the owner that the routes do not
	// know yet to be found.
	misledFor = 100 * time.Millisecond
	// maxFallbacks are the other copies of a partition asked in one round.
	maxFallbacks = 3
)

// gather has every piece answered. It goes in rounds: each asks the copies that
// the routes of the moment name, the active ones first and the others where
// those are away. Pieces for which nothing acceptable came go into another
// round, after newer routes or a short jittered wait, until the deadline.
func (g *Gateway) gather(ctx context.Context, pieces []*piece) {
	wait := 20 * time.Millisecond
	for open := pieces; ; {
		routes, newer := g.cfg.Routes.Routes()
		r := &round{
			g: g, ctx: ctx, routes: routes, pieces: open,
			done: make(chan *call), over: make(chan struct{}), slots: make(chan struct{}, g.cfg.MaxCalls),
		}
		r.run()
		for _, pc := range open {
			if pc.behind {
				pc.conclude(nil)
			}
		}
		open = unanswered(open)
		if len(open) == 0 {
			return
		}
		if !pause(ctx, newer, wait) {
			for _, pc := range open {
				pc.conclude(&read.Error{Code: read.Timeout, Cause: ctx.Err()})
			}
			return
		}
		wait = min(2*wait, 250*time.Millisecond)
	}
}

// gatherLocal asks the local instance, without a hop or a timer, when it holds
// all pieces of lookups alone, which is where most of those end. What may wait
// there, for a ranking to be built or for other scans, is bounded like any call.
// It returns the pieces that are still to be answered.
func (g *Gateway) gatherLocal(ctx context.Context, pieces []*piece) []*piece {
	if g.cfg.Local == nil {
		return pieces
	}
	routes, _ := g.cfg.Routes.Routes()
	for _, pc := range pieces {
		if op := pc.req.Op; op != read.Get && op != read.Fetch || g.active(routes, pc) != g.cfg.LocalID {
			return pieces
		}
	}
	answers, err := g.cfg.Local.Read(ctx, requestsOf(pieces))
	if err != nil {
		if ctx.Err() == nil {
			return pieces
		}
		for _, pc := range pieces {
			pc.fail(callError(err, ctx.Err() != nil))
		}
		return nil
	}
	settled := 0
	for i, pc := range pieces {
		if pc.weigh(g, answerAt(answers, i), nil, false) {
			settled++
		}
	}
	if settled == len(pieces) {
		return nil
	}
	return unanswered(pieces)
}

func unanswered(pieces []*piece) []*piece {
	return slices.DeleteFunc(slices.Clone(pieces), func(pc *piece) bool { return pc.answer != nil })
}

// pause waits for newer routes, or as long as said, jittered, and less when the
// deadline is near; false when another round would be in vain.
func pause(ctx context.Context, newer <-chan struct{}, wait time.Duration) bool {
	wait = wait/2 + rand.N(wait)
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if left < leastLeft {
			return false
		}
		wait = min(wait, left/2)
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-newer:
		return true
	case <-t.C:
		return true
	}
}

// round is one round of calls. Its goroutine alone sees the pieces; each call is
// a goroutine of its own that hands itself back through done.
type round struct {
	g      *Gateway
	ctx    context.Context
	routes *read.Routes
	pieces []*piece
	under  []*call       // calls under way
	done   chan *call    // calls send; unbuffered, for over ends the wait
	over   chan struct{} // closed when nobody receives any more
	slots  chan struct{} // bounds the calls at once
}

func (r *round) run() {
	defer close(r.over)
	actives := make(map[string][]*piece)
	for _, pc := range r.pieces {
		pc.rounds++
		pc.round = &progress{bestAt: time.Now()}
		if id := r.g.active(r.routes, pc); id != "" {
			pc.round.active = true
			actives[id] = append(actives[id], pc)
		}
	}
	r.start(actives, asActive)
	r.fall(r.pieces, asFallback)
	wake := time.NewTimer(time.Hour)
	defer wake.Stop()
	for len(r.under) > 0 {
		if at := r.next(); at.IsZero() {
			wake.Stop()
		} else {
			wake.Reset(time.Until(at))
		}
		select {
		case <-r.ctx.Done():
			return // the calls end with it
		case c := <-r.done:
			r.finish(c)
		case <-wake.C:
			r.hedge()
			r.settleBest()
		}
		if !slices.ContainsFunc(r.pieces, func(pc *piece) bool { return pc.answer == nil }) {
			break
		}
	}
	for _, c := range r.under {
		c.abandon(r.g.cfg.CallTime / 4)
	}
}

// finish takes what a call brought.
func (r *round) finish(c *call) {
	r.under = slices.DeleteFunc(r.under, func(x *call) bool { return x == c })
	var away []*piece
	for i, pc := range c.pieces {
		if c.kind == asActive {
			pc.round.active = false
		} else {
			pc.round.others--
		}
		if pc.answer != nil {
			continue // another copy was faster
		}
		var a *read.Answer
		if c.err == nil {
			a = answerAt(c.answers, i)
		}
		had := pc.best
		settled := pc.weigh(r.g, a, c.err, c.kind != asActive)
		if pc.best != had {
			pc.round.bestOf, pc.round.bestAt = c, time.Now()
		}
		switch {
		case settled:
			r.given(pc, c)
		case c.kind == asActive:
			pc.round.misled = pc.rounds == 1 && a != nil && a.Err != nil && a.Err.Code == read.NotOwner
			away = append(away, pc)
		}
	}
	r.fall(away, asFallback)
	r.settleBest()
}

// fall asks the other copies of the pieces whose active copy is not being asked,
// or, to hedge, is not answering.
func (r *round) fall(pieces []*piece, kind callKind) {
	calls := r.others(pieces, kind)
	for _, list := range calls {
		for _, pc := range list {
			pc.round.others++
		}
	}
	r.start(calls, kind)
}

// others are the other copies of pieces that have not fallen back yet, by
// instance. The pieces count as fallen back.
func (r *round) others(pieces []*piece, kind callKind) map[string][]*piece {
	calls := make(map[string][]*piece)
	for _, pc := range pieces {
		if pc.answer != nil || pc.round.fell || pc.round.active && kind == asFallback {
			continue
		}
		pc.round.fell = true
		ids := r.g.fallbacks(r.routes, pc)
		for _, id := range ids {
			calls[id] = append(calls[id], pc)
		}
		if len(ids) == 0 && pc.why == nil {
			pc.note(&read.Error{Code: read.Rebalancing, Message: "no instance holds the partition at the moment", RetryAfter: retrySoon})
		}
	}
	return calls
}

// settleBest gives the pieces whose active copy is away the freshest answer that
// came, once no fresher one is to be expected.
func (r *round) settleBest() {
	for _, pc := range r.pieces {
		if pc.answer == nil && pc.best != nil && pc.round.fell && time.Since(pc.round.bestAt) >= pc.round.holds() {
			pc.settle(pc.best)
			r.given(pc, pc.round.bestOf)
		}
	}
}

// holds is how long the best answer waits for a better one: for those still to
// come of the copies asked with it, and, where the route was out of date, for the
// next round, since the owner is somewhere.
func (p *progress) holds() time.Duration {
	switch {
	case p.misled:
		return misledFor
	case p.others > 0:
		return preferFor
	}
	return 0
}

// given notes that a piece was given an answer of a call; nil: of an earlier
// round's.
func (r *round) given(pc *piece, c *call) {
	if pc.answer.Err != nil {
		return
	}
	if role := pc.answer.Part.Role; role.Flagged() {
		r.g.metrics.fallback(role)
	}
	if c != nil && c.kind == asHedge && pc.round.active && !c.won {
		c.won = true
		r.g.metrics.hedgesWon.Inc()
	}
}

// next is when there is something to do before the next call comes back; zero:
// nothing.
func (r *round) next() (at time.Time) {
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, c := range r.under {
		sooner(c.hedgeAt)
	}
	for _, pc := range r.pieces {
		if p := pc.round; pc.answer == nil && pc.best != nil && p.fell {
			sooner(p.bestAt.Add(p.holds()))
		}
	}
	return at
}
