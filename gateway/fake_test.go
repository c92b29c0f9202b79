package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// totals is a view of counts by a text key.
var totals = &view.View{
	Name: "Totals", Store: "totals", Scope: "totals:read", Subtopology: "s",
	Columns: []view.Column{
		{Name: "key", Type: view.String, NonNull: true, Role: view.KeyRole},
		{Name: "n", Type: view.Long, NonNull: true, Role: view.AggRole, Agg: view.Agg{Fn: view.Count}},
	},
	Keys:     []int{0},
	Rankings: []view.Ranking{{By: 1}},
}

// fakeInstance answers from rows by partition, and counts its calls.
type fakeInstance struct {
	name string

	mu      sync.Mutex // guards the following
	rows    map[int32]map[string]int64
	seq     map[int32]uint64
	role    map[int32]read.Role     // active when not said
	age     map[int32]time.Duration // how long ago the as-of of an answer is
	topic   [16]byte                // the changelog's id
	slow    time.Duration           // before each answer
	hang    bool                    // stopped: no answer, no beat, no error
	calls   int
	fail    error // of the whole call
	refuse  map[int32]*read.Error
	stall   map[read.Op]bool // operations that take a minute
	streams map[chan read.Event]map[uint64]read.Interest
	adds    int            // interests that it was asked to watch, so far
	unready map[int32]bool // partitions whose interests it turns away
	mute    bool           // no beats, no events
}

func newFake(name string, partitions ...int32) *fakeInstance {
	f := &fakeInstance{
		name: name, rows: map[int32]map[string]int64{}, seq: map[int32]uint64{}, refuse: map[int32]*read.Error{},
		role: map[int32]read.Role{}, age: map[int32]time.Duration{}, topic: [16]byte{15: 1},
		streams: map[chan read.Event]map[uint64]read.Interest{}, unready: map[int32]bool{}, stall: map[read.Op]bool{},
	}
	for _, p := range partitions {
		f.rows[p] = map[string]int64{}
	}
	return f
}

// as makes the instance's copies of all its partitions ones of a role, so long
// behind.
func (f *fakeInstance) as(r read.Role, age time.Duration) *fakeInstance {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range f.rows {
		f.role[p], f.age[p] = r, age
	}
	return f
}

// change changes something of the instance.
func (f *fakeInstance) change(how func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how()
}

// called is how often the instance was called.
func (f *fakeInstance) called() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

func (f *fakeInstance) Close() error { return nil }

func (f *fakeInstance) Read(ctx context.Context, requests []*read.Request) ([]*read.Answer, error) {
	f.mu.Lock()
	f.calls++
	hang, slow := f.hang, f.slow
	if slices.ContainsFunc(requests, func(r *read.Request) bool { return f.stall[r.Op] }) {
		slow = time.Minute
	}
	f.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if slow > 0 && !sleep(ctx, slow) {
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return nil, f.fail
	}
	answers := make([]*read.Answer, len(requests))
	for i, r := range requests {
		answers[i] = f.answer(r)
	}
	return answers, ctx.Err()
}

func (f *fakeInstance) answer(r *read.Request) *read.Answer {
	a := &read.Answer{Part: read.Part{Partition: r.Partition, Instance: f.name, Seq: f.seq[r.Partition], Role: f.role[r.Partition], Incarnation: f.topic}}
	a.Part.AsOf = time.Now().Add(-f.age[r.Partition]).UnixMilli()
	err := f.refuse[r.Partition]
	if err == nil && f.rows[r.Partition] == nil {
		err = &read.Error{Code: read.NotOwner}
	}
	if err != nil {
		a.Err, a.Part.Err = err, err
		return a
	}
	switch r.Op {
	case read.Get:
		for _, k := range r.Keys {
			n, ok := f.rows[r.Partition][k[0].Str()]
			if !ok {
				a.Rows = append(a.Rows, nil)
				continue
			}
			a.Rows = append(a.Rows, row(k[0].Str(), n, r.Partition))
		}
	case read.Size:
		a.Count = int64(len(f.rows[r.Partition]))
	default:
		for k, n := range f.rows[r.Partition] {
			a.Rows = append(a.Rows, row(k, n, r.Partition))
		}
		sortRows(a.Rows, r.Op)
		if len(a.Rows) > r.First {
			a.Rows, a.More = a.Rows[:r.First], true
		}
	}
	return a
}

func row(key string, n int64, p int32) *read.Row {
	return &read.Row{Key: view.AppendKey(nil, view.OfString(key)), Values: []view.Value{view.OfString(key), view.OfInt(n)}, Partition: p}
}

// set changes a row and tells the watchers.
func (f *fakeInstance) set(p int32, key string, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows[p][key] = n
	f.seq[p]++
	f.tell(p, read.Changed)
}

func (f *fakeInstance) tell(p int32, kind read.EventKind) {
	if f.mute || f.hang {
		return
	}
	for events, interests := range f.streams {
		for id, in := range interests {
			if in.Partition == p {
				events <- read.Event{Kind: kind, ID: id}
			}
		}
	}
}

func (f *fakeInstance) Watch(ctx context.Context, commands <-chan read.WatchCommand, out func(read.Event)) error {
	f.mu.Lock()
	if f.fail != nil {
		defer f.mu.Unlock()
		return f.fail
	}
	events := make(chan read.Event, 1000)
	f.streams[events] = map[uint64]read.Interest{}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.streams, events)
		f.mu.Unlock()
	}()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case c, ok := <-commands:
			if !ok {
				return nil
			}
			f.command(events, c)
		case e := <-events:
			out(e)
		case <-beat.C:
			f.mu.Lock()
			mute, fail := f.mute || f.hang, f.fail
			f.mu.Unlock()
			if fail != nil {
				return fail
			}
			if !mute {
				out(read.Event{Kind: read.Beat})
			}
		}
	}
}

func (f *fakeInstance) command(events chan read.Event, c read.WatchCommand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Add == nil {
		delete(f.streams[events], c.Remove)
		return
	}
	f.adds++
	f.streams[events][c.Add.ID] = *c.Add
	kind := read.Changed
	if f.rows[c.Add.Partition] == nil || f.unready[c.Add.Partition] {
		kind = read.Moved
	}
	events <- read.Event{Kind: kind, ID: c.Add.ID}
}

// move hands a partition with its rows to another instance.
func (f *fakeInstance) move(p int32, to *fakeInstance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	to.rows[p], to.seq[p] = f.rows[p], f.seq[p]
	delete(f.rows, p)
	f.tell(p, read.Moved)
}

// fakeRoutes is a table that a test changes.
type fakeRoutes struct {
	mu    sync.Mutex // guards the following
	table *read.Routes
	newer chan struct{}
}

func newRoutes(owners ...string) *fakeRoutes {
	r := &fakeRoutes{newer: make(chan struct{})}
	r.set(owners...)
	return r
}

// set says who has each partition: the owner ("-": nobody), then the others, each
// a standby unless its role comes after a colon, as in "a b c:lingering".
func (r *fakeRoutes) set(partitions ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	table := &read.Routes{Instances: map[string]read.Peer{}, Partitions: map[string]int32{"s": int32(len(partitions))}, Copies: map[string][][]read.Copy{}}
	if r.table != nil {
		table.Generation = r.table.Generation + 1
	}
	copies := make([][]read.Copy, len(partitions))
	roles := map[string]read.Role{"": read.Standby, "lingering": read.Lingering, "warm-up": read.WarmUp}
	for p, list := range partitions {
		for i, at := range strings.Fields(list) {
			id, role, _ := strings.Cut(at, ":")
			switch {
			case id == "-":
				continue
			case i == 0:
				copies[p] = append(copies[p], read.Copy{Instance: id})
			default:
				copies[p] = append(copies[p], read.Copy{Instance: id, Role: roles[role]})
			}
			table.Instances[id] = read.Peer{ID: id, Addr: id}
		}
	}
	table.Copies["s"] = copies
	r.table = table
	close(r.newer)
	r.newer = make(chan struct{})
}

func (r *fakeRoutes) Routes() (*read.Routes, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.table, r.newer
}

// newTestGateway is a gateway at instance a (local) over the others.
func newTestGateway(t *testing.T, routes *fakeRoutes, instances ...*fakeInstance) *Gateway {
	t.Helper()
	return newGateway(t, nil, routes, instances...)
}

// newGateway is newTestGateway with another configuration.
func newGateway(t *testing.T, change func(*Config), routes *fakeRoutes, instances ...*fakeInstance) *Gateway {
	t.Helper()
	byName := map[string]*fakeInstance{}
	for _, f := range instances {
		byName[f.name] = f
	}
	cfg := Config{
		Views: []*view.View{totals}, Routes: routes, Timeout: time.Second, CallTime: 500 * time.Millisecond,
		Dial: func(p read.Peer) (Peer, error) {
			if f := byName[p.ID]; f != nil {
				return f, nil
			}
			return nil, errors.New("no such host")
		},
		Allow: func(ctx context.Context, v *view.View) error {
			if ctx.Value(forbidden{}) != nil {
				return read.Errorf(read.Forbidden, "")
			}
			return nil
		},
	}
	if a := byName["a"]; a != nil {
		cfg.Local, cfg.LocalID = a, "a"
	}
	if change != nil {
		change(&cfg)
	}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return g
}

type forbidden struct{}

// partitionOf is the partition of a key among n.
func partitionOf(key string, n int32) int32 { return view.Murmur2.Of([]byte(key), n) }

func getQuery(keys ...string) *read.Query {
	q := &read.Query{Store: "totals", Op: read.Get}
	for _, k := range keys {
		q.Keys = append(q.Keys, []view.Value{view.OfString(k)})
	}
	return q
}
