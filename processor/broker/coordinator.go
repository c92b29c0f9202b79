package broker

import (
	"context"
	"fmt"
	"sync"
)

// coordinatorKind says what a coordinator coordinates; the value is the wire's.
type coordinatorKind int8

const (
	groupCoordinator coordinatorKind = 0
	txnCoordinator   coordinatorKind = 1
)

// coordinatorKey names a group or a transactional id.
type coordinatorKey struct {
	kind coordinatorKind
	name string
}

// coordinatorCache remembers which broker coordinates what, until an answer or
// a broken connection says otherwise.
type coordinatorCache struct {
	mu    sync.Mutex // guards nodes
	nodes map[coordinatorKey]int32
}

func (cc *coordinatorCache) load(key coordinatorKey) (int32, bool) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	node, ok := cc.nodes[key]
	return node, ok
}

func (cc *coordinatorCache) store(key coordinatorKey, node int32) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.nodes == nil {
		cc.nodes = make(map[coordinatorKey]int32)
	}
	cc.nodes[key] = node
}

func (cc *coordinatorCache) forget(key coordinatorKey) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	delete(cc.nodes, key)
}

// coordinator finds the broker, asking once where it is not known.
func (c *Client) coordinator(ctx context.Context, key coordinatorKey) (int32, error) {
	if node, ok := c.coordinators.load(key); ok {
		return node, nil
	}
	e := encoder{flex: true}
	e.string(key.name)
	e.int8(int8(key.kind))
	e.end()
	d, _, err := c.send(ctx, request{api: apiFindCoordinator, node: anyNode, body: e.b})
	if err != nil {
		return 0, fmt.Errorf("finding the coordinator of %s: %w", key.name, err)
	}
	d.int32() // throttle
	code, message, node := d.int16(), d.string(), d.int32()
	if d.err != nil {
		return 0, d.err
	}
	if err := codeError(code, message); err != nil {
		return 0, fmt.Errorf("finding the coordinator of %s: %w", key.name, err)
	}
	c.coordinators.store(key, node)
	return node, nil
}

// coordinate sends r to the coordinator once. After a broken connection the
// coordinator is looked up anew next time; answers are for moved to judge.
func (c *Client) coordinate(ctx context.Context, key coordinatorKey, r request) (d *decoder, doubt bool, err error) {
	r.node, err = c.coordinator(ctx, key)
	if err != nil {
		return nil, false, err
	}
	d, doubt, err = c.send(ctx, r)
	if err != nil {
		c.coordinators.forget(key)
	}
	return d, doubt, err
}

// moved forgets the coordinator where err, the code of an answer, says that it
// is another one. It returns err.
func (c *Client) moved(key coordinatorKey, err error) error {
	if isCode(err, ErrCoordinatorNotReady, ErrNotCoordinator) {
		c.coordinators.forget(key)
	}
	return err
}
