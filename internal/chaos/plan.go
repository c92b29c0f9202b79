package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Kind is a kind of fault.
type Kind uint8

// The faults.
const (
	Kill         Kind = iota // kill -9 an instance, start it again
	Wipe                     // the same, and its state directory is gone
	Pause                    // SIGSTOP, SIGCONT: a zombie that wakes
	Roll                     // stop and start every instance, one after the other
	CutPeer                  // the way between two instances
	Isolate                  // the ways between an instance and all others
	CutBroker                // the way between an instance and one broker
	CutBrokers               // the ways between an instance and all brokers
	Slow                     // everything to and from an instance comes later
	ResetPeers               // connections to an instance end by reset for a while
	KillBroker               // kill -9 a broker, start it again
	StopBroker               // stop a broker, start it again
	Leaders                  // leaders of the data move
	Coordinators             // coordinators of groups and transactions move
	kinds
)

var kindNames = [kinds]string{
	"kill", "wipe", "pause", "roll", "cut-peer", "isolate", "cut-broker", "cut-brokers", "slow", "reset-peers",
	"kill-broker", "stop-broker", "leaders", "coordinators",
}

func (k Kind) String() string { return kindNames[k] }

// Kinds are the names of all faults.
func Kinds() []string { return kindNames[:] }

func kindOf(name string) (Kind, error) {
	if i := slices.Index(kindNames[:], name); i >= 0 {
		return Kind(i), nil
	}
	return 0, fmt.Errorf("there is no fault %q; allowed: %s", name, strings.Join(kindNames[:], ", "))
}

// Step is one fault.
type Step struct {
	Kind   Kind
	Slot   int           // the instance, from 0
	Other  int           // the second instance of CutPeer
	Broker int           // from 1
	For    time.Duration // how long it lasts: down, paused or cut
	Rest   time.Duration // after the cluster is whole again
	Delay  time.Duration // of Slow
}

func (s Step) String() string {
	who := fmt.Sprintf(" instance %d", s.Slot+1)
	switch s.Kind {
	case Roll:
		return s.Kind.String()
	case CutPeer:
		who += fmt.Sprintf(" and %d", s.Other+1)
	case CutBroker:
		who += fmt.Sprintf(" and broker %d", s.Broker)
	case KillBroker, StopBroker:
		who = fmt.Sprintf(" broker %d", s.Broker)
	case Leaders, Coordinators:
		return s.Kind.String()
	}
	return fmt.Sprintf("%s%s for %s", s.Kind, who, s.For.Round(time.Millisecond))
}

// Plan deals faults: all kinds in a random order, then all again. It depends on
// nothing but what it was made of.
type Plan struct {
	begun     bool // the first fault is chosen
	rng       *rand.Rand
	instances int
	brokers   int
	kinds     []Kind
	deck      []Kind
}

// NewPlan makes the plan of a seed. With nil it has all kinds that the
// cluster allows: leaders move only where there are several brokers, and 0
// brokers are one that cannot be broken.
func NewPlan(seed uint64, instances, brokers int, only []Kind) *Plan {
	p := &Plan{rng: rand.New(rand.NewPCG(seed, 1)), instances: instances, brokers: brokers}
	for k := range kinds {
		switch {
		case only != nil && !slices.Contains(only, k):
		case brokers < 2 && (k == Leaders || k == Coordinators || k == CutBroker):
		case brokers == 0 && (k == KillBroker || k == StopBroker || k == CutBrokers):
		case instances < 3 && (k == CutPeer || k == Isolate || k == ResetPeers):
			// Cut off, each of two is alone with what it holds.
		default:
			p.kinds = append(p.kinds, k)
		}
	}
	return p
}

// Next is the next fault; false: there is none of the kinds wanted.
func (p *Plan) Next() (Step, bool) {
	if len(p.kinds) == 0 {
		return Step{}, false
	}
	if len(p.deck) == 0 {
		p.deck = slices.Clone(p.kinds)
		p.rng.Shuffle(len(p.deck), func(i, j int) { p.deck[i], p.deck[j] = p.deck[j], p.deck[i] })
		if i := slices.Index(p.deck, Kill); i > 0 && !p.begun { // the shortest run has one
			p.deck[0], p.deck[i] = p.deck[i], p.deck[0]
		}
		p.begun = true
	}
	s := Step{Kind: p.deck[0], Slot: p.rng.IntN(p.instances), Broker: 1 + p.rng.IntN(max(p.brokers, 1))}
	p.deck = p.deck[1:]
	s.Other = (s.Slot + 1 + p.rng.IntN(p.instances-1)) % p.instances
	s.Rest = p.between(200*time.Millisecond, 1500*time.Millisecond)
	s.Delay = p.between(20*time.Millisecond, 250*time.Millisecond)
	switch s.Kind {
	case Kill, Wipe:
		s.For = p.between(0, 4*time.Second)
	case Pause:
		s.For = p.between(time.Second, 20*time.Second)
	case KillBroker, StopBroker:
		s.For = p.between(0, 6*time.Second)
	case CutPeer, Isolate, CutBroker, CutBrokers, Slow:
		s.For = p.between(time.Second, 15*time.Second)
	case ResetPeers:
		s.For = p.between(100*time.Millisecond, 5*time.Second)
	}
	return s, true
}

func (p *Plan) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(p.rng.Int64N(int64(hi-lo)))
}
