package gateway

import (
	"bytes"
	"context"
	"runtime/debug"
	"slices"
	"time"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

const (
	// sayAfter is when a watch that cannot read says so, with its last rows.
	sayAfter = 3 * time.Second
	// giveUpAfter ends a watch of keys that never got a first answer: there is no
	// event that would say so without looking like an empty one.
	giveUpAfter = 30 * time.Second
)

// Watch sends the query's answer, then each newer one. Registration comes
// before the first read, so nothing falls between; what is sent is always the
// newest there is, however slow the reader; and no partition ever goes back.
func (g *Gateway) Watch(ctx context.Context, q *read.Query, every time.Duration) (<-chan read.Update, error) {
	p, err := g.plan(ctx, q)
	if err != nil {
		return nil, err
	}
	w := newWatcher()
	release := g.mux.add(w, interestsOf(p))
	out := make(chan read.Update)
	watch := &watch{g: g, query: q, watcher: w, out: out, every: max(every, g.cfg.MinEvery), seen: make(map[spot]uint64), at: make(map[int32]read.Position)}
	g.metrics.watches.Inc()
	go func() {
		defer g.metrics.watches.Dec()
		defer close(out)
		defer release()
		defer watch.recovered(ctx)
		watch.run(ctx, p.view)
	}()
	return out, nil
}

// interestsOf are the partitions, and where they are known the keys, that a
// query's answer depends on.
func interestsOf(p *plan) []read.Interest {
	wants := make([]read.Interest, 0, len(p.pieces))
	for _, pc := range p.pieces {
		in := read.Interest{Store: p.view.Store, Partition: pc.req.Partition}
		for _, k := range pc.req.Keys {
			in.Keys = append(in.Keys, view.AppendKeys(nil, k))
		}
		slices.SortFunc(in.Keys, bytes.Compare)
		if in.Keys == nil && len(p.query.Prefix) > 0 {
			in.Prefix = view.AppendKeys(nil, p.query.Prefix)
		}
		wants = append(wants, in)
	}
	return wants
}

// watch is one watch under way.
type watch struct {
	g       *Gateway
	query   *read.Query
	watcher *watcher
	out     chan<- read.Update
	every   time.Duration

	seen map[spot]uint64         // newest seq sent
	at   map[int32]read.Position // where each partition stood when it was sent last
	last *read.Result
	sent time.Time
}

func (w *watch) run(ctx context.Context, v *view.View) {
	var tick <-chan time.Time
	if w.query.Time.Last > 0 {
		t := time.NewTicker(max(time.Second, time.Duration(tickOf(v, w.query))*time.Millisecond))
		defer t.Stop()
		tick = t.C
	}
	for ticked := false; ; {
		update, ok := w.read(ctx)
		if !ok {
			return
		}
		if !w.same(update, ticked) {
			if update, ok = w.send(ctx, update); !ok || update.Err != nil {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-w.watcher.dirty:
			ticked = false
		case <-tick:
			ticked = true
		case <-w.unsettled(update.Result):
			ticked = false
		}
		// Events that come close together are one.
		if wait := w.every - time.Since(w.sent); wait > 0 && !sleep(ctx, wait) {
			return
		}
		w.undirty()
	}
}

// recovered ends a watch whose reading panicked with an error: it must not take
// the process along.
func (w *watch) recovered(ctx context.Context) {
	if v := recover(); v != nil {
		w.g.log.Error("panic in a watch", "store", w.query.Store, "cause", v, "stack", string(debug.Stack()))
		select {
		case w.out <- read.Update{Err: &read.Error{Code: read.Internal}}:
		case <-ctx.Done():
		}
	}
}

// mendAfter is when an answer that is partial, or not of the active copy, is
// looked at again, or one of which newer state may go untold: what it lacks may
// come back without an event.
const mendAfter = time.Second

// unsettled fires when an answer should be looked at again; never for a whole
// one whose changes are told.
func (w *watch) unsettled(r *read.Result) <-chan time.Time {
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Err != nil || p.Role.Flagged() {
			return time.After(mendAfter)
		}
	}
	if !w.g.mux.firm(w.watcher) {
		return time.After(mendAfter)
	}
	return nil
}

func (w *watch) undirty() {
	select {
	case <-w.watcher.dirty:
	default:
	}
}

// tickOf is how often a time relative to now moves on, in milliseconds.
func tickOf(v *view.View, q *read.Query) int64 {
	step := q.Time.Step
	if v.Window != nil {
		step = max(step, v.Window.Size)
	}
	return min(step, 60_000)
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// read gets an answer that is no older than what was sent. While none is to be
// had it goes on trying, and after a while says so: with the last rows, or, where
// there are none yet and they need not be, with none and every partition missing.
func (w *watch) read(ctx context.Context) (read.Update, bool) {
	began := time.Now()
	wait := 20 * time.Millisecond
	for {
		r, none, err := w.once(ctx)
		if ctx.Err() != nil {
			return read.Update{}, false
		}
		switch {
		case err == nil && !w.older(r):
			w.complete(r)
			return read.Update{Result: r}, true
		case err != nil && !lasting(err):
			return read.Update{Err: err}, true
		}
		waited := time.Since(began)
		switch {
		case w.last != nil && waited > sayAfter:
			return read.Update{Result: w.stale(r, err)}, true
		case w.last == nil && none != nil && waited > sayAfter:
			w.complete(none)
			return read.Update{Result: none}, true
		case w.last == nil && waited > giveUpAfter:
			return read.Update{Err: err}, true
		}
		if !sleep(ctx, wait) {
			return read.Update{}, false
		}
		wait = min(2*wait, 250*time.Millisecond)
	}
}

// once reads within the time after which a watch speaks: what is missing by
// then is told, and what is there is shown. none is the answer of a query that
// needs no partition, when err says that none answered.
func (w *watch) once(ctx context.Context) (r, none *read.Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, sayAfter-500*time.Millisecond)
	defer cancel()
	p, err := w.g.plan(ctx, w.demanding())
	if err != nil {
		return nil, nil, err
	}
	w.g.answer(ctx, p.pieces)
	r, err = p.merge()
	w.g.metrics.count(p.query.Op, err, r)
	if err != nil {
		none = p.empty()
	}
	return r, none, err
}

// demanding is the query, demanding what was demanded and nothing older than what
// was sent, so that another copy is asked where one is behind.
func (w *watch) demanding() *read.Query {
	if len(w.seen) == 0 {
		return w.query
	}
	var d read.Demand
	if w.query.Demand != nil {
		d = *w.query.Demand
	}
	d.AtLeast = slices.Clip(d.AtLeast)
	for s, seq := range w.seen {
		d.AtLeast = append(d.AtLeast, read.Position{Incarnation: s.incarnation, Partition: s.partition, Seq: seq})
	}
	q := *w.query
	q.Demand = &d
	return &q
}

// complete gives the partitions that did not answer the position that was sent
// last, so that the token does not go back.
func (w *watch) complete(r *read.Result) {
	for i := range r.Parts {
		p := &r.Parts[i]
		if at, ok := w.at[p.Partition]; ok && p.Err != nil {
			p.Incarnation, p.Seq = at.Incarnation, at.Seq
		}
	}
}

// lasting says whether an error may pass, so that a watch outlives it.
func lasting(err error) bool {
	switch c := read.AsError(err).Code; c {
	case read.Timeout, read.Stale, read.Incomplete:
		return true
	default:
		return c.Retry()
	}
}

// older says whether some partition's answer is older than what was sent.
func (w *watch) older(r *read.Result) bool {
	for i := range r.Parts {
		if w.behind(&r.Parts[i]) {
			return true
		}
	}
	return false
}

func (w *watch) behind(p *read.Part) bool {
	return p.Err == nil && p.Seq < w.seen[spot{p.Incarnation, p.Partition}]
}

// same says whether an update tells nothing newer than what was sent last: the
// same parts, missing for the same reasons, as of the same moment, with the same
// rows. A time relative to now moves on by itself.
func (w *watch) same(u read.Update, ticked bool) bool {
	if ticked || w.last == nil || u.Result == nil || len(u.Result.Parts) != len(w.last.Parts) {
		return false
	}
	moved := false
	for i := range u.Result.Parts {
		p, q := &u.Result.Parts[i], &w.last.Parts[i]
		if p.Partition != q.Partition || p.Incarnation != q.Incarnation || p.Role != q.Role || codeOf(p) != codeOf(q) {
			return false
		}
		moved = moved || p.Seq != q.Seq
	}
	if !moved {
		return true
	}
	a, b := read.FreshnessOf(u.Result.Parts), read.FreshnessOf(w.last.Parts)
	return a.AsOf == b.AsOf && a.Lag == b.Lag && sameRows(u.Result, w.last)
}

// codeOf is why a part is missing, −1 when it is not. Messages may name an age,
// which is no news.
func codeOf(p *read.Part) int {
	if p.Err == nil {
		return -1
	}
	return int(p.Err.Code)
}

func sameRows(a, b *read.Result) bool {
	same := func(x, y *read.Row) bool {
		return x == y || x != nil && y != nil && slices.EqualFunc(x.Values, y.Values, func(v, u view.Value) bool { return view.Compare(v, u) == 0 })
	}
	return a.Count == b.Count && a.More == b.More && slices.EqualFunc(a.Rows, b.Rows, same) &&
		slices.EqualFunc(a.Series, b.Series, func(x, y []*read.Row) bool { return slices.EqualFunc(x, y, same) })
}

// stale is the last answer, saying of its partitions why nothing newer comes.
func (w *watch) stale(r *read.Result, err error) *read.Result {
	c := *w.last
	c.Parts = slices.Clone(c.Parts)
	reason := read.Errorf(read.Unavailable, "no newer state is to be had at the moment")
	if err != nil {
		reason = read.AsError(err)
	}
	for i := range c.Parts {
		if err != nil || i < len(r.Parts) && w.behind(&r.Parts[i]) {
			c.Parts[i].Err = reason
		}
	}
	return &c
}

// send hands an update to the reader, and returns what it handed over. A reader
// that takes its time gets the newest instead: what waits is read again, now and
// then, when something has changed.
func (w *watch) send(ctx context.Context, u read.Update) (read.Update, bool) {
	for wait := min(w.every, 2*time.Second); ; wait = min(2*wait, 2*time.Second) {
		changed := w.watcher.dirty
		select {
		case w.out <- u: // a reader that waits is not made to
			w.note(u.Result)
			return u, true
		default:
		}
		select {
		case <-ctx.Done():
			return u, false
		case w.out <- u:
			w.note(u.Result)
			return u, true
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return u, false
		case w.out <- u:
			w.watcher.mark() // what changed meanwhile comes next
			w.note(u.Result)
			return u, true
		case <-time.After(wait):
		}
		w.undirty()
		newer, ok := w.read(ctx)
		if !ok {
			return u, false
		}
		u = newer
	}
}

func (w *watch) note(r *read.Result) {
	w.sent = time.Now()
	if r == nil {
		return
	}
	w.last = r
	for i := range r.Parts {
		if p := &r.Parts[i]; p.Err == nil {
			k := spot{p.Incarnation, p.Partition}
			w.seen[k] = max(w.seen[k], p.Seq)
			w.at[p.Partition] = read.Position{Incarnation: p.Incarnation, Partition: p.Partition, Seq: w.seen[k]}
		}
	}
}
