package gateway

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"github.com/streamgauge/streamgauge/view/read"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// callKind is why an instance is asked.
type callKind uint8

const (
	asActive   callKind = iota // it has the active copies
	asFallback                 // the active copies are away
	asHedge                    // the active copies do not answer in their usual time
)

// call asks one instance for all of its pieces, within the time of a call. It
// outlives its query when another copy was faster: what becomes of it tells
// whether the instance answers at all.
type call struct {
	kind   callKind
	id     string // the instance
	pieces []*piece
	began  time.Time
	// hedgeAt is when other copies are asked meanwhile; zero: not at all.
	hedgeAt time.Time
	won     bool // a hedge that brought an answer first

	ctx       context.Context
	cancel    context.CancelFunc
	abandoned atomic.Bool // its query goes on without it
	silent    atomic.Bool // given up on: the instance does not answer

	// Of the call's goroutine, until it hands the call back.
	requests []*read.Request
	answers  []*read.Answer
	err      *read.Error
}

// start makes the calls.
func (r *round) start(calls map[string][]*piece, kind callKind) {
	for id, pieces := range calls {
		c := &call{kind: kind, id: id, pieces: pieces, began: time.Now(), requests: requestsOf(pieces)}
		end := c.began.Add(r.g.cfg.CallTime)
		if d, ok := r.ctx.Deadline(); ok && d.Before(end) {
			end = d
		}
		c.ctx, c.cancel = context.WithDeadline(context.WithoutCancel(r.ctx), end)
		if kind == asActive && id != r.g.cfg.LocalID && r.anyFallback(pieces) {
			c.hedgeAt = c.began.Add(r.g.peers.patience(id, c.requests))
		}
		if kind == asHedge {
			r.g.metrics.hedgesSent.Inc()
		}
		r.under = append(r.under, c)
		go r.perform(c)
	}
}

func (r *round) anyFallback(pieces []*piece) bool {
	for _, pc := range pieces {
		if r.g.hasFallback(r.routes, pc) {
			return true
		}
	}
	return false
}

func requestsOf(pieces []*piece) []*read.Request {
	requests := make([]*read.Request, len(pieces))
	for i, pc := range pieces {
		requests[i] = pc.req
	}
	return requests
}

// answerAt is an answer in its place; nil: an instance sent too few.
func answerAt(answers []*read.Answer, i int) *read.Answer {
	if i < len(answers) {
		return answers[i]
	}
	return nil
}

// perform makes a call in a goroutine of its own and hands it back to the round,
// if that still waits for it.
func (r *round) perform(c *call) {
	if !r.g.calls.begin() {
		c.err = &read.Error{Code: read.Unavailable, Cause: errGatewayClosed}
	} else {
		defer r.g.calls.done()
		stop := context.AfterFunc(r.ctx, func() {
			if !c.abandoned.Load() {
				c.cancel()
			}
		})
		select {
		case r.slots <- struct{}{}:
			r.g.ask(r.ctx, r.routes, c)
			<-r.slots
		case <-c.ctx.Done():
			c.err = callError(c.ctx.Err(), r.ctx.Err() != nil)
		}
		stop()
	}
	c.cancel()
	select {
	case r.done <- c:
	case <-r.over:
	}
}

// abandon leaves a call to itself that another copy was faster than. It may take
// so long in all; then the instance counts as one that does not answer.
func (c *call) abandon(within time.Duration) {
	c.abandoned.Store(true)
	time.AfterFunc(within-time.Since(c.began), func() {
		c.silent.Store(true)
		c.cancel()
	})
}

// errGivenUp is what the circuit breaker hears of a call that was given up on.
var errGivenUp = errors.New("no answer, and another instance answered long ago")

// ask makes the call: locally without a hop, else through the peer's breaker.
func (g *Gateway) ask(query context.Context, routes *read.Routes, c *call) {
	defer func() {
		if v := recover(); v != nil {
			g.log.Error("panic in a call", "host", c.id, "cause", v, "stack", string(debug.Stack()))
			c.err = &read.Error{Code: read.Internal}
		}
	}()
	if c.id == g.cfg.LocalID && g.cfg.Local != nil {
		answers, err := g.cfg.Local.Read(c.ctx, c.requests)
		c.answers, c.err = answers, callError(err, query.Err() != nil)
		return
	}
	p, err := g.peers.get(routes, c.id)
	if err != nil {
		c.err = &read.Error{Code: read.Unavailable, Message: "an instance is not reached", Cause: err, RetryAfter: retrySoon}
		return
	}
	g.hedges.earn()
	began := time.Now()
	c.answers, err = p.breaker.Execute(func() ([]*read.Answer, error) {
		answers, err := p.instance.Read(c.ctx, c.requests)
		if err != nil && c.silent.Load() {
			err = errGivenUp
		}
		if err != nil {
			p.failure.Store(&err)
		}
		return answers, err
	})
	took := time.Since(began)
	g.metrics.callSeconds.Observe(took.Seconds())
	if err == nil {
		p.usual[kindOf(c.requests)].observe(took)
	}
	c.err = callError(err, query.Err() != nil)
}

// callError says what became of a call that no answer came from; over: the
// query's own time is, too. Otherwise the partition may be elsewhere by now.
func callError(err error, over bool) *read.Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, gobreaker.ErrOpenState), errors.Is(err, gobreaker.ErrTooManyRequests):
		return &read.Error{Code: read.CircuitOpen, Message: "an instance has failed too often lately", RetryAfter: retrySoon}
	case over:
		return &read.Error{Code: read.Timeout, Cause: err}
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		return &read.Error{Code: read.Unavailable, Message: "an instance does not answer in time", RetryAfter: retrySoon, Cause: err}
	}
	return &read.Error{Code: read.Unavailable, Message: "an instance is not reached", RetryAfter: retrySoon, Cause: err}
}

// running counts the calls under way, so that Run ends after them.
type running struct {
	mu     sync.Mutex // guards closed, and that no call begins after it
	closed bool
	calls  sync.WaitGroup
}

func (r *running) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.calls.Add(1)
	return true
}

func (r *running) done() { r.calls.Done() }

func (r *running) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.calls.Wait()
}
