package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// errBalance: the assignor failed. The group is joined again, which gives it
// another try; members that wait are told by a rebalance.
var errBalance = errors.New("assigning")

// joined is the answer to a join.
type joined struct {
	generation int32
	leader     bool
	memberID   string
	members    []GroupMember // for the leader alone
}

// join goes through JoinGroup and SyncGroup and hands over the assignment. The
// one in force stays so meanwhile, and heartbeats keep it.
func (m *Member) join(ctx context.Context) error {
	select { // what asked for this join is answered by it
	case <-m.rejoin:
	default:
	}
	m.joining.Store(true)
	defer m.joining.Store(false)
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := m.keepAlive(ctx, cancel)
	defer stop()
	j, err := m.joinGroup(ctx)
	if err != nil {
		return m.joinError(outer, "joining", err)
	}
	var plan map[string]Assignment
	if j.leader {
		if plan, err = m.cfg.Balance(j.members); err != nil {
			return fmt.Errorf("%w: %w", errBalance, err)
		}
	}
	sent := time.Now()
	a, err := m.syncGroup(ctx, j, plan)
	if err != nil {
		return m.joinError(outer, "syncing", err)
	}
	stop()
	m.update(func(s *MemberStatus) {
		*s = MemberStatus{MemberID: j.memberID, Generation: j.generation, LastGood: sent, Joined: true}
	})
	m.cfg.Assigned(a, j.memberID, j.generation)
	return nil
}

// joinError is the error of a join: that the session expired where keepAlive
// ended it.
func (m *Member) joinError(ctx context.Context, what string, err error) error {
	if isContext(err) && ctx.Err() == nil {
		err = ErrSessionExpired
	}
	return fmt.Errorf("%s: %w", what, err)
}

// keepAlive sends heartbeats in the old generation while a join waits for other
// members, as long as there is an assignment to keep, and gives the join up when
// the session expires. stop may be called twice; it waits.
func (m *Member) keepAlive(ctx context.Context, giveUp context.CancelFunc) (stop func()) {
	if !m.Status().Joined {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for sleep(ctx, m.cfg.HeartbeatInterval) == nil {
			if _, err := m.beat(ctx); isCode(err, ErrIllegalGeneration, ErrUnknownMember, ErrFencedInstance) {
				return // the join itself will tell
			}
			if m.expired() {
				giveUp()
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

func (m *Member) joinGroup(ctx context.Context) (joined, error) {
	memberID := m.Status().MemberID
	e := encoder{flex: true}
	e.string(m.cfg.Group)
	e.int32(int32(m.cfg.SessionTimeout.Milliseconds()))
	e.int32(int32(m.cfg.RebalanceTimeout.Milliseconds()))
	e.string(memberID)
	e.nullable(m.cfg.InstanceID)
	e.string(protocolType)
	e.array(1)
	e.string(protocolName)
	e.bytes(encodeSubscription(m.cfg.Metadata()))
	e.end()
	e.end()
	// The broker holds the answer back until all have joined.
	r := request{api: apiJoinGroup, body: e.b, wait: m.cfg.RebalanceTimeout}
	d, _, err := m.client.coordinate(ctx, m.key, r)
	if err != nil {
		return joined{}, err
	}
	j, code, err := decodeJoin(d)
	if err != nil {
		return joined{}, err
	}
	if Error(code) == ErrMemberIDRequired {
		m.update(func(s *MemberStatus) { s.MemberID = j.memberID })
	}
	if err := m.client.moved(m.key, codeError(code, "")); err != nil {
		return joined{}, err
	}
	m.update(func(s *MemberStatus) { s.MemberID = j.memberID })
	return j, nil
}

func decodeJoin(d *decoder) (j joined, code int16, err error) {
	d.int32() // throttle
	code = d.int16()
	j.generation = d.int32()
	d.string() // protocol type
	d.string() // protocol
	leader := d.string()
	j.memberID = d.string()
	j.leader = leader == j.memberID
	for range d.items() {
		g := GroupMember{ID: d.string(), InstanceID: d.string()}
		metadata := d.bytes()
		d.end()
		if d.err != nil {
			break
		}
		if g.Subscription, err = ParseSubscription(metadata); err != nil {
			return joined{}, code, fmt.Errorf("member %s: %w", g.ID, err)
		}
		j.members = append(j.members, g)
	}
	slices.SortFunc(j.members, func(a, b GroupMember) int { return strings.Compare(a.ID, b.ID) })
	return j, code, d.err
}

func (m *Member) syncGroup(ctx context.Context, j joined, plan map[string]Assignment) (Assignment, error) {
	e := encoder{flex: true}
	e.string(m.cfg.Group)
	e.int32(j.generation)
	e.string(j.memberID)
	e.nullable(m.cfg.InstanceID)
	e.string(protocolType)
	e.string(protocolName)
	e.array(len(j.members))
	for _, g := range j.members {
		e.string(g.ID)
		e.bytes(encodeAssignment(plan[g.ID]))
		e.end()
	}
	e.end()
	// The broker holds the answer back until the leader has synced.
	r := request{api: apiSyncGroup, body: e.b, wait: m.cfg.RebalanceTimeout}
	d, _, err := m.client.coordinate(ctx, m.key, r)
	if err != nil {
		return Assignment{}, err
	}
	d.int32() // throttle
	code := d.int16()
	d.string() // protocol type
	d.string() // protocol
	data := d.bytes()
	if d.err != nil {
		return Assignment{}, d.err
	}
	// The code first: with an error there is no assignment to decode.
	if err := m.client.moved(m.key, codeError(code, "")); err != nil {
		return Assignment{}, err
	}
	return ParseAssignment(data)
}
