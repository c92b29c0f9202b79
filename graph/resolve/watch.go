package resolve

import (
	"context"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// watchWith starts a watch and makes each answer into what the field returns.
// An error ends the subscription; BeginSubscription's caller learns it.
func watchWith[T any](ctx context.Context, v read.Views, q *read.Query, o *Options, of func(*read.Result) T) (<-chan T, error) {
	updates, err := v.Watch(ctx, q, time.Duration(deref(o.Every))*time.Millisecond)
	if err != nil {
		return nil, err
	}
	out := make(chan T)
	go func() {
		defer close(out)
		for u := range updates {
			if u.Err != nil {
				ended(ctx, u.Err)
				return
			}
			select {
			case out <- of(u.Result):
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// ending keeps why a subscription ended: its channel cannot carry an error.
type ending struct {
	mu  sync.Mutex // guards err
	err error
}

type endingKey struct{}

// BeginSubscription prepares a context for one subscription; the function tells,
// when its channel has closed, the error that ended it, nil when none did.
func BeginSubscription(ctx context.Context) (context.Context, func() error) {
	e := &ending{}
	return context.WithValue(ctx, endingKey{}, e), func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.err
	}
}

func ended(ctx context.Context, err error) {
	if e, _ := ctx.Value(endingKey{}).(*ending); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.err = err
	}
}

// WatchOne is One as a subscription.
func WatchOne[T any](ctx context.Context, v read.Views, q *read.Query, o *Options, maker Make[T]) (<-chan *T, error) {
	return watchWith(ctx, v, q, o, func(r *read.Result) *T { return oneOf(r, maker) })
}

// WatchList is List as a subscription.
func WatchList[T any](ctx context.Context, v read.Views, q *read.Query, o *Options, maker Make[T]) (<-chan []*T, error) {
	return watchWith(ctx, v, q, o, func(r *read.Result) []*T { return listOf(r, maker) })
}

// WatchRows is Rows as a subscription; wrap makes the type with rows and
// freshness.
func WatchRows[T, W any](ctx context.Context, v read.Views, q *read.Query, o *Options, maker Make[T], wrap func([]*T, *Freshness) *W) (<-chan *W, error) {
	return watchWith(ctx, v, q, o, func(r *read.Result) *W { return wrap(listOf(r, maker), FreshnessOf(r.Parts)) })
}

// WatchPage is Pages as a subscription.
func WatchPage[T, W any](ctx context.Context, v read.Views, q *read.Query, o *Options, maker Make[T], wrap func(*Page[T]) *W) (<-chan *W, error) {
	return watchWith(ctx, v, q, o, func(r *read.Result) *W { return wrap(pageOf(r, q, maker)) })
}

// WatchCount is Count as a subscription.
func WatchCount(ctx context.Context, v read.Views, q *read.Query, o *Options) (<-chan *int64, error) {
	return watchWith(ctx, v, q, o, func(r *read.Result) *int64 { return &r.Count })
}
