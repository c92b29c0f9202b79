package rpc

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

func someRoutes() *read.Routes {
	return &read.Routes{
		Generation: 7,
		Instances: map[string]read.Peer{
			"a": {ID: "a", Addr: "10.0.0.1:9090", HTTP: "10.0.0.1:8080", Rack: "r1"},
			"b": {ID: "b", Addr: "10.0.0.2:9090"},
		},
		Partitions: map[string]int32{"flights": 2, "flights-by-origin": 1},
		Copies: map[string][][]read.Copy{
			"flights":           {{{Instance: "b", Role: read.Active}, {Instance: "a", Role: read.Lingering}}, nil},
			"flights-by-origin": {{{Instance: "a", Role: read.Standby}}},
		},
	}
}

func TestRoutesRoundTrip(t *testing.T) {
	got, err := decodeRoutes(encodeRoutes(someRoutes()))
	if err != nil || !reflect.DeepEqual(got, someRoutes()) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := decodeRoutes(encodeRoutes(nil)); got != nil || err != nil {
		t.Errorf("a beat: got %+v, %v", got, err)
	}
	lost := someRoutes()
	delete(lost.Instances, "b")
	got, err = decodeRoutes(encodeRoutes(lost))
	if err != nil || len(got.Copies["flights"][0]) != 1 || got.Copies["flights"][0][0].Instance != "a" {
		t.Errorf("a copy at an instance without an address: got %+v, %v", got, err)
	}
}

// A table that says what cannot be is refused: a gateway makes room for what it
// says (invariant 6).
func TestRoutesAreBounded(t *testing.T) {
	for name, change := range map[string]func(*read.Routes){
		"partitions that have no copies": func(r *read.Routes) { r.Partitions["flights"] = 60_000 },
		"too many partitions":            func(r *read.Routes) { r.Partitions["more"] = 1 << 20 },
		"an absurd generation":           func(r *read.Routes) { r.Generation = 1<<63 - 1 },
		"a name of control characters":   func(r *read.Routes) { r.Instances["a\nb"] = read.Peer{ID: "a\nb", Addr: "x:1"} },
		"a name that is no text":         func(r *read.Routes) { r.Instances["\xff"] = read.Peer{ID: "\xff", Addr: "x:1"} },
	} {
		r := someRoutes()
		change(r)
		if _, err := decodeRoutes(encodeRoutes(r)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func FuzzDecodeRoutes(f *testing.F) {
	f.Add(encodeRoutes(someRoutes()))
	f.Add(encodeRoutes(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRoutes(b)
		if err != nil {
			return
		}
		again, err := decodeRoutes(encodeRoutes(r))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("got %+v, %v; first %+v", again, err, r)
		}
	})
}

// table is a RouteSource that a test changes.
type table struct {
	mu    sync.Mutex // guards the following
	now   *read.Routes
	newer chan struct{}
	dead  bool
}

func newTable(r *read.Routes) *table { return &table{now: r, newer: make(chan struct{})} }

func (s *table) Routes() (*read.Routes, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.newer
}

func (s *table) Live() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.dead
}

func (s *table) set(r *read.Routes, dead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.dead = r, dead
	close(s.newer)
	s.newer = make(chan struct{})
}

// follow hands on what a stream brings until the test ends.
func follow(t *testing.T, addr string) (tables <-chan *read.Routes, ended <-chan error) {
	t.Helper()
	client, err := NewClient(addr, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, end := make(chan *read.Routes), make(chan error, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		end <- client.Routes(ctx, func(r *read.Routes) {
			select {
			case out <- r:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return out, end
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func TestRoutesStream(t *testing.T) {
	first, second := someRoutes(), someRoutes()
	second.Generation = 8
	source := newTable(first)
	tables, ended := follow(t, serve(t, nil, Service{Routes: source}))
	if got := receive(t, tables); !reflect.DeepEqual(got, first) {
		t.Errorf("first: got %+v", got)
	}
	if got := receive(t, tables); got != nil {
		t.Errorf("want a beat, got %+v", got)
	}
	source.set(second, false)
	if got := receive(t, tables); !reflect.DeepEqual(got, second) {
		t.Errorf("second: got %+v", got)
	}
	source.set(second, true)
	for {
		select {
		case <-tables:
			continue // beats on their way
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "not in touch with the group") {
				t.Errorf("got %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("an instance that is out of touch serves routes")
		}
		return
	}
}

// An instance that nobody has assigned anything yet has no table.
func TestRoutesBeforeTheFirst(t *testing.T) {
	source := newTable(&read.Routes{})
	tables, _ := follow(t, serve(t, nil, Service{Routes: source}))
	if got := receive(t, tables); got != nil {
		t.Errorf("got %+v", got)
	}
	source.set(someRoutes(), false)
	if got := receive(t, tables); got == nil || got.Generation != 7 {
		t.Errorf("got %+v", got)
	}
}

func TestRoutesNotServed(t *testing.T) {
	_, ended := follow(t, serve(t, nil, Service{}))
	if err := receive(t, ended); err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "serves no routes") {
		t.Errorf("got %v", err)
	}
}
