package gateway

import (
	"testing"

	"github.com/streamgauge/streamgauge/view/read"
)

// table are routes that name instances at addresses.
func table(generation int64, addresses map[string]string) *read.Routes {
	r := &read.Routes{Generation: generation, Instances: map[string]read.Peer{}}
	for id, addr := range addresses {
		r.Instances[id] = read.Peer{ID: id, Addr: addr}
	}
	return r
}

// show puts a table in force.
func (r *fakeRoutes) show(table *read.Routes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table = table
	close(r.newer)
	r.newer = make(chan struct{})
}

// reached is the peer at its address, as routes lead to it.
func reached(t *testing.T, g *Gateway, routes *read.Routes, id, addr string) *peer {
	t.Helper()
	p, err := g.peers.get(routes, id)
	if err != nil {
		t.Fatal(err)
	}
	if p.addr != addr {
		t.Fatalf("instance %s at %s, want %s", id, p.addr, addr)
	}
	return p
}

// A query under way has the routes it began with: they neither close what newer
// ones opened nor bring an old address back.
func TestOlderRoutesCloseNoConnection(t *testing.T) {
	b, c, d := newFake("b", 0), newFake("c", 0), newFake("d", 0)
	routes := newRoutes("b")
	g := newTestGateway(t, routes, b, c, d)
	old := table(1, map[string]string{"b": "b:1", "d": "d:1"})
	now := table(2, map[string]string{"b": "b:2", "c": "c:1"})
	routes.show(old)
	reached(t, g, old, "b", "b:1")
	reached(t, g, old, "d", "d:1")
	routes.show(now)
	first := reached(t, g, now, "c", "c:1")
	reached(t, g, old, "b", "b:2") // not as the caller's table says
	if _, err := g.peers.get(old, "d"); err == nil {
		t.Error("connected to an instance that has left")
	}
	if again := reached(t, g, now, "c", "c:1"); again != first {
		t.Error("the connection to c was closed")
	}
	if states := g.Breakers(); len(states) != 2 {
		t.Errorf("connections to %v, want b and c", states)
	}
}

// When the group was deleted its generations begin at 1 again; addresses are
// believed as before, and whoever is gone is dropped.
func TestAddressesOfAGroupThatBeganAnew(t *testing.T) {
	b, c := newFake("b", 0), newFake("c", 0)
	routes := newRoutes("b")
	g := newTestGateway(t, routes, b, c)
	before := table(500, map[string]string{"b": "b:1", "c": "c:1"})
	anew := table(1, map[string]string{"b": "b:2"})
	routes.show(before)
	reached(t, g, before, "b", "b:1")
	reached(t, g, before, "c", "c:1")
	routes.show(anew)
	fresh := reached(t, g, anew, "b", "b:2")
	if again := reached(t, g, before, "b", "b:2"); again != fresh {
		t.Error("a caller with the routes of before undid the new ones")
	}
	if states := g.Breakers(); len(states) != 1 {
		t.Errorf("connections to %v, want b alone", states)
	}
}
