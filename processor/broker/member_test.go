package broker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// joiner is a member under test and what its callbacks were called with.
type joiner struct {
	*Member
	mu       sync.Mutex
	userData string
	owned    []int32
	assigned []string // "generation partitions userdata"
	lost     []error
	balanced []string // the user data of all members, per Balance
}

const inputPartitions = 4

func newJoiner(t testing.TB, c *Client, userData string, change func(*MemberConfig)) *joiner {
	j := &joiner{userData: userData}
	cfg := MemberConfig{
		Group: "g", SessionTimeout: time.Second, HeartbeatInterval: 20 * time.Millisecond, RebalanceTimeout: 2 * time.Second,
		Metadata: j.metadata, Balance: j.balance, Assigned: j.assign, Lost: j.lose, Logger: testLogger(t),
	}
	if change != nil {
		change(&cfg)
	}
	j.Member = c.NewMember(cfg)
	return j
}

func (j *joiner) metadata() Subscription {
	j.mu.Lock()
	defer j.mu.Unlock()
	return Subscription{Topics: []string{"in"}, UserData: []byte(j.userData), Owned: map[string][]int32{"in": j.owned}}
}

// balance deals the partitions round robin in the order of user data.
func (j *joiner) balance(members []GroupMember) (map[string]Assignment, error) {
	slices.SortFunc(members, func(a, b GroupMember) int { return strings.Compare(string(a.UserData), string(b.UserData)) })
	plan := make(map[string]Assignment)
	var seen []string
	for i, m := range members {
		seen = append(seen, fmt.Sprint(string(m.UserData), m.Owned["in"]))
		var own []int32
		for p := int32(i); p < inputPartitions; p += int32(len(members)) {
			own = append(own, p)
		}
		plan[m.ID] = Assignment{Partitions: map[string][]int32{"in": own}, UserData: []byte("for " + string(m.UserData))}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.balanced = append(j.balanced, strings.Join(seen, " "))
	return plan, nil
}

func (j *joiner) assign(a Assignment, memberID string, generation int32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.owned = a.Partitions["in"]
	j.assigned = append(j.assigned, fmt.Sprint(a.Partitions["in"], " ", string(a.UserData)))
}

func (j *joiner) lose(reason error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lost = append(j.lost, reason)
}

func (j *joiner) last() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.assigned) == 0 {
		return ""
	}
	return j.assigned[len(j.assigned)-1]
}

func (j *joiner) has(want string) func() bool { return func() bool { return j.last() == want } }

func (j *joiner) losses() []error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lost)
}

func TestGroupOfTwo(t *testing.T) {
	_, c := cluster(t)
	createTopic(t, c, "in", inputPartitions)
	a := newJoiner(t, c, "a", nil)
	background(t, a.Run)
	eventually(t, "all partitions", a.has("[0 1 2 3] for a"))

	b := newJoiner(t, client(t, c.cfg.Brokers...), "b", nil)
	stop := background(t, b.Run)
	eventually(t, "half of them", func() bool { return a.has("[0 2] for a")() && b.has("[1 3] for b")() })
	if a.Status().Generation != b.Status().Generation {
		t.Errorf("generations %d and %d", a.Status().Generation, b.Status().Generation)
	}

	d, err := c.DescribeGroup(within(t), "g")
	if err != nil {
		t.Fatal(err)
	}
	if d.State != "Stable" || d.Protocol != "streamgauge" || len(d.Members) != 2 {
		t.Errorf("described: %+v", d)
	}
	seen := map[string]string{}
	for _, m := range d.Members {
		s, err := ParseSubscription(m.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		as, err := ParseAssignment(m.Assignment)
		if err != nil {
			t.Fatal(err)
		}
		seen[string(s.UserData)] = fmt.Sprint(s.Topics, as.Partitions, string(as.UserData))
	}
	want := map[string]string{"a": "[in] map[in:[0 2]]for a", "b": "[in] map[in:[1 3]]for b"}
	if !maps.Equal(seen, want) {
		t.Errorf("described %v, want %v", seen, want)
	}

	b.mu.Lock()
	b.userData = "0"
	b.mu.Unlock()
	b.Rejoin() // with changed metadata: it sorts first now
	eventually(t, "the new order", func() bool { return b.has("[0 2] for 0")() && a.has("[1 3] for a")() })

	stop() // leaves
	eventually(t, "all partitions again", a.has("[0 1 2 3] for a"))
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.lost) != 0 {
		t.Errorf("lost %v", a.lost)
	}
	if got := a.balanced[len(a.balanced)-1]; got != "a[1 3]" {
		t.Errorf("balanced with %s, want what a owned", got)
	}
}

func TestHeartbeat(t *testing.T) {
	fake, c := cluster(t)
	createTopic(t, c, "in", inputPartitions)
	a := newJoiner(t, c, "a", nil)
	if _, err := a.Heartbeat(within(t)); !errors.Is(err, ErrUnknownMember) {
		t.Errorf("before joining: %v", err)
	}
	background(t, a.Run)
	eventually(t, "the assignment", a.has("[0 1 2 3] for a"))
	before := a.Status()
	generation, err := a.Heartbeat(within(t))
	if err != nil || generation != before.Generation || generation < 1 {
		t.Errorf("heartbeat in generation %d: %v", generation, err)
	}
	if after := a.Status(); !after.LastGood.After(before.LastGood) || !after.Joined {
		t.Errorf("status %+v, before %+v", after, before)
	}
	h := fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: "g", TopLevel: true, Err: kerr.RebalanceInProgress, Count: -1})
	if _, err := a.Heartbeat(within(t)); err != nil {
		t.Errorf("in a rebalance: %v, want none: the generation holds", err)
	}
	h.Remove()
	h = fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: "g", TopLevel: true, Err: kerr.IllegalGeneration, Count: -1})
	if _, err := a.Heartbeat(within(t)); !errors.Is(err, ErrIllegalGeneration) {
		t.Errorf("got %v, want ErrIllegalGeneration", err)
	}
	h.Remove()
}

// A commit in the generation passes, one of the generation before is refused.
func TestCommitInGeneration(t *testing.T) {
	_, c := cluster(t)
	txnTopics(t, c)
	a := newJoiner(t, c, "a", nil)
	background(t, a.Run)
	eventually(t, "the assignment", a.has("[0 1 2 3] for a"))
	x := initTxn(t, c, "app-t_0")
	s := a.Status()
	commit := commitOf(1, "a")
	commit.MemberID, commit.Generation = s.MemberID, s.Generation
	mustCommit(t, x, commit)
	a.mu.Lock()
	a.userData = "changed"
	a.mu.Unlock()
	a.Rejoin()
	eventually(t, "the next generation", func() bool { return a.Status().Generation > s.Generation })
	if _, err := x.Commit(within(t), commit); !errors.Is(err, ErrGeneration) {
		t.Errorf("got %v, want ErrGeneration", err)
	}
	commit.Generation = a.Status().Generation
	mustCommit(t, x, commit)
}

func TestUnknownMemberIsLostAndJoinsAnew(t *testing.T) {
	t.Parallel()
	fake, c := cluster(t)
	createTopic(t, c, "in", inputPartitions)
	a := newJoiner(t, c, "a", nil)
	background(t, a.Run)
	eventually(t, "the assignment", a.has("[0 1 2 3] for a"))
	first := a.Status().MemberID
	fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: "g", TopLevel: true, Err: kerr.UnknownMemberID})
	eventually(t, "another member id", func() bool { s := a.Status(); return s.Joined && s.MemberID != first })
	if got := a.losses(); len(got) != 1 || !errors.Is(got[0], ErrUnknownMember) {
		t.Errorf("lost %v, want ErrUnknownMember once", got)
	}
}

func TestSessionExpires(t *testing.T) {
	t.Parallel()
	_, c, net := lossyCluster(t)
	createTopic(t, c, "in", inputPartitions)
	a := newJoiner(t, c, "a", func(cfg *MemberConfig) { cfg.SessionTimeout = 300 * time.Millisecond })
	background(t, a.Run)
	eventually(t, "the assignment", a.has("[0 1 2 3] for a"))
	net.loseNext(protocol.Heartbeat, 1<<30)
	eventually(t, "the loss", func() bool { return len(a.losses()) > 0 })
	if got := a.losses()[0]; !errors.Is(got, ErrSessionExpired) {
		t.Errorf("lost %v, want ErrSessionExpired", got)
	}
	net.loseNext(protocol.Heartbeat, 0)
	eventually(t, "joining anew", func() bool {
		s := a.Status()
		return s.Joined && time.Since(s.LastGood) < 100*time.Millisecond
	})
}

func TestStaticMemberDoesNotLeave(t *testing.T) {
	_, c := cluster(t)
	createTopic(t, c, "in", inputPartitions)
	static := func(cfg *MemberConfig) { cfg.InstanceID = "i-1"; cfg.SessionTimeout = 5 * time.Second }
	a := newJoiner(t, c, "a", static)
	stop := background(t, a.Run)
	eventually(t, "the assignment", a.has("[0 1 2 3] for a"))
	stop()
	d, err := c.DescribeGroup(within(t), "g")
	if err != nil || len(d.Members) != 1 || d.Members[0].InstanceID != "i-1" {
		t.Fatalf("described %+v, %v", d, err)
	}
	again := newJoiner(t, c, "a", static)
	background(t, again.Run)
	eventually(t, "the same assignment", again.has("[0 1 2 3] for a"))
}

func TestCoordinatorMovesUnderAMember(t *testing.T) {
	fake, c := cluster(t)
	createTopic(t, c, "in", inputPartitions)
	a := newJoiner(t, c, "a", nil)
	background(t, a.Run)
	eventually(t, "the assignment", a.has("[0 1 2 3] for a"))
	for range 3 {
		fake.RehashCoordinators()
		since := time.Now()
		eventually(t, "a heartbeat", func() bool { return a.Status().LastGood.After(since) })
	}
}

func TestFatalGroupError(t *testing.T) {
	fake, c := cluster(t)
	fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Group: "g", TopLevel: true, Err: kerr.GroupAuthorizationFailed})
	err := newJoiner(t, c, "a", nil).Run(within(t))
	if !errors.Is(err, Error(30)) {
		t.Errorf("got %v, want GROUP_AUTHORIZATION_FAILED", err)
	}
}

func FuzzParseGroupData(f *testing.F) {
	f.Add(encodeSubscription(Subscription{Topics: []string{"a"}, UserData: []byte("u"), Owned: map[string][]int32{"a": {1, 2}}}))
	f.Add(encodeAssignment(Assignment{Partitions: map[string][]int32{"a": {3}}, UserData: []byte{}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := ParseSubscription(data); err == nil {
			again, err := ParseSubscription(encodeSubscription(s))
			if err != nil || fmt.Sprint(again) != fmt.Sprint(s) {
				t.Errorf("%v became %v, %v", s, again, err)
			}
		}
		if a, err := ParseAssignment(data); err == nil {
			again, err := ParseAssignment(encodeAssignment(a))
			if err != nil || fmt.Sprint(again) != fmt.Sprint(a) {
				t.Errorf("%v became %v, %v", a, again, err)
			}
		}
	})
}
