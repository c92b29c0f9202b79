package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// txnRun is one transaction on its way.
type txnRun struct {
	*Transaction
	commit TxnCommit
	rounds [][]encoded // of one batch per partition each
	begun  bool        // the coordinator opened it
	blurry bool        // a batch was answered with a code that leaves open whether it was written
	next   map[TopicPartition]int64
}

// prepare encodes the batches, before anything is sent.
func (r *txnRun) prepare() error {
	nth := make(map[TopicPartition]int)
	for _, b := range r.commit.Batches {
		e, err := r.client.encode(b.TopicPartition, b.Records)
		if err != nil {
			return err
		}
		round := nth[b.TopicPartition]
		nth[b.TopicPartition]++
		if round == len(r.rounds) {
			r.rounds = append(r.rounds, nil)
		}
		r.rounds[round] = append(r.rounds[round], e)
	}
	r.next = make(map[TopicPartition]int64, len(nth))
	return nil
}

func (r *txnRun) steps(ctx context.Context) error {
	if len(r.rounds) > 0 {
		if err := r.addPartitions(ctx); err != nil {
			return fmt.Errorf("adding partitions: %w", err)
		}
	}
	for _, batches := range r.rounds {
		if err := r.write(ctx, batches); err != nil {
			return fmt.Errorf("producing: %w", err)
		}
	}
	if err := r.addOffsets(ctx); err != nil {
		return fmt.Errorf("adding offsets: %w", err)
	}
	if err := r.commitOffsets(ctx); err != nil {
		return fmt.Errorf("committing offsets: %w", err)
	}
	return r.end(ctx, true)
}

// judge sorts an error of one attempt of a request. again is true when the same
// request may be sent once more.
func judge(doubt bool, err error) (again bool, _ error) {
	switch {
	case err == nil:
		return false, nil
	case doubt, isCode(err, ErrInvalidProducerEpoch, ErrInvalidTxnState, ErrInvalidProducerID, ErrProducerFenced,
		ErrOutOfOrderSequence, ErrDuplicateSequence, ErrUnknownProducerID, errCoordinatorFenced):
		return false, fmt.Errorf("%w: %w", ErrInDoubt, err)
	case isCode(err, ErrIllegalGeneration, ErrUnknownMember, ErrRebalanceInProgress, ErrFencedInstance):
		return false, fmt.Errorf("%w: %w", ErrGeneration, err)
	}
	return Retriable(err), err
}

// errCoordinatorFenced: the coordinator that answered has been replaced.
const errCoordinatorFenced Error = 52

// ask sends a request of the transaction to a coordinator until it is answered
// for good. read returns the error that the answer stands for.
func (r *txnRun) ask(ctx context.Context, key coordinatorKey, q request, read func(*decoder) error) error {
	for b := (backoff{}); ; {
		d, doubt, err := r.client.coordinate(ctx, key, q)
		if err == nil {
			d.int32() // throttle
			err = r.client.moved(key, read(d))
			doubt = d.err != nil
		}
		again, err := judge(doubt, err)
		if !again {
			return err
		}
		if b.wait(ctx) != nil {
			return err
		}
	}
}

// head starts the body that all of a transaction's requests have.
func (r *txnRun) head() encoder {
	e := encoder{flex: true}
	e.string(r.id)
	e.int64(r.by.id)
	e.int16(r.by.epoch)
	return e
}

func (r *txnRun) addPartitions(ctx context.Context) error {
	e := r.head()
	tps := make([]TopicPartition, len(r.rounds[0]))
	for i, b := range r.rounds[0] {
		tps[i] = b.tp
	}
	groups := byTopic(tps)
	e.array(len(groups))
	for _, g := range groups {
		e.string(g.topic)
		e.int32s(g.partitions)
		e.end()
	}
	e.end()
	err := r.ask(ctx, r.key, request{api: apiAddPartitions, body: e.b}, decodePartitionCodes)
	r.begun = r.begun || err == nil
	return err
}

func (r *txnRun) addOffsets(ctx context.Context) error {
	e := r.head()
	e.string(r.commit.Group)
	e.end()
	err := r.ask(ctx, r.key, request{api: apiAddOffsets, body: e.b}, decodeCode)
	r.begun = r.begun || err == nil
	return err
}

func decodeCode(d *decoder) error {
	code := d.int16()
	if d.err != nil {
		return d.err
	}
	return codeError(code, "")
}

func (r *txnRun) commitOffsets(ctx context.Context) error {
	c := r.commit
	e := encoder{flex: true}
	e.string(r.id)
	e.string(c.Group)
	e.int64(r.by.id)
	e.int16(r.by.epoch)
	e.int32(c.Generation)
	e.string(c.MemberID)
	e.nullable(c.InstanceID)
	encodeOffsets(&e, c.Offsets)
	e.end()
	key := coordinatorKey{groupCoordinator, c.Group}
	return r.ask(ctx, key, request{api: apiTxnOffsetCommit, body: e.b}, decodePartitionCodes)
}

// end commits or aborts. An answer with a code other than 0 and 51, which is a
// plain refusal, leaves open what a coordinator that moves or fails meanwhile has
// logged: in doubt. So does an abort that cannot be confirmed; a commit that was
// never sent is only an error.
func (r *txnRun) end(ctx context.Context, commit bool) error {
	what := "aborting"
	if commit {
		what = "committing"
	}
	e := r.head()
	e.bool(commit)
	e.end()
	ctx, cancel := context.WithTimeout(ctx, 2*r.client.cfg.RequestTimeout)
	defer cancel()
	for b := (backoff{}); ; {
		d, doubt, err := r.client.coordinate(ctx, r.key, request{api: apiEndTxn, body: e.b})
		answered := err == nil
		if answered {
			d.int32() // throttle
			err = r.client.moved(r.key, decodeCode(d))
		}
		if err == nil {
			return nil
		}
		again := answered && isCode(err, ErrConcurrentTxns) || !answered && !doubt && Retriable(err)
		if again && b.wait(ctx) == nil {
			continue
		}
		if commit && !answered && !doubt {
			return fmt.Errorf("%s: %w", what, err)
		}
		return fmt.Errorf("%w: %s: %w", ErrInDoubt, what, err)
	}
}

// write produces one batch per partition, all leaders at once, and those that
// were refused for now again with the same sequence. It advances the sequences
// of what was acknowledged.
func (r *txnRun) write(ctx context.Context, batches []encoded) error {
	for _, b := range batches {
		stamp(b.bytes, r.by, r.sequence[b.tp], true)
	}
	for b := (backoff{}); ; {
		left, err := r.writeOnce(ctx, batches)
		if err == nil {
			return nil
		}
		if !Retriable(err) || errors.Is(err, ErrInDoubt) || b.wait(ctx) != nil {
			if r.blurry && !errors.Is(err, ErrInDoubt) {
				err = fmt.Errorf("%w: %w", ErrInDoubt, err)
			}
			return err
		}
		batches = left
	}
}

// refused tells whether a code means for certain that the batch is not in the
// log. Others leave that open, and with it the partition's next sequence: a
// batch sent with the number of one that was written would be taken for a
// repetition of it and dropped.
func refused(err error) bool {
	return isCode(err, ErrUnknownTopic, ErrLeaderNotAvailable, ErrNotLeader, ErrMessageTooLarge, ErrConcurrentTxns,
		errListTooLarge, errNotEnoughReplicas, errTopicUnauthorized, errTxnUnauthorized, errInvalidTimestamp, errInvalidRecord)
}

// Codes that matter to refused alone.
const (
	errListTooLarge      Error = 18
	errNotEnoughReplicas Error = 19
	errTopicUnauthorized Error = 29
	errInvalidTimestamp  Error = 32
	errTxnUnauthorized   Error = 53
	errInvalidRecord     Error = 87
)

// writeOnce returns the batches to be sent again and the last error of those, or
// an error that ends the transaction.
func (r *txnRun) writeOnce(ctx context.Context, batches []encoded) (left []encoded, err error) {
	answers, err := r.produceAll(ctx, batches)
	if err != nil {
		return batches, err
	}
	var retry, fatal error
	for a := range answers {
		for _, b := range a.sent {
			err := a.err
			if err == nil {
				err = a.results[b.tp].err
				r.blurry = r.blurry || err != nil && !refused(err)
			}
			again, err := judge(a.doubt, err)
			switch {
			case err == nil:
				r.written(b, a.results[b.tp].base)
			case again:
				left, retry = append(left, b), err
				r.client.leaders.forget(b.tp.Topic)
			case fatal == nil || errors.Is(err, ErrInDoubt):
				fatal = fmt.Errorf("%v: %w", b.tp, err)
			}
		}
	}
	if fatal != nil {
		return nil, fatal
	}
	return left, retry
}

// leaderAnswer is what one leader made of the batches sent to it.
type leaderAnswer struct {
	sent    []encoded
	results map[TopicPartition]produced
	doubt   bool
	err     error
}

// produceAll sends the batches to their leaders, all at once, and waits for the
// answers; the channel is closed and holds one per leader.
func (r *txnRun) produceAll(ctx context.Context, batches []encoded) (<-chan leaderAnswer, error) {
	of := make(map[TopicPartition]encoded, len(batches))
	tps := make([]TopicPartition, len(batches))
	for i, b := range batches {
		of[b.tp], tps[i] = b, b.tp
	}
	leaders, err := r.client.byLeader(ctx, tps)
	if err != nil {
		return nil, err
	}
	answers := make(chan leaderAnswer, len(leaders)) // one each, so that none blocks
	var wg sync.WaitGroup
	for node, part := range leaders {
		a := leaderAnswer{sent: make([]encoded, len(part))}
		for i, tp := range part {
			a.sent[i] = of[tp]
		}
		wg.Go(func() {
			a.results, a.doubt, a.err = r.client.produce(ctx, node, r.id, a.sent)
			answers <- a
		})
	}
	wg.Wait()
	close(answers)
	return answers, nil
}

// written notes an acknowledged batch.
func (r *txnRun) written(b encoded, base int64) {
	r.sequence[b.tp] = addSequence(r.sequence[b.tp], b.n)
	if base >= 0 {
		r.next[b.tp] = base + int64(b.n)
	} else {
		delete(r.next, b.tp)
	}
}
