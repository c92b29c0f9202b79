package chaos

import (
	"slices"
	"testing"
	"time"
)

func deal(p *Plan, n int) []Step {
	var out []Step
	for range n {
		if s, ok := p.Next(); ok {
			out = append(out, s)
		}
	}
	return out
}

func TestPlanFollowsFromSeed(t *testing.T) {
	a, b := deal(NewPlan(7, 3, 3, nil), 60), deal(NewPlan(7, 3, 3, nil), 60)
	if !slices.Equal(a, b) {
		t.Error("one seed made two plans")
	}
	if slices.Equal(a, deal(NewPlan(8, 3, 3, nil), 60)) {
		t.Error("two seeds made one plan")
	}
}

func TestPlanDealsEveryKind(t *testing.T) {
	for _, c := range []struct {
		instances, brokers int
		without            []Kind
	}{
		{3, 3, nil},
		{3, 1, []Kind{Leaders, Coordinators, CutBroker}},
		{3, 0, []Kind{Leaders, Coordinators, CutBroker, CutBrokers, KillBroker, StopBroker}},
		{2, 3, []Kind{CutPeer, Isolate, ResetPeers}},
	} {
		n := int(kinds) - len(c.without)
		count := map[Kind]int{}
		for _, s := range deal(NewPlan(1, c.instances, c.brokers, nil), 2*n) {
			count[s.Kind]++
			switch {
			case s.Slot < 0 || s.Slot >= c.instances || s.Other < 0 || s.Other >= c.instances || s.Other == s.Slot:
				t.Errorf("%s is of no instances there are", s)
			case s.Broker < 1 || s.Broker > max(c.brokers, 1):
				t.Errorf("%s is of no broker there is", s)
			case s.Kind == Pause && (s.For < time.Second || s.For >= 20*time.Second):
				t.Errorf("%s lasts too short or too long", s)
			}
		}
		for k := range kinds {
			want := 2
			if slices.Contains(c.without, k) {
				want = 0
			}
			if count[k] != want {
				t.Errorf("%d instances, %d brokers: %s comes %d times in two rounds, want %d", c.instances, c.brokers, k, count[k], want)
			}
		}
	}
}

func TestPlanOfSome(t *testing.T) {
	for _, s := range deal(NewPlan(1, 3, 3, []Kind{Kill}), 5) {
		if s.Kind != Kill {
			t.Errorf("%s was not wanted", s)
		}
	}
	if _, ok := NewPlan(1, 3, 3, []Kind{}).Next(); ok {
		t.Error("a fault of none")
	}
}

func TestConfigCheck(t *testing.T) {
	good := Config{Duration: time.Minute, Instances: 3, Brokers: 1, Clients: 1, Keys: 100, Flights: 1, Ports: 28}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"one instance": func(c *Config) { c.Instances = 1 },
		"two brokers":  func(c *Config) { c.Brokers = 2 },
		"no time":      func(c *Config) { c.Duration = time.Second },
		"no clients":   func(c *Config) { c.Clients = 0 },
		"ports":        func(c *Config) { c.Ports = 9 },
		"a fault":      func(c *Config) { c.Faults = []string{"kill", "fire"} },
	} {
		c := good
		if spoil(&c); c.check() == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
