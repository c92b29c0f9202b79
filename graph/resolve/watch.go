package resolve

import (
	"context"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/streamgauge/streamgauge/view/read"
)

// watchWith starts a watch and makes each answer into what the field returns.
// An error ends the subscription: it is handed to the transport.
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
				AddSubscriptionError(ctx, u.Err)
				return
			}
			note(ctx, u.Result.Parts)
			select {
			case out <- of(u.Result):
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// AddSubscriptionError has the transport end the operation with an error, when
// it offers to; it is presented like any other.
func AddSubscriptionError(ctx context.Context, err error) {
	graphql.AddError(ctx, err)
}

// WatchOne is One as a subscription.
func WatchOne[T any](ctx context.Context, v read.Views, q *read.Query, o *Options, make Make[T]) (<-chan *T, error) {
	return watchWith(ctx, v, q, o, func(r *read.Result) *T { return oneOf(r, make) })
}

// WatchList is List as a subscription.
func WatchList[T any](ctx context.Context, v read.Views, q *read.Query, o *Options, make Make[T]) (<-chan []*T, error) {
	return watchWith(ctx, v, q, o, func(r *read.Result) []*T { return listOf(r, make) })
}

// WatchRows is Rows as a subscription; wrap makes the type with rows and
// freshness.
func WatchRows[T, W any](ctx context.Context, v read.Views, q *read.Query, o *Options, make Make[T], wrap func([]*T, *Freshness) *W) (<-chan *W, error) {
	return watchWith(ctx, v, q, o, func(r *read.Result) *W { return wrap(listOf(r, make), FreshnessOf(r.Parts)) })
}

// WatchPage is Pages as a subscription.
func WatchPage[T, W any](ctx context.Context, v read.Views, q *read.Query, o *Options, make Make[T], wrap func(*Page[T]) *W) (<-chan *W, error) {
	return watchWith(ctx, v, q, o, func(r *read.Result) *W { return wrap(pageOf(r, q, make)) })
}

// WatchCount is Count as a subscription.
func WatchCount(ctx context.Context, v read.Views, q *read.Query, o *Options) (<-chan *int64, error) {
	return watchWith(ctx, v, q, o, func(r *read.Result) *int64 { return &r.Count })
}
