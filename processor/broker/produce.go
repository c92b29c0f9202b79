package broker

import (
	"context"
	"fmt"
)

// encoded is a batch in its wire form, to be stamped with who sends it.
type encoded struct {
	tp    TopicPartition
	bytes []byte
	n     int32 // records
}

// produced is the answer for one batch.
type produced struct {
	base int64 // offset of its first record; -1 where the broker does not say
	err  error
}

// encode renders a builder with one of the client's compressors.
func (c *Client) encode(tp TopicPartition, b *BatchBuilder) (encoded, error) {
	comp, ok := c.compressors.Get().(*compressor)
	if !ok {
		comp = new(compressor)
	}
	defer c.compressors.Put(comp)
	p, err := b.encode(nil, comp)
	if err != nil {
		return encoded{}, fmt.Errorf("%v: %w", tp, err)
	}
	return encoded{tp: tp, bytes: p, n: b.n}, nil
}

// produce sends stamped batches, one per partition, to the leader of all of
// them, once, and waits for all in-sync replicas. Every batch has an entry in
// the results of an answer.
func (c *Client) produce(ctx context.Context, node int32, txnID string, batches []encoded) (results map[TopicPartition]produced, doubt bool, err error) {
	tps := make([]TopicPartition, len(batches))
	of := make(map[TopicPartition]encoded, len(batches))
	size := 0
	for i, b := range batches {
		tps[i], of[b.tp] = b.tp, b
		size += len(b.bytes) + 64
	}
	e := encoder{b: make([]byte, 0, size)}
	e.nullable(txnID)
	e.int16(-1) // all replicas
	e.int32(c.timeoutMillis())
	groups := byTopic(tps)
	e.array(len(groups))
	for _, g := range groups {
		e.string(g.topic)
		e.array(len(g.partitions))
		for _, p := range g.partitions {
			e.int32(p)
			e.bytes(of[TopicPartition{g.topic, p}].bytes)
		}
	}
	d, doubt, err := c.send(ctx, request{api: apiProduce, node: node, body: e.b})
	if err != nil {
		return nil, doubt, err
	}
	results = decodeProduce(d)
	if d.err != nil {
		return nil, true, fmt.Errorf("produce: %w", d.err)
	}
	for _, tp := range tps {
		if _, ok := results[tp]; !ok {
			return nil, true, fmt.Errorf("%w: the answer to a produce request leaves out %v", ErrCorrupt, tp)
		}
	}
	return results, false, nil
}

func decodeProduce(d *decoder) map[TopicPartition]produced {
	results := make(map[TopicPartition]produced)
	for range d.items() {
		topic := d.string()
		for range d.items() {
			tp, code := TopicPartition{topic, d.int32()}, d.int16()
			base := d.int64()
			d.int64() // append time
			d.int64() // log start
			var bad string
			for range d.items() {
				d.int32() // index in the batch
				if m := d.string(); bad == "" {
					bad = m
				}
			}
			message := d.string()
			if message == "" {
				message = bad
			}
			results[tp] = produced{base: base, err: codeError(code, message)}
		}
	}
	d.int32() // throttle
	return results
}

// initProducer asks for a producer id: with a transactional id from its
// coordinator, which fences and aborts what used the id before, otherwise from
// any broker. It asks once.
func (c *Client) initProducer(ctx context.Context, txnID string, timeoutMillis int32) (producer, error) {
	e := encoder{flex: true}
	e.nullable(txnID)
	e.int32(timeoutMillis)
	e.int64(-1)
	e.int16(-1)
	e.end()
	r := request{api: apiInitProducerID, node: anyNode, body: e.b}
	key := coordinatorKey{txnCoordinator, txnID}
	var d *decoder
	var err error
	if txnID == "" {
		d, _, err = c.send(ctx, r)
	} else {
		d, _, err = c.coordinate(ctx, key, r)
	}
	if err != nil {
		return producer{}, err
	}
	d.int32() // throttle
	code := d.int16()
	by := producer{id: d.int64(), epoch: d.int16()}
	if d.err != nil {
		return producer{}, d.err
	}
	return by, c.moved(key, codeError(code, ""))
}
