package broker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// TargetBatch is a batch and where it goes.
type TargetBatch struct {
	TopicPartition
	Records *BatchBuilder
}

// TxnCommit is all that one transaction does. Several batches for one partition
// are written in the order given. Offsets are required: every transaction
// carries the group's offsets, fenced by member and generation.
type TxnCommit struct {
	Batches                     []TargetBatch
	Group, MemberID, InstanceID string
	Generation                  int32
	Offsets                     map[TopicPartition]OffsetCommit
}

// Transaction is a transactional id, of which there is one per stateful task.
// It is for one goroutine. It speaks the transaction protocol before KIP-890's
// second part: partitions and offsets are added explicitly, and the epoch changes
// at Init alone.
//
//	new ── Init ──► ready ── Commit ──► ready
//	                  ▲ │
//	                  │ └─ unanswered, fenced ─► in doubt
//	                  └────────── Init ────────────┘
type Transaction struct {
	client  *Client
	id      string
	timeout time.Duration
	key     coordinatorKey

	ready    bool // Init succeeded and nothing is in doubt since
	by       producer
	sequence map[TopicPartition]int32 // next, since Init
}

// NewTransaction returns the transaction of a transactional id. The broker
// aborts a transaction that stays open for longer than timeout.
func (c *Client) NewTransaction(id string, timeout time.Duration) *Transaction {
	return &Transaction{client: c, id: id, timeout: timeout, key: coordinatorKey{txnCoordinator, id}}
}

// Ready tells whether Commit may be called.
func (t *Transaction) Ready() bool { return t.ready }

// Init is the fence: it gets a new epoch, after which whoever used the id before
// cannot commit, and returns when that one's open transaction is aborted and all
// its markers are written. It retries, until ctx ends, while transactions settle
// and coordinators move or load; repeating it is harmless.
func (t *Transaction) Init(ctx context.Context) error {
	t.ready = false
	var by producer
	var err error
	for b := (backoff{}); ; {
		by, err = t.client.initProducer(ctx, t.id, int32(t.timeout.Milliseconds()))
		if err == nil || !Retriable(err) || b.wait(ctx) != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("initialising transactional id %s: %w", t.id, err)
	}
	t.by, t.sequence, t.ready = by, make(map[TopicPartition]int32), true
	return nil
}

// Commit runs one transaction: AddPartitionsToTxn, Produce, AddOffsetsToTxn,
// TxnOffsetCommit, EndTxn. next has, per partition written, the offset after the
// last of its batches, where the brokers told it.
//
// Requests that can be repeated safely are, within ctx. The errors:
//   - ErrInDoubt: a request ended unanswered, or the answer leaves open what
//     happened, or the epoch is fenced (47, 48, 49, 90 and their like). Init must
//     succeed before the next Commit, which until then returns ErrNeedsInit.
//   - ErrGeneration: the group refused member or generation (22, 25, 27, 82), and
//     the transaction is aborted, which the coordinator confirmed. The same
//     batches may be committed under another generation.
//   - any other: nothing was committed, the transaction is aborted, confirmed.
func (t *Transaction) Commit(ctx context.Context, commit TxnCommit) (next map[TopicPartition]int64, err error) {
	if !t.ready {
		return nil, fmt.Errorf("transactional id %s: %w", t.id, ErrNeedsInit)
	}
	if commit.Group == "" || len(commit.Offsets) == 0 {
		return nil, errors.New("broker: a transaction without a group's offsets")
	}
	ctx, cancel := t.client.bounded(ctx)
	defer cancel()
	run := &txnRun{Transaction: t, commit: commit}
	err = run.prepare()
	if err == nil {
		err = run.steps(ctx)
	}
	if err == nil {
		return run.next, nil
	}
	if !errors.Is(err, ErrInDoubt) && run.begun {
		if aborted := run.end(context.WithoutCancel(ctx), false); aborted != nil {
			err = fmt.Errorf("%w, after %w", aborted, err)
		}
	}
	if errors.Is(err, ErrInDoubt) {
		t.ready = false
	}
	return nil, fmt.Errorf("transactional id %s: %w", t.id, err)
}
