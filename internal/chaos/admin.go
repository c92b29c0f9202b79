package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// admin asks the brokers about replicas and moves leaders.
type admin struct{ client kafka.Client }

func newAdmin(addrs []string) *admin {
	return &admin{kafka.Client{Addr: kafka.TCP(addrs...), Timeout: 10 * time.Second}}
}

// whole says what replica is missing, "": none.
func (a *admin) whole(ctx context.Context, brokers int) string {
	m, err := a.client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return "brokers: " + err.Error()
	}
	if len(m.Brokers) < brokers {
		return fmt.Sprintf("%d of %d brokers", len(m.Brokers), brokers)
	}
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			if len(p.Isr) < len(p.Replicas) {
				return fmt.Sprintf("%s-%d: %d of %d replicas in sync", t.Name, p.ID, len(p.Isr), len(p.Replicas))
			}
		}
	}
	return ""
}

// moveLeaders gives every partition of some topics another leader: its replicas
// in another order, the first of them elected.
func (a *admin) moveLeaders(ctx context.Context, rng *rand.Rand, of func(topic string) bool) (int, error) {
	m, err := a.client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return 0, fmt.Errorf("read the leaders: %w", err)
	}
	moved := 0
	var errs []error
	for _, t := range m.Topics {
		if !of(t.Name) {
			continue
		}
		var assign []kafka.AlterPartitionReassignmentsRequestAssignment
		var ids []int
		for _, p := range t.Partitions {
			if len(p.Replicas) < 2 {
				continue
			}
			order := []int{}
			for _, b := range p.Replicas {
				order = append(order, b.ID)
			}
			turn := 1 + rng.IntN(len(order)-1)
			order = append(order[turn:], order[:turn]...)
			assign = append(assign, kafka.AlterPartitionReassignmentsRequestAssignment{Topic: t.Name, PartitionID: p.ID, BrokerIDs: order})
			ids = append(ids, p.ID)
		}
		if len(ids) == 0 {
			continue
		}
		errs = append(errs, a.elect(ctx, m.Controller, t.Name, assign, ids))
		moved += len(ids)
	}
	return moved, errors.Join(errs...)
}

func (a *admin) elect(ctx context.Context, controller kafka.Broker, topic string, assign []kafka.AlterPartitionReassignmentsRequestAssignment, ids []int) error {
	addr := kafka.TCP(fmt.Sprintf("%s:%d", controller.Host, controller.Port))
	r, err := a.client.AlterPartitionReassignments(ctx, &kafka.AlterPartitionReassignmentsRequest{Addr: addr, Assignments: assign, Timeout: 5 * time.Second})
	if err == nil {
		err = r.Error
	}
	if err != nil {
		return fmt.Errorf("order the replicas of %s: %w", topic, err)
	}
	e, err := a.client.ElectLeaders(ctx, &kafka.ElectLeadersRequest{Addr: addr, Topic: topic, Partitions: ids, Timeout: 5 * time.Second})
	if err == nil {
		err = e.Error
	}
	if err != nil && !errors.Is(err, kafka.ElectionNotNeeded) {
		return fmt.Errorf("elect the leaders of %s: %w", topic, err)
	}
	return nil
}

// coordinating says whether a topic's leaders are coordinators.
func coordinating(topic string) bool {
	return topic == "__consumer_offsets" || topic == "__transaction_state"
}

func data(topic string) bool { return !strings.HasPrefix(topic, "__") }
