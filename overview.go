package streamgauge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/processor"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/read/rpc"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// statusTime bounds one instance's telling of itself.
	statusTime = 800 * time.Millisecond
	// statusCalls are how many are asked at once.
	statusCalls = 16
	// overviewEvery is how old an overview may be: however many pages ask, each
	// instance is asked once in that time.
	overviewEvery = 500 * time.Millisecond
)

// overview asks every instance in the routes how it is. Its connections are its
// own: people who look must not open the breakers that reads go by. Safe for
// concurrent use.
type overview struct {
	self   string // not asked; "": all are
	routes read.RouteSource
	dial   func(read.Peer) (*rpc.Client, error)

	mu      sync.Mutex // guards the following, and is held while instances are asked
	told    []instanceInfo
	at      time.Time
	clients map[string]*rpc.Client // by address
}

func newOverview(self string, routes read.RouteSource, dial func(read.Peer) (*rpc.Client, error)) *overview {
	return &overview{self: self, routes: routes, dial: dial, clients: make(map[string]*rpc.Client)}
}

// others are all instances but this one, by name.
func (o *overview) others(ctx context.Context) []instanceInfo {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.at) < overviewEvery {
		return slices.Clone(o.told)
	}
	routes, _ := o.routes.Routes()
	o.forget(routes)
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(routes.Instances)) {
		if id != o.self {
			ids = append(ids, id)
		}
	}
	list := make([]instanceInfo, len(ids))
	var g errgroup.Group
	g.SetLimit(statusCalls)
	for i, id := range ids {
		client, err := o.client(routes.Instances[id])
		g.Go(func() error {
			list[i] = ask(ctx, routes, id, client, err)
			return nil
		})
	}
	_ = g.Wait() // what went wrong is in each
	if ctx.Err() == nil {
		o.told, o.at = list, time.Now()
	}
	return slices.Clone(list)
}

// client is the connection to an instance. It does not block.
func (o *overview) client(p read.Peer) (*rpc.Client, error) {
	if c := o.clients[p.Addr]; c != nil {
		return c, nil
	}
	c, err := o.dial(p)
	if err == nil {
		o.clients[p.Addr] = c
	}
	return c, err
}

// forget closes the connections to instances that are not in the routes.
func (o *overview) forget(routes *read.Routes) {
	there := make(map[string]bool)
	for _, p := range routes.Instances {
		there[p.Addr] = true
	}
	maps.DeleteFunc(o.clients, func(addr string, c *rpc.Client) bool {
		return !there[addr] && c.Close() == nil
	})
}

// close closes every connection.
func (o *overview) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for _, c := range o.clients {
		errs = append(errs, c.Close())
	}
	clear(o.clients)
	return errors.Join(errs...)
}

// closeOverview closes the connections that people's looks have made.
func (e *edge) closeOverview(o *overview) {
	if err := o.close(); err != nil {
		e.log.Debug("connection not closed cleanly", "err", err)
	}
}

// ask has one instance tell of itself. Of one that does not, what the routes say
// is told, and that it does not.
func ask(ctx context.Context, routes *read.Routes, id string, client *rpc.Client, err error) instanceInfo {
	peer := routes.Instances[id]
	var told instanceInfo
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, statusTime)
		defer cancel()
		var text []byte
		if text, err = client.Status(ctx); err == nil {
			err = json.Unmarshal(text, &told)
		}
	}
	if err == nil && told.ID != id {
		err = fmt.Errorf("instance %s answers at its address", told.ID)
	}
	if err != nil {
		return instanceInfo{
			ID: id, HTTP: peer.HTTP, Rack: peer.Rack, Running: true, Silent: true, Reason: silence(err, peer.Addr),
			Tasks: routed(routes, id), Tables: []processor.TableStatus{},
		}
	}
	told.HTTP, told.Self = peer.HTTP, false
	return told
}

// silence says why an instance does not tell of itself.
func silence(err error, addr string) string {
	switch status.Code(err) {
	case codes.DeadlineExceeded:
		return "it does not answer within " + statusTime.String()
	case codes.Unavailable:
		return "it is not reached at " + addr
	case codes.Unimplemented:
		return "it is of a release that does not tell of itself"
	}
	return "it does not answer: " + status.Convert(err).Message()
}

// routed are an instance's tasks as the routes have them: of their state they
// know nothing.
func routed(routes *read.Routes, id string) []processor.TaskStatus {
	tasks := []processor.TaskStatus{}
	for _, sub := range slices.Sorted(maps.Keys(routes.Copies)) {
		for p, copies := range routes.Copies[sub] {
			for _, c := range copies {
				if c.Instance == id {
					tasks = append(tasks, processor.TaskStatus{Task: fmt.Sprintf("%s_%d", sub, p), State: "unknown", Role: c.Role.String()})
				}
			}
		}
	}
	return tasks
}

// all tells of every instance: in the demo by the demo, which knows of those that
// are stopped, elsewhere by asking each.
func (in *instance) all(ctx context.Context, s setup) []instanceInfo {
	if s.cluster != nil {
		return s.cluster.instances(s.cfg.Instance)
	}
	own := in.info()
	own.Self = true
	list := append(in.overview.others(ctx), own)
	slices.SortFunc(list, func(a, b instanceInfo) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// info describes this instance.
func (in *instance) info() instanceInfo {
	st := in.worker.Status()
	return instanceInfo{
		ID: st.Instance, HTTP: in.http.Addr().String(), Rack: in.cfg.Rack, Running: true, Ready: st.Ready, Reason: st.Reason,
		Live: st.Live, Generation: int64(st.Generation), Tasks: st.Tasks, Tables: st.Tables, Breakers: in.gateway.Breakers(),
	}
}

// told is info for other instances.
func (in *instance) told() ([]byte, error) { return json.Marshal(in.info()) }

// all tells of this gateway and of every instance.
func (a *alone) all(ctx context.Context) []instanceInfo {
	routes, _ := a.follower.Routes()
	own := instanceInfo{
		ID: a.cfg.Instance, HTTP: a.http.Addr().String(), Rack: a.cfg.Rack, Gateway: true, Self: true, Running: true,
		Ready: a.follower.Known(), Live: a.follower.Known(), Generation: routes.Generation,
		Tasks: []processor.TaskStatus{}, Tables: []processor.TableStatus{}, Breakers: a.gateway.Breakers(),
	}
	if !own.Ready {
		own.Reason = noRoutesYet
	}
	return append([]instanceInfo{own}, a.overview.others(ctx)...)
}
