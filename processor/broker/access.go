package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Operation is something that Kafka's ACLs allow or do not; the value is the
// wire's (AclOperation in Kafka's source).
type Operation int8

// The operations on topics, groups and transactional ids that clients use.
const (
	OpRead            Operation = 3
	OpWrite           Operation = 4
	OpCreate          Operation = 5
	OpDelete          Operation = 6
	OpDescribe        Operation = 8
	OpDescribeConfigs Operation = 10
)

func (o Operation) String() string {
	switch o {
	case OpRead:
		return "Read"
	case OpWrite:
		return "Write"
	case OpCreate:
		return "Create"
	case OpDelete:
		return "Delete"
	case OpDescribe:
		return "Describe"
	case OpDescribeConfigs:
		return "DescribeConfigs"
	}
	return fmt.Sprintf("operation %d", int8(o))
}

// Grant is an operation on a resource.
type Grant struct {
	Operation Operation
	Resource  string // topic, group or transactional-id
	Name      string
}

// String is the grant in words: Read on topic flights.
func (g Grant) String() string { return fmt.Sprintf("%s on %s %s", g.Operation, g.Resource, g.Name) }

// AccessError is what Kafka's ACLs do not allow.
type AccessError struct {
	Principal string // as far as it is known
	Missing   []Grant
}

func (e *AccessError) Error() string {
	all := make([]string, len(e.Missing))
	for i, g := range e.Missing {
		all[i] = g.String()
	}
	first := e.Missing[0]
	return fmt.Sprintf("Kafka's ACLs do not allow %s: allow it, such as by kafka-acls.sh --add --allow-principal %s --operation %s --%s %s",
		strings.Join(all, ", "), e.Principal, first.Operation, first.Resource, first.Name)
}

// Needs are what a client is going to do. A topic that does not exist is left
// to those who create it.
type Needs struct {
	Topics         map[string][]Operation
	Group          string // to be joined, and committed to; "": none
	Described      string // a group to be described; "": none
	Transactionals []string
}

// CheckAccess asks Kafka whether its ACLs allow all that is needed; an
// *AccessError names everything that they do not. Nothing is changed.
func (c *Client) CheckAccess(ctx context.Context, n Needs) error {
	var missing []Grant
	for _, check := range []func(context.Context, Needs) ([]Grant, error){c.checkTopics, c.checkGroup, c.checkTransactionals} {
		more, err := check(ctx, n)
		if err != nil {
			return fmt.Errorf("ask Kafka what its ACLs allow: %w", err)
		}
		missing = append(missing, more...)
	}
	if len(missing) == 0 {
		return nil
	}
	principal := "USER"
	if m, ok := c.cfg.SASL.(*credentials); ok && m.user != "" {
		principal = "User:" + m.user
	}
	return &AccessError{Principal: principal, Missing: missing}
}

// checkTopics reads the operations that the metadata says are allowed (KIP-430).
func (c *Client) checkTopics(ctx context.Context, n Needs) (missing []Grant, err error) {
	names := make([]string, 0, len(n.Topics))
	for name := range n.Topics {
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, nil
	}
	slices.Sort(names)
	var cluster Cluster
	if err := c.retry(ctx, func(ctx context.Context) (err error) {
		cluster, err = c.describeTopics(ctx, names, true)
		return err
	}); err != nil {
		return nil, err
	}
	for _, name := range names {
		t := cluster.Topics[name]
		for _, op := range n.Topics[name] {
			if isCode(t.Err, errTopicAccess) || t.Err == nil && !allowed(t.operations, op) {
				missing = append(missing, Grant{op, "topic", name})
			}
		}
	}
	return missing, nil
}

// allowed reads a bit of a set of operations. A broker that does not tell sends
// the least number, or nothing: whoever may know of a resource may do something.
func allowed(set int32, op Operation) bool {
	return set == -1<<31 || set == 0 || set&(1<<op) != 0
}

func (c *Client) checkGroup(ctx context.Context, n Needs) ([]Grant, error) {
	var missing []Grant
	for _, need := range []Grant{{OpRead, "group", n.Group}, {OpDescribe, "group", n.Described}} {
		if need.Name == "" {
			continue
		}
		d, err := c.describeGroup(ctx, need.Name, true)
		switch {
		case isCode(err, errGroupAccess), err == nil && !allowed(d.operations, need.Operation):
			missing = append(missing, need)
		case errors.Is(err, ErrGroupNotFound): // nobody has joined yet, and who may not see it is told so
		case err != nil:
			return nil, err
		}
	}
	return missing, nil
}

// checkTransactionals asks to abort a transaction of a producer that does not
// exist: whoever may write under the id is told so (49), others that they may not.
func (c *Client) checkTransactionals(ctx context.Context, n Needs) (missing []Grant, err error) {
	for _, id := range n.Transactionals {
		e := encoder{flex: true}
		e.string(id)
		e.int64(-1) // producer
		e.int16(-1) // epoch
		e.bool(false)
		e.end()
		key := coordinatorKey{txnCoordinator, id}
		err := c.retry(ctx, func(ctx context.Context) error {
			d, _, err := c.coordinate(ctx, key, request{api: apiEndTxn, body: e.b})
			if err != nil {
				return err
			}
			d.int32() // throttle
			return c.moved(key, codeError(d.int16(), ""))
		})
		switch {
		case isCode(err, errTransactionalAccess):
			missing = append(missing, Grant{OpWrite, "transactional-id", id})
		case err != nil && !Retriable(err) && errors.As(err, new(Error)):
			// It may: the rest is about the producer, which does not exist.
		case err != nil:
			return nil, err
		}
	}
	return missing, nil
}
