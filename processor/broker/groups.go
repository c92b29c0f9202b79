package broker

import (
	"context"
	"errors"
	"fmt"
)

// GroupDescription is a group as its coordinator sees it.
type GroupDescription struct {
	State    string // Empty, PreparingRebalance, CompletingRebalance, Stable, Dead
	Protocol string // the assignor's name
	Members  []DescribedMember

	operations int32 // that ACLs allow, a bit each, where asked for
}

// DescribedMember is a member of a described group. Metadata and Assignment are
// for ParseSubscription and ParseAssignment; both are empty in a rebalance.
type DescribedMember struct {
	ID, InstanceID, ClientID, Host string
	Metadata, Assignment           []byte
}

// DescribeGroup asks the coordinator. A group nobody ever joined is "Dead" or
// ErrGroupNotFound, as the broker's version has it.
func (c *Client) DescribeGroup(ctx context.Context, group string) (GroupDescription, error) {
	return c.describeGroup(ctx, group, false)
}

func (c *Client) describeGroup(ctx context.Context, group string, access bool) (GroupDescription, error) {
	e := encoder{flex: true}
	e.array(1)
	e.string(group)
	e.bool(access)
	e.end()
	key := coordinatorKey{groupCoordinator, group}
	var description GroupDescription
	err := c.retry(ctx, func(ctx context.Context) error {
		d, _, err := c.coordinate(ctx, key, request{api: apiDescribeGroups, body: e.b})
		if err != nil {
			return err
		}
		d.int32() // throttle
		if d.array() != 1 {
			return errors.Join(d.err, fmt.Errorf("%w: one group asked for, not one described", ErrCorrupt))
		}
		code := d.int16()
		description = decodeGroup(d)
		if d.err != nil {
			return d.err
		}
		return c.moved(key, codeError(code, ""))
	})
	if err != nil {
		return GroupDescription{}, fmt.Errorf("describing group %s: %w", group, err)
	}
	return description, nil
}

func decodeGroup(d *decoder) GroupDescription {
	d.string() // group
	g := GroupDescription{State: d.string()}
	d.string() // protocol type
	g.Protocol = d.string()
	for range d.items() {
		g.Members = append(g.Members, DescribedMember{
			ID: d.string(), InstanceID: d.string(), ClientID: d.string(), Host: d.string(),
			Metadata: d.bytes(), Assignment: d.bytes(),
		})
		d.end()
	}
	g.operations = d.int32()
	return g
}

// DeleteGroup deletes a group without members, its offsets included.
// ErrNonEmptyGroup where there are members, ErrGroupNotFound where there is no
// such group.
func (c *Client) DeleteGroup(ctx context.Context, group string) error {
	e := encoder{flex: true}
	e.array(1)
	e.string(group)
	e.end()
	key := coordinatorKey{groupCoordinator, group}
	err := c.retry(ctx, func(ctx context.Context) error {
		d, _, err := c.coordinate(ctx, key, request{api: apiDeleteGroups, body: e.b})
		if err != nil {
			return err
		}
		d.int32() // throttle
		for range d.items() {
			d.string()
			if err := codeError(d.int16(), ""); err != nil {
				return c.moved(key, err)
			}
			d.end()
		}
		return d.err
	})
	if err != nil {
		return fmt.Errorf("deleting group %s: %w", group, err)
	}
	return nil
}
