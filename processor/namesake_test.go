package processor

import (
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
)

func TestSuperseded(t *testing.T) {
	type members = map[string]*memberData
	tests := map[string]struct {
		told members
		want map[string]string
	}{
		"none": {members{}, map[string]string{}},
		"each its own name": {members{
			"m1": {Instance: "a", Addr: "a:1", Started: 1}, "m2": {Instance: "b", Addr: "b:1", Started: 1},
		}, map[string]string{}},
		"the older goes": {members{
			"m1": {Instance: "a", Addr: "a:1", Started: 2}, "m2": {Instance: "a", Addr: "a:2", Started: 1}, "m3": {Instance: "b", Addr: "b:1"},
		}, map[string]string{"m2": "a:1"}},
		"all but the newest": {members{
			"m1": {Instance: "a", Addr: "a:1", Started: 1}, "m2": {Instance: "a", Addr: "a:2", Started: 3}, "m3": {Instance: "a", Addr: "a:3", Started: 2},
		}, map[string]string{"m1": "a:2", "m3": "a:2"}},
		"one does not say when": {members{
			"m1": {Instance: "a", Addr: "a:1", Started: 1}, "m2": {Instance: "a", Addr: "a:2"},
		}, map[string]string{"m2": "a:1"}},
		"at once": {members{
			"m1": {Instance: "a", Addr: "a:1", Started: 1}, "m2": {Instance: "a", Addr: "a:2", Started: 1},
		}, map[string]string{"m1": "a:2"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := superseded(test.told); !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// Two live instances of one name: the older ends and says why, the newer has it
// all.
func TestRefusesNamesake(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 2)
	c.produce("hits", message{key: []byte("a"), value: []byte(`{"page":"a","at":"2024-01-01T00:00:00Z","ms":7}`)})
	older := c.start("same", func(cfg *Config) { cfg.Addr = "here:1" })
	until(t, "the first is ready", func() bool { return older.Status().Ready })
	newer := c.start("same", func(cfg *Config) { cfg.Addr = "there:2" })
	var err error
	select {
	case err = <-older.done:
		older.done <- nil
	case <-time.After(20 * time.Second):
		t.Fatal("both run on")
	}
	var refused *RefusedError
	if !errors.As(err, &refused) || !refused.AtStart {
		t.Fatalf("the older ended with %v", err)
	}
	wantText(t, err.Error(), "two instances are named same (at here:1 and there:2)", "give each a name of its own (instance:)")
	until(t, "the newer is ready and answers", func() bool {
		return newer.Status().Ready && ask(t, []*instance{newer}, "page-totals", view.OfString("a")) != nil
	})
	if routes, _ := newer.Routes(); routes.Instances["same"].Addr != "there:2" {
		t.Errorf("routes lead to %v", routes.Instances)
	}
}

// The leader gives what an older member holds to the newer of its name.
func TestBalanceNamesakes(t *testing.T) {
	l := benched(t, 0, 0)
	sub := l.sub.Name
	member := func(id, addr string, started int64, tasks ...string) broker.GroupMember {
		d := &memberData{Version: memberVersion, Instance: "a", Addr: addr, Started: started, Subtopologies: []string{sub}, Tasks: tasks}
		return broker.GroupMember{ID: id, Subscription: broker.Subscription{UserData: encodeData(d)}}
	}
	as, err := l.w.balance([]broker.GroupMember{member("m1", "x:1", 5, sub+"_0"), member("m2", "x:2", 6)})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(as["m1"].Partitions); n != 0 {
		t.Errorf("the older has partitions of %d topics", n)
	}
	if n := len(as["m2"].Partitions["flights"]); n != 1 {
		t.Errorf("the newer has %d partitions, want 1", n)
	}
	d, err := decodeRoutes(as["m1"].UserData)
	if err != nil || d.Superseded["m1"] != "x:2" || len(d.Superseded) != 1 {
		t.Errorf("told %+v, %v", d, err)
	}
	if p := d.routes(1).Instances["a"]; p.Addr != "x:2" {
		t.Errorf("routes lead to %+v", p)
	}
}

// A process that was stopped while another took its name ends when it wakes; one
// that was killed is no obstacle to the next.
func TestNamesakeWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newSim(t, 11).during(func(s *sim) {
			s.start(0, t.TempDir())
			s.start(1, t.TempDir())
			s.produce(20)
			time.Sleep(5 * time.Second)
			old := s.instances[0]
			old.host.Freeze()
			s.start(0, t.TempDir())
			time.Sleep(30 * time.Second)
			s.produce(20)
			old.host.Thaw()
			var refused *RefusedError
			if err := <-old.done; !errors.As(err, &refused) {
				t.Errorf("ended with %v", err)
			}
			s.start(0, s.kill(0, true))
			s.settle(2 * time.Minute)
		})
	})
}

// An instance without TLS among those that speak it is refused, before it takes
// tasks that nobody could ask it for.
func TestRefusesPlainAmongSecure(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 2)
	one := c.start("one", func(cfg *Config) { cfg.Secure = true })
	until(t, "the first is ready", func() bool { return one.Status().Ready })
	wantText(t, c.refused(), "instance one at ", "speaks TLS with the others, and this one does not; set listen.tls")
	until(t, "the first has it all", func() bool { return len(one.owns()) == 2 && one.Status().Ready })
}
