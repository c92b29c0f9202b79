package testgraph

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/streamgauge/streamgauge/auth"
	"github.com/streamgauge/streamgauge/view/read"
)

// Resolver answers the schema. Its counters tell a test what is running.
type Resolver struct {
	Started, Ended atomic.Int64 // subscriptions
	Minutes        atomic.Int64 // calls of Query.minutes

	// Changes are sent to every running forever subscription's channel; nil: it
	// only stays open.
	Changes func(ctx context.Context, id string) <-chan *Item
}

// Schema is the executable schema around r, with complexity functions for its
// lists.
func Schema(r *Resolver) graphql.ExecutableSchema {
	c := Config{Resolvers: &root{r}}
	c.Complexity.Query.List = func(child, first int) int { return 1 + first*child }
	c.Complexity.Item.Items = func(child, first int) int { return 1 + first*child }
	return NewExecutableSchema(c)
}

type (
	root         struct{ *Resolver }
	query        struct{ *Resolver }
	mutation     struct{ *Resolver }
	item         struct{ *Resolver }
	subscription struct{ *Resolver }
)

func (r *root) Query() QueryResolver               { return &query{r.Resolver} }
func (r *root) Mutation() MutationResolver         { return &mutation{r.Resolver} }
func (r *root) Item() ItemResolver                 { return &item{r.Resolver} }
func (r *root) Subscription() SubscriptionResolver { return &subscription{r.Resolver} }

func (*query) Hello(context.Context) (*string, error) { return new("world"), nil }

func (*query) Echo(_ context.Context, n int64) (*int64, error) { return &n, nil }

func (*query) Say(_ context.Context, text string) (*string, error) { return &text, nil }

func (*query) List(_ context.Context, first int) ([]*Item, error) { return items(first), nil }

func (*item) Items(_ context.Context, _ *Item, first int) ([]*Item, error) { return items(first), nil }

func (*item) Child(_ context.Context, it *Item) (*Item, error) {
	return &Item{N: it.N + 1, Text: it.Text}, nil
}

func items(n int) []*Item {
	list := make([]*Item, n)
	for i := range list {
		list[i] = &Item{N: int64(i), Text: fmt.Sprintf("item %d", i)}
	}
	return list
}

// Minutes has the windows of two pages: x at 10:00 and 10:01, y at 10:00.
func (q *query) Minutes(_ context.Context, page string, from, to *string) ([]*HitMinute, error) {
	q.Resolver.Minutes.Add(1)
	all := map[string][]*HitMinute{
		"x": {{S: 5, N: 2, Start: "2024-01-01T10:00:00Z"}, {S: 42, N: 3, Start: "2024-01-01T10:01:00Z"}},
		"y": {{S: 64, N: 1, Start: "2024-01-01T10:00:00Z"}},
	}
	var list []*HitMinute
	for _, m := range all[page] {
		if (from == nil || m.Start >= *from) && (to == nil || m.Start < *to) {
			list = append(list, m)
		}
	}
	return list, nil
}

// Fail fails in the way asked for.
func (*query) Fail(ctx context.Context, kind string) (*string, error) { return nil, failure(ctx, kind) }

func failure(ctx context.Context, kind string) error {
	secret := errors.New("secret: 10.0.0.7:9092")
	switch kind {
	case "panic":
		panic("secret panic")
	case "coded":
		return &gqlerror.Error{Message: "not today", Extensions: map[string]any{"code": "CLOSED"}}
	case "unauthenticated":
		return auth.ErrUnauthenticated
	case "deadline":
		<-ctx.Done()
		return ctx.Err()
	case "restoring":
		return &read.Error{
			Code: read.Restoring, Cause: secret,
			Progress: &read.Progress{Done: 10, Total: 40, ETA: 1500 * time.Millisecond},
		}
	}
	for c := read.Internal; c <= read.TooLarge; c++ {
		if c.String() == strings.ReplaceAll(kind, "_", " ") {
			return fmt.Errorf("reading: %w", &read.Error{Code: c, Message: "told", Cause: secret})
		}
	}
	return secret
}

// Needs checks a scope, as reads do.
func (*query) Needs(ctx context.Context, scope string) (*string, error) {
	if err := auth.Allow(ctx, scope); err != nil {
		return nil, err
	}
	return &auth.From(ctx).Subject, nil
}

// Slow answers when the context ends.
func (*query) Slow(ctx context.Context) (*string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (*query) Pick(_ context.Context, by Choice, in []*Filter) (*string, error) {
	return new(fmt.Sprintf("%s of %d", by, len(in))), nil
}

func (*mutation) Touch(context.Context) (*string, error) { return new("touched"), nil }

// stream sends n values and ends; a negative n never ends.
func stream[T any](ctx context.Context, r *Resolver, n int, value func(i int) T) <-chan T {
	out := make(chan T) // closed by the sender
	r.Started.Add(1)
	go func() {
		defer r.Ended.Add(1)
		defer close(out)
		for i := 0; i != n; i++ {
			select {
			case out <- value(i):
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func (s *subscription) Ticks(ctx context.Context, n int) (<-chan *int64, error) {
	return stream(ctx, s.Resolver, n, func(i int) *int64 { return new(int64(i)) }), nil
}

// Forever sends one item, then what Changes has, until the client leaves.
func (s *subscription) Forever(ctx context.Context, id string) (<-chan *Item, error) {
	if s.Changes != nil {
		return s.Changes(ctx, id), nil
	}
	out := make(chan *Item) // closed by the sender
	s.Started.Add(1)
	go func() {
		defer s.Ended.Add(1)
		defer close(out)
		select {
		case out <- &Item{Text: id}:
			<-ctx.Done()
		case <-ctx.Done():
		}
	}()
	return out, nil
}

// Blob never stops sending texts of the size.
func (s *subscription) Blob(ctx context.Context, size int) (<-chan *string, error) {
	text := strings.Repeat("x", size)
	return stream(ctx, s.Resolver, -1, func(int) *string { return &text }), nil
}

// Text sends 500 texts that an event stream could break at.
func (s *subscription) Text(ctx context.Context) (<-chan *string, error) {
	return stream(ctx, s.Resolver, 500, func(i int) *string {
		return new(fmt.Sprintf("a\nb\rc\r\nd\u2028e\n\nevent: fake %d", i))
	}), nil
}

func (s *subscription) Failing(ctx context.Context, kind string) (<-chan *int64, error) {
	return nil, failure(ctx, kind)
}
