package broker

import (
	"context"
	"fmt"
)

// OpenTransaction is a transaction that has begun on a partition and not ended.
type OpenTransaction struct {
	ProducerID int64
	Epoch      int32
	First      int64 // offset of its first record there
	Last       int64 // ms: when its producer last wrote there; −1: unknown
}

// OpenTransactions asks the leader of a partition for the transactions that hold
// its last stable offset back. (KIP-664)
func (c *Client) OpenTransactions(ctx context.Context, tp TopicPartition) ([]OpenTransaction, error) {
	var open []OpenTransaction
	err := c.perLeader(ctx, []TopicPartition{tp}, func(ctx context.Context, node int32, _ []TopicPartition) error {
		e := encoder{flex: true}
		e.array(1)
		e.string(tp.Topic)
		e.int32s([]int32{tp.Partition})
		e.end()
		e.end()
		d, _, err := c.send(ctx, request{api: apiDescribeProducers, node: node, body: e.b})
		if err != nil {
			return err
		}
		open, err = decodeOpenTransactions(d)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("describing the producers of %s: %w", tp, err)
	}
	return open, nil
}

func decodeOpenTransactions(d *decoder) (open []OpenTransaction, err error) {
	d.int32() // throttle
	for range d.items() {
		d.string()
		for range d.items() {
			d.int32()
			if code, why := d.int16(), d.string(); err == nil {
				err = codeError(code, why)
			}
			for range d.items() {
				t := OpenTransaction{ProducerID: d.int64(), Epoch: d.int32()}
				d.int32() // last sequence
				t.Last = d.int64()
				d.int32() // epoch of the coordinator
				if t.First = d.int64(); t.First >= 0 {
					open = append(open, t)
				}
				d.end()
			}
			d.end()
		}
		d.end()
	}
	if d.err != nil {
		return nil, d.err
	}
	return open, err
}
