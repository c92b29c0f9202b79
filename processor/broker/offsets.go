package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// OffsetAt says which offset of a partition is asked for.
type OffsetAt int8

// The offsets that can be asked for.
const (
	Earliest   OffsetAt = iota // log start
	Latest                     // high watermark: the end for a read-uncommitted reader
	LastStable                 // last stable offset: the end for a read-committed reader
)

// Offsets asks the leaders, one request each. All offsets are next-to-read.
// Leaders that move are followed within ctx; a topic that does not exist is
// ErrUnknownTopic after about two seconds.
func (c *Client) Offsets(ctx context.Context, tps []TopicPartition, at OffsetAt) (map[TopicPartition]int64, error) {
	var mu sync.Mutex // guards offsets: leaders answer at the same time
	offsets := make(map[TopicPartition]int64, len(tps))
	err := c.perLeader(ctx, tps, func(ctx context.Context, node int32, part []TopicPartition) error {
		return c.listOffsets(ctx, node, part, at, func(tp TopicPartition, offset int64) {
			mu.Lock()
			defer mu.Unlock()
			offsets[tp] = offset
		})
	})
	if err != nil {
		return nil, fmt.Errorf("listing offsets: %w", err)
	}
	return offsets, nil
}

func (c *Client) listOffsets(ctx context.Context, node int32, tps []TopicPartition, at OffsetAt, found func(TopicPartition, int64)) error {
	isolation, timestamp := ReadUncommitted, int64(-1)
	switch at {
	case Earliest:
		timestamp = -2
	case LastStable:
		isolation = ReadCommitted
	}
	e := encoder{flex: true}
	e.int32(-1) // not a replica
	e.int8(int8(isolation))
	groups := byTopic(tps)
	e.array(len(groups))
	for _, g := range groups {
		e.string(g.topic)
		e.array(len(g.partitions))
		for _, p := range g.partitions {
			e.int32(p)
			e.int32(-1) // whatever the leader's epoch
			e.int64(timestamp)
			e.end()
		}
		e.end()
	}
	e.end()
	d, _, err := c.send(ctx, request{api: apiListOffsets, node: node, body: e.b})
	if err != nil {
		return err
	}
	var errs []error
	d.int32() // throttle
	for range d.items() {
		topic := d.string()
		for range d.items() {
			tp, code := TopicPartition{topic, d.int32()}, d.int16()
			d.int64() // timestamp
			offset := d.int64()
			d.int32() // leader epoch
			d.end()
			if code != 0 {
				errs = append(errs, fmt.Errorf("%v: %w", tp, Error(code)))
				continue
			}
			found(tp, offset)
		}
		d.end()
	}
	return errors.Join(append(errs, d.err)...)
}

// Committed is what a group committed for a partition.
type Committed struct {
	Offset      int64 // next to read; -1: nothing committed
	LeaderEpoch int32 // -1: not given
	Metadata    string
}

// CommittedOffsets reads a group's offsets, with an entry for every partition
// asked for. It waits, until ctx ends, for transactions that hold offsets of
// the group to end (UNSTABLE_OFFSET_COMMIT): what it returns is never stale.
func (c *Client) CommittedOffsets(ctx context.Context, group string, tps []TopicPartition) (map[TopicPartition]Committed, error) {
	committed := make(map[TopicPartition]Committed, len(tps))
	err := c.retry(ctx, func(ctx context.Context) error {
		for _, tp := range tps {
			committed[tp] = Committed{Offset: -1, LeaderEpoch: -1}
		}
		return c.fetchOffsets(ctx, group, tps, committed)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the offsets of group %s: %w", group, err)
	}
	return committed, nil
}

func (c *Client) fetchOffsets(ctx context.Context, group string, tps []TopicPartition, into map[TopicPartition]Committed) error {
	e := encoder{flex: true}
	e.string(group)
	groups := byTopic(tps)
	e.array(len(groups))
	for _, g := range groups {
		e.string(g.topic)
		e.int32s(g.partitions)
		e.end()
	}
	e.bool(true) // stable offsets alone
	e.end()
	key := coordinatorKey{groupCoordinator, group}
	d, _, err := c.coordinate(ctx, key, request{api: apiOffsetFetch, body: e.b})
	if err != nil {
		return err
	}
	var errs []error
	d.int32() // throttle
	for range d.items() {
		topic := d.string()
		for range d.items() {
			tp := TopicPartition{topic, d.int32()}
			into[tp] = Committed{Offset: d.int64(), LeaderEpoch: d.int32(), Metadata: d.string()}
			if code := d.int16(); code != 0 {
				errs = append(errs, fmt.Errorf("%v: %w", tp, Error(code)))
			}
			d.end()
		}
		d.end()
	}
	errs = append(errs, c.moved(key, codeError(d.int16(), "")), d.err)
	return errors.Join(errs...)
}

// OffsetCommit is an offset to commit: the next one to read.
type OffsetCommit struct {
	Offset   int64
	Metadata string
}

// GroupCommit is a commit outside a transaction. Member and generation fence
// it: a member that is no longer in the generation gets ErrIllegalGeneration,
// ErrUnknownMember or ErrRebalanceInProgress. With no member and generation -1
// it is accepted only by a group without members.
type GroupCommit struct {
	Group, MemberID, InstanceID string
	Generation                  int32
	Offsets                     map[TopicPartition]OffsetCommit
}

// CommitOffsets commits; coordinators that move or load are followed within
// ctx, which repeats the same commit.
func (c *Client) CommitOffsets(ctx context.Context, commit GroupCommit) error {
	e := encoder{flex: true}
	e.string(commit.Group)
	e.int32(commit.Generation)
	e.string(commit.MemberID)
	e.nullable(commit.InstanceID)
	encodeOffsets(&e, commit.Offsets)
	e.end()
	key := coordinatorKey{groupCoordinator, commit.Group}
	err := c.retry(ctx, func(ctx context.Context) error {
		d, _, err := c.coordinate(ctx, key, request{api: apiOffsetCommit, body: e.b})
		if err != nil {
			return err
		}
		d.int32() // throttle
		return c.moved(key, decodePartitionCodes(d))
	})
	if err != nil {
		return fmt.Errorf("committing offsets of group %s: %w", commit.Group, err)
	}
	return nil
}

// encodeOffsets writes the topics of OffsetCommit and TxnOffsetCommit alike.
func encodeOffsets(e *encoder, offsets map[TopicPartition]OffsetCommit) {
	groups := byTopic(sortedPartitions(offsets))
	e.array(len(groups))
	for _, g := range groups {
		e.string(g.topic)
		e.array(len(g.partitions))
		for _, p := range g.partitions {
			o := offsets[TopicPartition{g.topic, p}]
			e.int32(p)
			e.int64(o.Offset)
			e.int32(-1) // no leader epoch
			e.string(o.Metadata)
			e.end()
		}
		e.end()
	}
}

// decodePartitionCodes reads an array of topics with an array of (partition,
// code) each, which ends several answers. It returns the error that decides: one
// that is not retriable before one that is, and before both not
// OPERATION_NOT_ATTEMPTED, which only says that another partition failed.
func decodePartitionCodes(d *decoder) error {
	const notAttempted Error = 55
	var decides error
	for range d.items() {
		topic := d.string()
		for range d.items() {
			tp, code := TopicPartition{topic, d.int32()}, d.int16()
			d.end()
			if code == 0 {
				continue
			}
			err := fmt.Errorf("%v: %w", tp, Error(code))
			if decides == nil || isCode(decides, notAttempted) ||
				Retriable(decides) && !Retriable(err) && !isCode(err, notAttempted) {
				decides = err
			}
		}
		d.end()
	}
	d.end()
	if d.err != nil {
		return d.err
	}
	return decides
}
