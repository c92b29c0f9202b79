package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/read"
)

// ErrRebalancing says that the group is settling; Kafka describes no members
// meanwhile.
var ErrRebalancing = errors.New("the group is rebalancing")

// Seeds finds instances of an application by what they told its Kafka group, for
// those who are no member. While the group settles it fails with ErrRebalancing,
// and the caller tries again.
func Seeds(ctx context.Context, client *broker.Client, app string) ([]read.Peer, error) {
	g, err := client.DescribeGroup(ctx, app)
	switch {
	case errors.Is(err, broker.ErrGroupNotFound):
		return nil, noInstance(app)
	case err != nil:
		return nil, fmt.Errorf("find the instances of %s: %w", app, err)
	}
	return seedsOf(app, g)
}

func noInstance(app string) error {
	return fmt.Errorf("no instance of %s is in Kafka's group of that name: start one with run, or name instances in gateway.seeds", app)
}

// seedsOf reads what the members told. One that is not understood is left out;
// the error is that of the last when none is.
func seedsOf(app string, g broker.GroupDescription) ([]read.Peer, error) {
	if len(g.Members) == 0 {
		return nil, noInstance(app)
	}
	var peers []read.Peer
	var failed error
	for _, m := range g.Members {
		if len(m.Metadata) == 0 {
			failed = ErrRebalancing
			continue
		}
		s, err := broker.ParseSubscription(m.Metadata)
		if err != nil {
			failed = err
			continue
		}
		d, err := decodeMember(s.UserData)
		if err != nil {
			failed = err
			continue
		}
		peers = append(peers, read.Peer{ID: d.Instance, Addr: d.Addr, HTTP: d.HTTP, Rack: d.Rack})
	}
	if len(peers) == 0 {
		return nil, fmt.Errorf("find the instances of %s: %w", app, failed)
	}
	return peers, nil
}
