package gateway

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// gather has every piece answered: all that one instance holds in one call, at
// most MaxCalls calls at once. Pieces whose route was out of date go again,
// after newer routes or a short jittered wait, until the deadline.
func (g *Gateway) gather(ctx context.Context, pieces []*piece) {
	wait := 20 * time.Millisecond
	for open := pieces; len(open) > 0; {
		routes, newer := g.cfg.Routes.Routes()
		calls := make(map[string][]*piece)
		for _, pc := range open {
			pc.tried++
			if owner := g.owner(routes, pc); owner != "" {
				calls[owner] = append(calls[owner], pc)
			} else {
				pc.fail(&read.Error{Code: read.Rebalancing, Message: "no instance holds the partition at the moment", RetryAfter: time.Second})
			}
		}
		g.callAll(ctx, routes, calls)
		open = again(open)
		if len(open) == 0 || !g.pause(ctx, newer, wait) {
			return
		}
		wait = min(2*wait, 250*time.Millisecond)
	}
}

// gatherLocal asks the local instance, without a hop or a timer, when it holds
// all pieces, which is where most lookups end. It returns the pieces that are
// still to be answered.
func (g *Gateway) gatherLocal(ctx context.Context, pieces []*piece) []*piece {
	if g.cfg.Local == nil {
		return pieces
	}
	routes, _ := g.cfg.Routes.Routes()
	for _, pc := range pieces {
		if g.owner(routes, pc) != g.cfg.LocalID {
			return pieces
		}
	}
	g.send(ctx, routes, g.cfg.LocalID, pieces)
	return again(pieces)
}

// again are the pieces that another attempt may answer.
func again(pieces []*piece) []*piece {
	var open []*piece
	for _, pc := range pieces {
		if pc.answer.Err != nil && pc.answer.Err.Code.Retry() {
			open = append(open, pc)
		}
	}
	return open
}

// pause waits for newer routes, or as long as said, jittered; false when the
// deadline would pass meanwhile.
func (g *Gateway) pause(ctx context.Context, newer <-chan struct{}, wait time.Duration) bool {
	wait = wait/2 + rand.N(wait)
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 2*wait {
		return false
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

// owner is the instance to ask for a piece; "" when none is known.
func (g *Gateway) owner(routes *read.Routes, pc *piece) string {
	if pc.view.Global {
		if g.cfg.Local != nil {
			return g.cfg.LocalID
		}
		return anyInstance(routes, pc.tried)
	}
	copies := routes.Copies[pc.view.Subtopology]
	if int(pc.req.Partition) >= len(copies) || len(copies[pc.req.Partition]) == 0 {
		return ""
	}
	return copies[pc.req.Partition][0].Instance
}

// anyInstance picks one of all, another with each try.
func anyInstance(routes *read.Routes, try int) string {
	ids := slices.Sorted(maps.Keys(routes.Instances))
	if len(ids) == 0 {
		return ""
	}
	return ids[try%len(ids)]
}

func (g *Gateway) callAll(ctx context.Context, routes *read.Routes, calls map[string][]*piece) {
	slots := make(chan struct{}, g.cfg.MaxCalls)
	var wg sync.WaitGroup
	for id, pieces := range calls {
		if len(calls) == 1 {
			g.call(ctx, routes, id, pieces)
			return
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			g.call(ctx, routes, id, pieces)
		})
	}
	wg.Wait()
}

// call asks one instance for all of its pieces, within the time of a call.
func (g *Gateway) call(ctx context.Context, routes *read.Routes, id string, pieces []*piece) {
	timed, cancel := context.WithTimeout(ctx, g.cfg.CallTime)
	defer cancel()
	g.send(timed, routes, id, pieces)
	if ctx.Err() != nil {
		return
	}
	// The call's own time is over, not the query's: the partition may be
	// elsewhere by now.
	for _, pc := range pieces {
		if e := pc.answer.Err; e != nil && e.Code == read.Timeout {
			pc.fail(&read.Error{Code: read.Unavailable, Message: "an instance does not answer in time", RetryAfter: time.Second, Cause: e.Cause})
		}
	}
}

func (g *Gateway) send(ctx context.Context, routes *read.Routes, id string, pieces []*piece) {
	requests := make([]*read.Request, len(pieces))
	for i, pc := range pieces {
		requests[i] = pc.req
	}
	answers, err := g.ask(ctx, routes, id, requests)
	for i, pc := range pieces {
		switch {
		case err != nil:
			pc.fail(err)
		case i >= len(answers) || answers[i] == nil:
			pc.fail(&read.Error{Code: read.Internal, Message: "an instance left a request unanswered"})
		case !whole(pc.view, answers[i]):
			pc.fail(&read.Error{Code: read.Unavailable, Message: "an instance answered by another schema", RetryAfter: time.Second})
		default:
			pc.answer = answers[i]
		}
	}
}

// whole says whether the rows have the columns of the view: in a rolling upgrade
// an instance may know another.
func whole(v *view.View, a *read.Answer) bool {
	fits := func(rows []*read.Row) bool {
		return !slices.ContainsFunc(rows, func(r *read.Row) bool { return r != nil && len(r.Values) != len(v.Columns) })
	}
	return fits(a.Rows) && !slices.ContainsFunc(a.Series, func(rows []*read.Row) bool { return !fits(rows) })
}

func (pc *piece) fail(e *read.Error) {
	pc.answer = &read.Answer{Err: e, Part: read.Part{Partition: pc.req.Partition, Err: e}}
}

func (g *Gateway) ask(ctx context.Context, routes *read.Routes, id string, requests []*read.Request) ([]*read.Answer, *read.Error) {
	if id == g.cfg.LocalID && g.cfg.Local != nil {
		answers, err := g.cfg.Local.Read(ctx, requests)
		return answers, callError(ctx, err)
	}
	p, err := g.peers.get(routes, id)
	if err != nil {
		return nil, &read.Error{Code: read.Unavailable, Cause: err, RetryAfter: time.Second}
	}
	began := time.Now()
	answers, err := p.breaker.Execute(func() ([]*read.Answer, error) { return p.instance.Read(ctx, requests) })
	g.metrics.callSeconds.Observe(time.Since(began).Seconds())
	return answers, callError(ctx, err)
}

// callError says what became of a call that no answer came from.
func callError(ctx context.Context, err error) *read.Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		return &read.Error{Code: read.CircuitOpen, Message: "an instance has failed too often lately", RetryAfter: time.Second}
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return &read.Error{Code: read.Timeout, Cause: err}
	}
	return &read.Error{Code: read.Unavailable, Cause: err, Message: "an instance is not reached", RetryAfter: time.Second}
}
