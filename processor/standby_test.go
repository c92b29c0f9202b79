package processor

import (
	"fmt"
	"slices"
	"testing"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// part reads one key's row from one instance's copy, whatever its role.
func (in *instance) part(t *testing.T, store string, p int32, key ...view.Value) *read.Answer {
	t.Helper()
	q := read.Query{Store: store, Op: read.Get, Keys: [][]view.Value{key}}
	as, err := in.Read(t.Context(), []*read.Request{{Query: q, Partition: p}})
	if err != nil {
		t.Fatal(err)
	}
	return as[0]
}

// roles are the copies that an instance has, as it tells them.
func (in *instance) roles() []string {
	var roles []string
	for _, s := range in.Status().Tasks {
		roles = append(roles, fmt.Sprint(s.Task, " ", s.Role, " ", s.State))
	}
	return roles
}

// A standby answers with what its owner has committed, and takes over with its
// store open when the owner goes.
func TestStandbyFollowsAndTakesOver(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 1)
	one := c.start("one")
	until(t, "the first is ready", func() bool { return one.Status().Ready })
	two := c.start("two")
	until(t, "the second is a standby", func() bool {
		return slices.Contains(two.roles(), "hits_0 standby following") || slices.Contains(one.roles(), "hits_0 standby following")
	})
	owner, standby := one, two
	if owner.task(taskID{"hits", 0}).role() != read.Active {
		owner, standby = two, one
	}
	for i := range 20 {
		c.produce("hits", keyed("a", fmt.Sprintf(`{"page":"a","at":"2024-01-01T00:00:00Z","ms":%d}`, i)))
	}
	hits := func(in *instance) int64 {
		a := in.part(t, "page-totals", 0, view.OfString("a"))
		if a.Err != nil || a.Rows[0] == nil {
			return -1
		}
		return column(in, "page-totals", a.Rows[0], "hits").Int()
	}
	until(t, "the owner has it all", func() bool { return hits(owner) == 20 })
	until(t, "the standby has it too", func() bool { return hits(standby) == 20 })
	a := standby.part(t, "page-totals", 0, view.OfString("a"))
	if a.Part.Role != read.Standby || a.Part.Seq == 0 || a.Part.AsOf == 0 {
		t.Errorf("the standby's part is %+v", a.Part)
	}
	routes, _ := standby.Routes()
	if got := routes.Copies["hits"][0]; len(got) != 2 || got[0].Role != read.Active || got[1] != (read.Copy{Instance: standby.cfg.Instance, Role: read.Standby}) {
		t.Errorf("routes: %v", got)
	}
	discarded, restored := count(t, standby.metrics.discarded), count(t, standby.metrics.restored)
	if err := owner.close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the standby owns it", func() bool {
		if n := hits(standby); n != 20 {
			t.Fatalf("while it takes over it says %d", n)
		}
		return standby.part(t, "page-totals", 0, view.OfString("a")).Part.Role == read.Active
	})
	c.produce("hits", keyed("a", `{"page":"a","at":"2024-01-01T00:00:00Z","ms":7}`))
	until(t, "it goes on", func() bool { return hits(standby) == 21 })
	if count(t, standby.metrics.discarded) != discarded || count(t, standby.metrics.restored) > restored+10 {
		t.Error("it restored instead of going on with what it had")
	}
}

// A newcomer gets its share only when it has read it: until then the owner keeps
// the task, then lingers until the newcomer commits.
func TestTasksMoveToWarmCopiesAlone(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 2)
	few := func(cfg *Config) { cfg.AcceptableLag, cfg.Standbys = 50, -1 }
	one := c.start("one", few)
	var all []message
	for i := range 3000 {
		p := int32(i % 2)
		all = append(all, message{partition: p, key: keyIn(p, i), value: fmt.Appendf(nil, `{"page":%q,"at":"2024-01-01T00:00:00Z","ms":1}`, keyIn(p, i))})
	}
	c.produce("hits", all...)
	until(t, "the first has it all", func() bool {
		s := one.Status()
		return s.Ready && len(s.Tasks) == 2 && s.Tasks[0].Lag+s.Tasks[1].Lag == 0 && s.Tasks[0].Seq > 0 && s.Tasks[1].Seq > 0
	})
	two := c.start("two", few)
	moved := taskID{"hits", 1}
	until(t, "the second warms one up", func() bool { return slices.Contains(two.roles(), "hits_1 warm-up following") || len(two.owns()) > 0 })
	until(t, "it owns it", func() bool { return slices.Equal(two.owns(), []string{"hits_1 running"}) })
	if n := int(count(t, two.metrics.restored)); n < 1500 {
		t.Errorf("it read %d changelog records of 1,500", n)
	}
	until(t, "the first lets go", func() bool { return one.task(moved) == nil })
	if !slices.Equal(one.owns(), []string{"hits_0 running"}) {
		t.Errorf("the first owns %v", one.owns())
	}
}

func (in *instance) owns() []string {
	var names []string
	for _, s := range in.Status().Tasks {
		if s.owned {
			names = append(names, s.Task+" "+s.State)
		}
	}
	return names
}

// keyIn is a key that Kafka's partitioner puts into partition p of two.
func keyIn(p int32, n int) []byte {
	for i := 0; ; i++ {
		key := fmt.Appendf(nil, "k%d-%d", n, i)
		if view.Murmur2.Of(key, 2) == p {
			return key
		}
	}
}

// A former owner answers until its successor runs; invariant 2: what it says is
// never newer than what the successor says afterwards.
func TestFormerOwnerLingers(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 2)
	none := func(cfg *Config) { cfg.Standbys = -1 }
	one := c.start("one", none)
	c.produce("hits", message{partition: 1, key: keyIn(1, 0), value: fmt.Appendf(nil, `{"page":%q,"at":"2024-01-01T00:00:00Z","ms":1}`, keyIn(1, 0))})
	key := view.OfString(string(keyIn(1, 0)))
	until(t, "the first has it", func() bool { a := one.part(t, "page-totals", 1, key); return a.Err == nil && a.Rows[0] != nil })
	two := c.start("two", none)
	seq := uint64(0)
	lingered := false
	until(t, "the second owns it", func() bool {
		a := one.part(t, "page-totals", 1, key)
		if a.Err == nil {
			lingered = lingered || a.Part.Role == read.Lingering
			seq = max(seq, a.Part.Seq)
		}
		b := two.part(t, "page-totals", 1, key)
		if a.Err != nil && b.Err != nil {
			t.Errorf("nobody answers: %v, %v", a.Err, b.Err)
		}
		return b.Err == nil && b.Part.Role == read.Active && b.Part.Seq >= seq
	})
	until(t, "the first lingers, and follows", func() bool {
		a := one.part(t, "page-totals", 1, key)
		lingered = lingered || a.Err == nil && a.Part.Role == read.Lingering
		return lingered
	})
	if !lingered {
		t.Error("the first never lingered")
	}
}

// A follower shows a transaction when every changelog of the task has told of it.
func TestFollowerShowsWhatAllChangelogsHave(t *testing.T) {
	l := benched(t, 0, 0)
	f := &follower{taskCopy: l.taskCopy}
	for i := range f.changelog {
		f.lanes = append(f.lanes, &lane{at: i, next: 10, target: 10, end: 10})
	}
	before := f.last.Seq
	rec := &commitRecord{Seq: before + 7, Columns: columnsOf(l.sub.Feeds)}
	put := func(i int, offset int64, key, value string) {
		r := &broker.Record{Offset: offset, Key: []byte(key), Value: []byte(value)}
		if err := f.record(f.lanes[i], r); err != nil {
			t.Fatal(err)
		}
		f.lanes[i].next = offset + 1
	}
	put(0, 10, string(view.AppendKey(nil, view.OfString("a"))), "")
	put(0, 11, string(commitKey), string(rec.encode()))
	if err := f.advance(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f.last.Seq != before {
		t.Fatalf("seq %d is shown, and only one of %d changelogs has it", f.last.Seq, len(f.lanes))
	}
	for i := 1; i < len(f.lanes); i++ {
		put(i, 10, string(commitKey), string(rec.encode()))
	}
	if err := f.advance(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f.last.Seq != before+7 {
		t.Fatalf("seq %d is shown, want %d", f.last.Seq, before+7)
	}
}

func TestAligned(t *testing.T) {
	groups := func(seqs ...uint64) *lane {
		l := &lane{}
		for _, s := range seqs {
			l.groups = append(l.groups, group{rec: &commitRecord{Seq: s}})
		}
		return l
	}
	tests := map[string]struct {
		lanes   []*lane
		applied []uint64
		want    uint64
		ok      bool
	}{
		"nothing":                 {[]*lane{groups(), groups()}, []uint64{0, 0}, 0, true},
		"all at one":              {[]*lane{groups(), groups()}, []uint64{4, 4}, 4, true},
		"one ahead in the store":  {[]*lane{groups(), groups()}, []uint64{4, 5}, 0, false},
		"the other has read it":   {[]*lane{groups(5), groups()}, []uint64{4, 5}, 5, true},
		"newest that all have":    {[]*lane{groups(5, 6, 7), groups(5, 6)}, []uint64{4, 4}, 6, true},
		"holes in one":            {[]*lane{groups(5, 6, 7, 8), groups(5, 8)}, []uint64{4, 4}, 8, true},
		"none newer in common":    {[]*lane{groups(5, 7), groups(6)}, []uint64{4, 4}, 4, true},
		"not below what is there": {[]*lane{groups(3), groups(3)}, []uint64{2, 4}, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := aligned(test.lanes, test.applied)
			if test.ok != ok || ok && got != test.want {
				t.Errorf("got %d, %t; want %d, %t", got, ok, test.want, test.ok)
			}
		})
	}
}
