package resolve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
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
		defer func() {
			if v := recover(); v != nil {
				ended(ctx, fmt.Errorf("panic in a subscription: %v", v))
			}
		}()
		for u := range updates {
			if u.Err != nil {
				ended(ctx, u.Err)
				return
			}
			coming(ctx, u.Result.Parts)
			select {
			case out <- of(u.Result):
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// subscription is what a subscription's events share. Safe for concurrent use.
type subscription struct {
	mu    sync.Mutex // guards the following
	err   error      // why it ended: its channel cannot carry an error
	root  string     // response path of its field
	parts [][]read.Part
}

type subscriptionKey struct{}

// BeginSubscription prepares a context for one subscription; the function tells,
// when its channel has closed, the error that ended it, nil when none did.
func BeginSubscription(ctx context.Context) (context.Context, func() error) {
	s := &subscription{}
	return context.WithValue(ctx, subscriptionKey{}, s), func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.err
	}
}

func subscriptionOf(ctx context.Context) *subscription {
	s, _ := ctx.Value(subscriptionKey{}).(*subscription)
	return s
}

func ended(ctx context.Context, err error) {
	if s := subscriptionOf(ctx); s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = err
	}
}

// coming notes where the event about to be sent came from; left takes the notes
// out again in the order of the events.
func coming(ctx context.Context, parts []read.Part) {
	s := subscriptionOf(ctx)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.root = graphql.GetPath(ctx).String()
	s.parts = append(s.parts, parts)
}

func (s *subscription) left() (root string, parts []read.Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parts) == 0 {
		return "", nil
	}
	root, parts = s.root, s.parts[0]
	s.parts = s.parts[1:]
	return root, parts
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
