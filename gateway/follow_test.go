package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// town is a set of instances that serve routes, by address.
type town struct {
	mu      sync.Mutex // guards the following
	serving map[string]*crier
	found   []string // by Find
	looks   int      // calls of Find
	open    int      // streams under way
	dials   []string
}

// crier is one instance's stream of routes.
type crier struct {
	table *read.Routes
	mute  bool          // it takes connections and says nothing
	gone  chan struct{} // closed: streams end
	newer chan struct{}
}

func newTown(found ...string) *town { return &town{serving: map[string]*crier{}, found: found} }

// say has an instance send a table of those instances from now on.
func (w *town) say(addr string, generation int64, instances ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	table := &read.Routes{Generation: generation, Instances: map[string]read.Peer{}}
	for _, i := range instances {
		table.Instances[i] = read.Peer{ID: i, Addr: i}
	}
	c := w.serving[addr]
	if c == nil {
		c = &crier{gone: make(chan struct{}), newer: make(chan struct{})}
		w.serving[addr] = c
	}
	c.table = table
	close(c.newer)
	c.newer = make(chan struct{})
}

func (w *town) silence(addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serving[addr].mute = true
}

func (w *town) kill(addr string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.serving[addr].gone)
	delete(w.serving, addr)
}

// seen is how often the group was searched, and who was dialled.
func (w *town) seen() (looks int, dials []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.looks, slices.Clone(w.dials)
}

func (w *town) find(context.Context) ([]read.Peer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	if len(w.found) == 0 {
		return nil, errors.New("nobody found")
	}
	var peers []read.Peer
	for _, a := range w.found {
		peers = append(peers, read.Peer{ID: a, Addr: a})
	}
	return peers, nil
}

type townStream struct {
	town *town
	addr string
}

func (w *town) dial(p read.Peer) (RouteStream, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open++
	w.dials = append(w.dials, p.Addr)
	return &townStream{w, p.Addr}, nil
}

func (s *townStream) Close() error {
	s.town.mu.Lock()
	defer s.town.mu.Unlock()
	s.town.open--
	return nil
}

func (s *townStream) Routes(ctx context.Context, each func(*read.Routes)) error {
	s.town.mu.Lock()
	c := s.town.serving[s.addr]
	s.town.mu.Unlock()
	if c == nil {
		return errors.New("connection refused")
	}
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	var sent *read.Routes
	for {
		s.town.mu.Lock()
		table, mute, newer := c.table, c.mute, c.newer
		s.town.mu.Unlock()
		switch {
		case mute:
		case table != sent:
			sent = table
			each(table)
		default:
			each(nil)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.gone:
			return errors.New("connection reset")
		case <-newer:
		case <-beat.C:
		}
	}
}

// inTown runs a follower in a bubble; test's context ends the follower.
func inTown(t *testing.T, w *town, fixed []string, test func(*Follower)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range w.serving { // what was said before belongs to no bubble
			c.gone, c.newer = make(chan struct{}), make(chan struct{})
		}
		cfg := FollowerConfig{Fixed: fixed, Dial: w.dial}
		if w.found != nil {
			cfg.Find = w.find
		}
		f, err := NewFollower(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx) }()
		test(f)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if w.open != 0 {
			t.Errorf("%d connections left open", w.open)
		}
	})
}

// within waits for the generation and says how long it took.
func within(t *testing.T, f *Follower, want int64, bound time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		table, newer := f.Routes()
		if table.Generation == want {
			return time.Since(began)
		}
		select {
		case <-newer:
		case <-time.After(bound - time.Since(began)):
			t.Fatalf("generation %d after %v, want %d", table.Generation, bound, want)
		}
	}
}

// stays says that the generation is still that after a while.
func stays(t *testing.T, f *Follower, want int64, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		table, newer := f.Routes()
		if table.Generation != want {
			t.Fatalf("generation %d, want %d", table.Generation, want)
		}
		select {
		case <-newer:
		case <-time.After(time.Until(end)):
		}
	}
}

func TestFollowerFollows(t *testing.T) {
	w := newTown("a", "b")
	w.say("a", 3, "a", "b")
	w.say("b", 3, "a", "b")
	inTown(t, w, nil, func(f *Follower) {
		within(t, f, 3, time.Second)
		w.say("a", 4, "a", "b")
		w.say("b", 4, "a", "b")
		if took := within(t, f, 4, time.Second); took != 0 {
			t.Errorf("a newer table took %v", took)
		}
		stays(t, f, 4, time.Minute)
		if looks, dials := w.seen(); looks != 1 || len(dials) != 1 {
			t.Errorf("searched %d times, dialled %v; a stream that lives is kept", looks, dials)
		}
	})
}

func TestFollowerGoesElsewhere(t *testing.T) {
	for _, how := range []string{"ends", "is silent"} {
		t.Run(how, func(t *testing.T) {
			w := newTown("a")
			w.say("a", 3, "a", "b")
			inTown(t, w, nil, func(f *Follower) {
				within(t, f, 3, time.Second)
				w.say("b", 4, "a", "b")
				bound := time.Second
				if how == "ends" {
					w.kill("a")
				} else {
					w.silence("a")
					bound = 4500 * time.Millisecond
				}
				within(t, f, 4, bound)
				if looks, _ := w.seen(); looks != 1 {
					t.Error("the group was asked although the table names another instance")
				}
			})
		})
	}
}

// The last table stays while nobody answers, and the group is asked with pauses.
func TestFollowerKeepsTheLast(t *testing.T) {
	w := newTown("a")
	w.say("a", 3, "a")
	inTown(t, w, nil, func(f *Follower) {
		within(t, f, 3, time.Second)
		w.kill("a")
		stays(t, f, 3, 10*time.Minute)
		if looks, _ := w.seen(); looks < 150 || looks > 700 {
			t.Errorf("searched %d times in ten minutes", looks)
		}
		w.say("a", 4, "a")
		within(t, f, 4, 4*time.Second)
	})
}

// An instance that has not joined yet, or lags, brings nothing back.
func TestFollowerIgnoresOlder(t *testing.T) {
	w := newTown("a")
	w.say("a", 7, "a", "b", "c")
	inTown(t, w, nil, func(f *Follower) {
		within(t, f, 7, time.Second)
		w.say("b", 6, "b", "c")
		w.say("c", 7, "a", "b", "c")
		w.kill("a")
		stays(t, f, 7, 5*time.Second)
		w.say("b", 8, "b", "c")
		w.say("c", 8, "b", "c")
		within(t, f, 8, 5*time.Second)
	})
}

// A group that began anew counts from 1.
func TestFollowerGroupBeginsAnew(t *testing.T) {
	t.Run("the one instance restarts", func(t *testing.T) {
		w := newTown("a")
		w.say("a", 50, "a")
		inTown(t, w, nil, func(f *Follower) {
			within(t, f, 50, time.Second)
			w.kill("a")
			w.say("a", 1, "a")
			within(t, f, 51, 3*time.Second) // counted on
			w.say("a", 2, "a")
			within(t, f, 52, time.Second)
		})
	})
	t.Run("the instance followed goes down by itself", func(t *testing.T) {
		w := newTown("a")
		w.say("a", 50, "a", "b")
		w.say("b", 50, "a", "b")
		inTown(t, w, nil, func(f *Follower) {
			within(t, f, 50, time.Second)
			w.say("a", 1, "a", "b")
			within(t, f, 51, time.Second)
		})
	})
	t.Run("at other addresses", func(t *testing.T) {
		w := newTown("a", "x", "y")
		w.say("a", 50, "a", "b")
		inTown(t, w, nil, func(f *Follower) {
			within(t, f, 50, time.Second)
			w.kill("a")
			w.say("x", 1, "x", "y")
			w.say("y", 1, "x", "y")
			within(t, f, 51, 4*time.Second)
		})
	})
	t.Run("while one that is known still answers", func(t *testing.T) {
		w := newTown("a")
		w.say("a", 50, "a", "b", "c")
		inTown(t, w, nil, func(f *Follower) {
			within(t, f, 50, time.Second)
			w.say("b", 1, "a", "b", "c")
			w.say("c", 1, "a", "b", "c")
			w.kill("a")
			if took := within(t, f, 51, 20*time.Second); took < time.Second {
				t.Errorf("a lower generation was taken after %v", took)
			}
		})
	})
}

// Of many instances not each is heard out.
func TestFollowerPatience(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	w := newTown("a")
	w.say("a", 50, all...)
	inTown(t, w, nil, func(f *Follower) {
		within(t, f, 50, time.Second)
		for _, i := range all[1:] {
			w.say(i, 1, all...)
		}
		w.kill("a")
		if took := within(t, f, 51, 14*time.Second); took < 9*time.Second {
			t.Errorf("a lower generation was taken after %v", took)
		}
	})
}

func TestFollowerFixed(t *testing.T) {
	w := &town{serving: map[string]*crier{}}
	w.say("b", 3, "b")
	inTown(t, w, []string{"a", "b"}, func(f *Follower) {
		within(t, f, 3, time.Second)
		if _, dials := w.seen(); !slices.Contains(dials, "b") {
			t.Errorf("dialled %v", dials)
		}
	})
}

func TestFollowerConfig(t *testing.T) {
	if _, err := NewFollower(FollowerConfig{Dial: newTown().dial}); err == nil {
		t.Error("a follower without instances to begin with was made")
	}
	f, err := NewFollower(FollowerConfig{Dial: newTown().dial, Fixed: []string{"a"}})
	if err != nil || f.Known() {
		t.Errorf("routes are known before any came; %v", err)
	}
}
