package processor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/streamgauge/streamgauge/processor/store"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
)

var _ read.Instance = (*Worker)(nil)

// Read answers requests from the snapshots of the tasks and tables here. It
// never passes one on.
func (w *Worker) Read(ctx context.Context, requests []*read.Request) ([]*read.Answer, error) {
	answers := make([]*read.Answer, len(requests))
	for i, req := range requests {
		answers[i] = w.answer(ctx, req)
	}
	return answers, nil
}

func (w *Worker) answer(ctx context.Context, req *read.Request) *read.Answer {
	began := time.Now()
	a := &read.Answer{Part: read.Part{Partition: req.Partition, Instance: w.cfg.Instance, Stream: noTime}}
	err := w.find(ctx, req, a)
	if err != nil {
		e := toReadError(ctx, err)
		if e.Code == read.Internal {
			w.log.Error("read failed", "store", req.Store, "partition", req.Partition, "err", err)
		}
		a.Err = e
		a.Part.Err = e
		w.metrics.reads.WithLabelValues(req.Op.String(), e.Code.String()).Inc()
		return a
	}
	w.metrics.answered[req.Op].Inc() // one that find knows
	w.metrics.readSeconds.Observe(time.Since(began).Seconds())
	return a
}

func toReadError(ctx context.Context, err error) *read.Error {
	switch {
	case errors.Is(err, errMoved):
		return &read.Error{Code: read.NotOwner}
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return &read.Error{Code: read.Timeout}
	case errors.Is(err, view.ErrGrid):
		return &read.Error{Code: read.BadInput, Message: err.Error()}
	case errors.Is(err, view.ErrTooLong):
		return &read.Error{Code: read.TooLarge, Message: "the series has too many points; ask for a shorter time or a longer step"}
	}
	return read.AsError(err)
}

// source is what one request is answered from: a snapshot, and the part that it
// says of itself.
type source struct {
	from *serving
	role read.Role // read before the snapshot was taken
	view *view.View
	snap *store.Snapshot
	pub  *published
	at   int // index of the store
}

// find finds the snapshot that a request is for and answers from it.
func (w *Worker) find(ctx context.Context, req *read.Request, a *read.Answer) error {
	v := w.views[req.Store]
	if v == nil {
		return read.Errorf(read.UnknownStore, "no store %q", req.Store)
	}
	if err := checkRequest(v, req); err != nil {
		return err
	}
	if scans(v, req) {
		// Before a snapshot is taken: those who wait must hold none.
		select {
		case w.scans <- struct{}{}:
			defer func() { <-w.scans }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if v.Global {
		return w.globals[req.Store].read(ctx, w, req, a)
	}
	t := w.task(taskID{v.Subtopology, req.Partition})
	if t == nil {
		return &read.Error{Code: read.NotOwner}
	}
	at := slices.IndexFunc(t.sub.Feeds, func(f *schema.Feed) bool { return f.View == v })
	src, err := t.acquire(v, at)
	if err != nil {
		return err
	}
	defer func() { src.snap.Release() }()
	if req.Op == read.Top && v.Window == nil && len(req.Prefix) == 0 {
		if src, err = t.ranked(ctx, src, req); err != nil {
			return err
		}
	}
	w.describe(t, src, &a.Part)
	return w.query(ctx, src, req, a)
}

// checkRequest refuses keys that are not of the view's columns: a gateway sends
// none, and a peer may send anything.
func checkRequest(v *view.View, req *read.Request) error {
	for _, key := range req.Keys {
		if len(key) != len(v.Keys) {
			return read.Errorf(read.BadInput, "a key of %s has %d columns", v.Name, len(v.Keys))
		}
	}
	if len(req.Prefix) > len(v.Keys) {
		return read.Errorf(read.BadInput, "%s has %d key columns", v.Name, len(v.Keys))
	}
	return nil
}

// scans says whether a request may look at many rows. As many of these run at
// once as there are processors: point reads, commits and heartbeats find their
// time among them (invariant 6).
func scans(v *view.View, req *read.Request) bool {
	switch req.Op {
	case read.Get:
		return false
	case read.Top:
		return v.Window != nil || v.Global || len(req.Prefix) > 0
	}
	return true
}

// acquire takes the task's newest snapshot.
func (t *task) acquire(v *view.View, at int) (source, error) {
	role := t.shownRole() // first: a standby's state must not pass for the owner's
	s := t.serving.Load()
	if s == nil {
		return source{}, t.cond.unready()
	}
	snap := s.store.Snapshot()
	if snap == nil {
		return source{}, &read.Error{Code: read.NotOwner}
	}
	pub, ok := snap.Commit().(*published)
	if !ok { // a restore has begun just now: what is in the store may be torn
		snap.Release()
		return source{}, t.cond.unready()
	}
	return source{from: s, role: role, view: v, snap: snap, pub: pub, at: at}, nil
}

// ranked makes sure that the ranking asked for is built and long enough, and
// returns a snapshot that has it.
func (t *task) ranked(ctx context.Context, src source, req *read.Request) (source, error) {
	id := topID{src.at, req.Ranking}
	if top := src.pub.tops[id]; top != nil && (top.Complete || len(top.Rows) >= min(req.First, rankingLimit)) {
		return src, nil
	}
	if !slices.ContainsFunc(src.view.Rankings, func(r view.Ranking) bool { return r.Name(src.view) == req.Ranking }) {
		return src, read.Errorf(read.UnknownStore, "no ranking %q", req.Ranking)
	}
	s := t.serving.Load()
	if s == nil {
		return src, t.cond.unready()
	}
	err := t.ask(ctx, s, func(c *taskCopy) {
		if c.whole {
			c.rankings.want(id)
			c.republish()
		}
	})
	if err != nil {
		return src, err
	}
	fresh, err := t.acquire(src.view, src.at)
	if err != nil {
		return src, err
	}
	src.snap.Release()
	return fresh, nil
}

// describe says where an answer comes from. An instance that has not heard from
// the group for a session timeout may have been replaced: it answers as a
// standby. What a copy that is not the owner's lags behind is counted against the
// source, as far as this instance knows its end.
func (w *Worker) describe(t *task, src source, p *read.Part) {
	p.Role = src.role
	if p.Role == read.Active && !w.live() {
		p.Role = read.Standby
	}
	rec := &src.pub.rec
	p.Incarnation = src.from.incarnations[src.at]
	p.Seq, p.Lag, p.AsOf, p.Stream = rec.Seq, rec.Lag, rec.CaughtUp, rec.Stream
	if p.Role != read.Active {
		p.Lag = w.ends.lag(t.sub, t.id, rec)
	}
}

// query answers a request from a snapshot.
func (w *Worker) query(ctx context.Context, src source, req *read.Request, a *read.Answer) error {
	readers := w.readers[src.view]
	reader := readers.Get().(*rowReader)
	defer readers.Put(reader)
	q := &query{
		source: src, ctx: ctx, req: req, time: req.Time, reader: reader,
		maxRows: w.cfg.MaxRows, maxPoints: w.cfg.MaxPoints, stream: noTime,
	}
	q.time.From, q.time.To = view.ClampTime(req.Time.From), view.ClampTime(req.Time.To)
	if src.pub != nil {
		q.stream = src.pub.rec.Stream
	}
	most := w.cfg.MaxRows
	if req.Op == read.Top {
		most = rankingLimit
	}
	switch {
	case req.First < 0:
		return read.Errorf(read.BadInput, "%d rows", req.First)
	case req.First > most:
		return read.Errorf(read.TooLarge, "%d rows at once; at most %d", req.First, most)
	}
	var err error
	switch req.Op {
	case read.Get:
		a.Rows, err = q.get()
	case read.Fetch:
		a.Series, err = q.fetch(w.zones)
	case read.Range:
		a.Rows, a.More, err = q.page()
	case read.Top:
		a.Rows, err = q.top()
	case read.Size:
		a.Count, err = q.size()
	default:
		err = read.Errorf(read.BadInput, "unknown read")
	}
	return err
}
