package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// MemberConfig says how a member takes part. Group, Metadata, Balance, Assigned
// and Lost are required. The callbacks are called from Run's goroutine; while one
// runs no heartbeat is sent, so they must be quick.
type MemberConfig struct {
	Group             string
	InstanceID        string        // static membership where set
	SessionTimeout    time.Duration // default 10s
	HeartbeatInterval time.Duration // default 3s
	RebalanceTimeout  time.Duration // how long a rebalance waits for members to rejoin, default 30s

	// Metadata is asked before each join.
	Metadata func() Subscription
	// Balance is the assignor. It is asked on the leader alone, with all members,
	// itself included, sorted by ID. Members without an entry get nothing.
	Balance func(members []GroupMember) (map[string]Assignment, error)
	// Assigned takes each new assignment, an empty one too. Until it is called the
	// one before stays in force, rebalances notwithstanding.
	Assigned func(a Assignment, memberID string, generation int32)
	// Lost says that the assignment is no longer ours: ErrUnknownMember,
	// ErrFencedInstance or ErrSessionExpired. The member joins anew afterwards.
	Lost   func(reason error)
	Logger *slog.Logger
}

// MemberStatus is a snapshot of a membership.
type MemberStatus struct {
	MemberID   string
	Generation int32     // -1 while not in one
	LastGood   time.Time // when the last request that proved membership was sent
	Joined     bool      // an assignment is in force
}

// Member is one member of a consumer group (the classic protocol) under the
// assignor "streamgauge".
//
//	          ┌──────── rejoin: rebalance, Rejoin, generation gone ───────┐
//	          ▼                                                           │
//	idle ─► joining ─► syncing ─► joined (heartbeats) ────────────────────┤
//	          ▲                                                           │
//	          └──────── Lost: unknown member, fenced, session expired ────┘
//
// Rejoining keeps the assignment, and heartbeats go on meanwhile.
type Member struct {
	client *Client
	cfg    MemberConfig
	key    coordinatorKey
	rejoin chan struct{} // 1 so that a signal is never lost

	joining atomic.Bool

	mu     sync.Mutex // guards status
	status MemberStatus
}

// NewMember returns a member that joins when run.
func (c *Client) NewMember(cfg MemberConfig) *Member {
	if cfg.SessionTimeout <= 0 {
		cfg.SessionTimeout = 10 * time.Second
	}
	if cfg.HeartbeatInterval <= 0 {
		cfg.HeartbeatInterval = 3 * time.Second
	}
	if cfg.RebalanceTimeout <= 0 {
		cfg.RebalanceTimeout = 30 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = c.log
	}
	return &Member{
		client: c, cfg: cfg, key: coordinatorKey{groupCoordinator, cfg.Group},
		rejoin: make(chan struct{}, 1), status: MemberStatus{Generation: -1},
	}
}

// Rejoin makes the member join again, for instance because its metadata changed.
func (m *Member) Rejoin() { signal(m.rejoin) }

// Status may be called at any time from anywhere.
func (m *Member) Status() MemberStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status
}

// Run takes part in the group until ctx ends; a dynamic member then leaves it.
// It returns nil then, and earlier only with an error that joining again cannot
// cure, such as a group that speaks another protocol or a missing permission.
func (m *Member) Run(ctx context.Context) error {
	defer m.leave(ctx)
	for b := (backoff{}); ; {
		err := m.join(ctx)
		if err == nil {
			b = backoff{}
			err = m.stay(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		pause, fatal := m.fault(err)
		if fatal {
			m.lose(err)
			return fmt.Errorf("group %s: %w", m.cfg.Group, err)
		}
		m.expire()
		if pause && b.wait(ctx) != nil {
			return nil
		}
	}
}

// fault takes in why a round of joining or staying ended. pause asks to wait
// before the next one.
func (m *Member) fault(err error) (pause, fatal bool) {
	switch {
	case err == nil, isCode(err, ErrRebalanceInProgress):
		return false, false
	case isCode(err, ErrMemberIDRequired): // the id is noted, join with it
		return false, false
	case isCode(err, ErrIllegalGeneration):
		m.cfg.Logger.Info("group generation gone, joining again", "group", m.cfg.Group)
		return true, false
	case isCode(err, ErrUnknownMember):
		m.lose(err)
		m.update(func(s *MemberStatus) { s.MemberID = "" })
		return true, false
	case isCode(err, ErrFencedInstance):
		m.cfg.Logger.Error("another member took over this instance id", "group", m.cfg.Group, "instance", m.cfg.InstanceID)
		m.lose(err)
		m.update(func(s *MemberStatus) { s.MemberID = "" })
		return true, false
	case errors.Is(err, ErrSessionExpired):
		m.lose(err)
		return true, false
	case Retriable(err), errors.Is(err, errBalance), errors.Is(err, ErrCorrupt):
		level := slog.LevelWarn
		if Retriable(err) {
			level = slog.LevelDebug // it passes, as while a coordinator is elected
		}
		m.cfg.Logger.Log(context.Background(), level, "taking part in the group", "group", m.cfg.Group, "err", err)
		return true, false
	}
	return false, true
}

// update changes the status.
func (m *Member) update(change func(*MemberStatus)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.status)
}

// good notes a request that proved membership in a generation, by when it was
// sent: the broker's clock for the session started later. It says nothing of
// another generation than the present one.
func (m *Member) good(sent time.Time, generation int32) {
	m.update(func(s *MemberStatus) {
		if s.Generation == generation && sent.After(s.LastGood) {
			s.LastGood = sent
		}
	})
}

// lose ends an assignment that is in force.
func (m *Member) lose(reason error) {
	joined := false
	m.update(func(s *MemberStatus) {
		joined = s.Joined
		s.Joined, s.Generation = false, -1
	})
	if joined {
		m.cfg.Lost(reason)
	}
}

// expire loses the assignment where no heartbeat succeeded for a session.
func (m *Member) expire() bool {
	s := m.Status()
	if !s.Joined || time.Since(s.LastGood) < m.cfg.SessionTimeout {
		return false
	}
	m.lose(ErrSessionExpired)
	return true
}

// stay sends heartbeats until there is a reason to join again. nil is Rejoin.
func (m *Member) stay(ctx context.Context) error {
	interval := m.cfg.HeartbeatInterval
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.rejoin:
			return nil
		case <-timer.C:
		}
		_, err := m.beat(ctx)
		switch {
		case err == nil:
			timer.Reset(interval)
		case ctx.Err() != nil:
			return ctx.Err()
		case m.expired():
			return fmt.Errorf("%w: %w", ErrSessionExpired, err)
		case Retriable(err): // the coordinator moves or cannot be reached: soon again
			m.client.complaints.warn(m.cfg.Logger, "heartbeat", "group", m.cfg.Group, "err", err)
			timer.Reset(min(interval, m.cfg.SessionTimeout/20))
		default:
			return err
		}
	}
}

func (m *Member) expired() bool {
	s := m.Status()
	return time.Since(s.LastGood) >= m.cfg.SessionTimeout
}

// Heartbeat sends one now, beside Run's. Without an error the member was, when
// the broker answered, a member of the returned generation and that generation
// the group's. A rebalance that has begun is no error: until it ends the
// generation holds. While not joined the error is ErrUnknownMember.
func (m *Member) Heartbeat(ctx context.Context) (generation int32, err error) {
	generation, err = m.beat(ctx)
	if generation < 0 {
		return generation, err
	}
	// Joining is what is to be done about either; while it is being done, or was,
	// there is no need to ask for it again.
	ask := !m.joining.Load() && m.Status().Generation == generation
	if isCode(err, ErrRebalanceInProgress) {
		if ask {
			signal(m.rejoin)
		}
		return generation, nil
	}
	if ask && isCode(err, ErrIllegalGeneration, ErrUnknownMember, ErrFencedInstance) {
		signal(m.rejoin) // which meets the same error and deals with it
	}
	return generation, err
}

// beat sends one heartbeat. ErrRebalanceInProgress comes with proof of
// membership, which it notes.
func (m *Member) beat(ctx context.Context) (int32, error) {
	s := m.Status()
	if s.Generation < 0 {
		return -1, fmt.Errorf("heartbeat to group %s before joining: %w", m.cfg.Group, ErrUnknownMember)
	}
	e := encoder{flex: true}
	e.string(m.cfg.Group)
	e.int32(s.Generation)
	e.string(s.MemberID)
	e.nullable(m.cfg.InstanceID)
	e.end()
	sent := time.Now()
	timeout := min(m.client.cfg.RequestTimeout, max(m.cfg.HeartbeatInterval, m.cfg.SessionTimeout/3))
	d, _, err := m.client.coordinate(ctx, m.key, request{api: apiHeartbeat, body: e.b, timeout: timeout})
	if err != nil {
		return s.Generation, err
	}
	d.int32() // throttle
	err = m.client.moved(m.key, decodeCode(d))
	if err == nil || isCode(err, ErrRebalanceInProgress) {
		m.good(sent, s.Generation)
	}
	return s.Generation, err
}

// leave tells the group that a dynamic member goes, so that its tasks move at
// once. Who runs ended already: ctx is used for its values alone.
func (m *Member) leave(ctx context.Context) {
	s := m.Status()
	m.update(func(s *MemberStatus) { s.Joined, s.Generation = false, -1 })
	if s.MemberID == "" || m.cfg.InstanceID != "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(2*time.Second, m.client.cfg.RequestTimeout))
	defer cancel()
	e := encoder{flex: true}
	e.string(m.cfg.Group)
	e.array(1)
	e.string(s.MemberID)
	e.nullable("") // dynamic
	e.end()
	e.end()
	_, _, err := m.client.coordinate(ctx, m.key, request{api: apiLeaveGroup, body: e.b})
	if err != nil {
		m.cfg.Logger.Info("leaving the group", "group", m.cfg.Group, "err", err)
	}
}
