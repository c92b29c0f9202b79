package processor

import (
	"fmt"
	"maps"
	"slices"

	"github.com/streamgauge/streamgauge/processor/broker"
)

// memberConfig is how the worker takes part in the group: what it tells the
// leader, what it does as the leader, and what it makes of an assignment.
func (w *Worker) memberConfig() broker.MemberConfig {
	return broker.MemberConfig{
		Group: w.cfg.App, InstanceID: w.cfg.StaticID,
		SessionTimeout: w.cfg.SessionTimeout, HeartbeatInterval: w.cfg.HeartbeatInterval,
		// Nothing is given up before a rebalance, so a live member joins within a
		// heartbeat; the others are waited for no longer than for one that is dead.
		RebalanceTimeout: w.cfg.SessionTimeout,
		Metadata:         w.subscription,
		Balance:          w.balance,
		Assigned:         w.assigned,
		Lost: func(reason error) {
			w.log.Warn("left out of the group; joining again", "reason", reason)
		},
		Logger: w.log,
	}
}

func (w *Worker) subscription() broker.Subscription {
	d := memberData{
		Version: memberVersion, Instance: w.cfg.Instance, Addr: w.cfg.Addr, HTTP: w.cfg.HTTP,
		Fingerprint: w.cfg.Topology.Fingerprint, Started: w.started, Rack: w.cfg.Rack, Secure: w.cfg.Secure,
		Inputs: make(map[string]inputData), Copies: w.heldCopies(), Join: w.joins.Add(1),
	}
	for _, s := range w.cfg.Topology.Subtopologies {
		d.Subtopologies = append(d.Subtopologies, s.Name)
		input := inputData{Topic: s.TopicOf(w.cfg.App), Partitions: w.layout.partitions[s.Name]}
		if len(s.Feeds) > 0 {
			input.Schema = columnsMark(columnsOf(s.Feeds))
		}
		d.Inputs[s.Name] = input
	}
	owned := make(map[string][]int32)
	m := w.membership()
	for _, id := range slices.SortedFunc(maps.Keys(m.tasks), compareTasks) {
		d.Tasks = append(d.Tasks, id.String())
		topic := w.topicOf(id.Subtopology)
		owned[topic] = append(owned[topic], id.Partition)
	}
	return broker.Subscription{Topics: inputs(w.cfg.App, w.cfg.Topology), UserData: encodeData(&d), Owned: owned}
}

func (w *Worker) topicOf(sub string) string {
	for _, s := range w.cfg.Topology.Subtopologies {
		if s.Name == sub {
			return s.TopicOf(w.cfg.App)
		}
	}
	return ""
}

// balance is run by the leader: it plans, and tells everyone who has what. A
// member that it does not understand gets nothing, nor does one whose name a
// newer one has.
func (w *Worker) balance(members []broker.GroupMember) (map[string]broker.Assignment, error) {
	told := make(map[string]*memberData, len(members))
	for _, m := range members {
		d, err := decodeMember(m.UserData)
		if err != nil {
			w.log.Error("member left out of the assignment", "member", m.ID, "reason", err)
			continue
		}
		told[m.ID] = d
	}
	terms := w.terms(told)
	route := &routeData{
		Version: memberVersion, Partitions: terms.Partitions, Active: make(map[string][]string),
		Superseded: superseded(told),
	}
	var candidates []candidate
	names := make(map[string]string) // instance by member
	for _, id := range slices.Sorted(maps.Keys(told)) {
		d := told[id]
		if _, gone := route.Superseded[id]; gone {
			w.log.Warn("two members of one instance name; the older gets nothing", "name", d.Instance, "older", d.Addr, "newer", route.Superseded[id])
			continue
		}
		candidates = append(candidates, d.candidate(id))
		names[id] = d.Instance
		peer := memberData{Version: d.Version, Instance: d.Instance, Addr: d.Addr, HTTP: d.HTTP, Fingerprint: d.Fingerprint, Rack: d.Rack, Secure: d.Secure}
		route.Instances = append(route.Instances, peer)
	}
	p := plan(candidates, terms)
	route.fill(p, names)
	tasks := p.Active
	data := encodeData(route)
	result := make(map[string]broker.Assignment, len(members))
	for _, m := range members {
		a := broker.Assignment{Partitions: make(map[string][]int32), UserData: data}
		for _, id := range tasks[m.ID] {
			topic := terms.topics[id.Subtopology]
			a.Partitions[topic] = append(a.Partitions[topic], id.Partition)
		}
		result[m.ID] = a
	}
	return result, nil
}

// terms are what this instance, as the leader, plans by. Of a subtopology that it
// does not know itself it goes by what members tell.
func (w *Worker) terms(told map[string]*memberData) terms {
	t := terms{
		Partitions: maps.Clone(w.layout.partitions), Stateful: make(map[string]bool),
		Standbys: max(0, w.cfg.Standbys), AcceptableLag: w.cfg.AcceptableLag, WarmUps: w.cfg.WarmUps,
		topics: make(map[string]string),
	}
	for _, s := range w.cfg.Topology.Subtopologies {
		t.topics[s.Name], t.Stateful[s.Name] = s.TopicOf(w.cfg.App), len(s.Feeds) > 0
	}
	foreign := int32(0) // partitions, so far
	for _, id := range slices.Sorted(maps.Keys(told)) {
		for _, sub := range slices.Sorted(maps.Keys(told[id].Inputs)) {
			in := told[id].Inputs[sub]
			if t.topics[sub] == "" && in.Topic != "" && in.Partitions > 0 && in.Partitions <= maxForeign-foreign {
				t.topics[sub], t.Partitions[sub] = in.Topic, in.Partitions
				foreign += in.Partitions
			}
			t.Stateful[sub] = t.Stateful[sub] || in.Schema != ""
		}
	}
	return t
}

// fill writes a plan into the routes; names are the instances by member.
func (d *routeData) fill(p *assignment, names map[string]string) {
	d.Others = make(map[string][][]otherCopy)
	for sub, n := range d.Partitions {
		d.Active[sub] = make([]string, n)
		d.Others[sub] = make([][]otherCopy, n)
	}
	for member, ids := range p.Active {
		for _, id := range ids {
			d.Active[id.Subtopology][id.Partition] = names[member]
		}
	}
	places := make(map[string]int)
	for i := range d.Instances {
		places[d.Instances[i].Instance] = i
	}
	for id, others := range p.Others {
		for _, o := range others {
			at := &d.Others[id.Subtopology][id.Partition]
			*at = append(*at, otherCopy{places[names[o.Member]], o.Role})
		}
	}
}

// assigned takes a new assignment into force; manage does what it asks for.
func (w *Worker) assigned(a broker.Assignment, memberID string, generation int32) {
	m := &membership{memberID: memberID, generation: generation, tasks: make(map[taskID]bool), over: make(chan struct{})}
	var err error
	if m.routes, err = decodeRoutes(a.UserData); err != nil {
		w.log.Error("assignment not understood; serving nothing until the next", "reason", err)
		m.routes = &routeData{}
	} else if m.tasks, err = w.tasksOf(a.Partitions); err != nil {
		w.log.Error("assignment not understood", "reason", err)
	}
	m.others = m.routes.rolesOf(w.cfg.Instance)
	w.checkAddress(m.routes)
	w.checkSecure(m.routes)
	if other, gone := m.routes.Superseded[memberID]; gone {
		w.refused(&RefusedError{
			Reason:  fmt.Sprintf("two instances are named %s (at %s and %s)", w.cfg.Instance, w.cfg.Addr, other),
			Remedy:  "give each a name of its own (instance:)",
			AtStart: true,
		})
	}
	old := w.group.Load()
	m.era = old.era
	if memberID != old.memberID || generation > old.generation+1 {
		m.era++ // another may have owned the tasks in between
	}
	select { // the newest replaces one that manage has not seen
	case unseen := <-w.plans:
		if !maps.Equal(unseen.tasks, m.tasks) {
			m.era++ // a task may have been another's for a while
		}
	default:
	}
	w.group.Store(m)
	close(old.over)
	w.plans <- m
}

// checkAddress makes others know where this instance is: a static member that
// comes back gets the assignment of before, with the address of before.
func (w *Worker) checkAddress(d *routeData) {
	for i := range d.Instances {
		if at := &d.Instances[i]; at.Instance == w.cfg.Instance && (at.Addr != w.cfg.Addr || at.HTTP != w.cfg.HTTP) {
			w.log.Info("the group knows another address of this instance; telling it", "known", at.Addr, "address", w.cfg.Addr)
			w.member.Rejoin()
		}
	}
}

// checkSecure compares how this instance speaks with the others to how they do:
// some by TLS and some not, they do not understand each other. One that starts
// without it among those that have it must not take tasks.
func (w *Worker) checkSecure(d *routeData) {
	for i := range d.Instances {
		at := &d.Instances[i]
		if at.Instance == w.cfg.Instance || at.Secure == w.cfg.Secure {
			continue
		}
		if !w.cfg.Secure && w.group.Load().generation < 0 {
			w.refused(&RefusedError{
				Reason:  fmt.Sprintf("instance %s at %s speaks TLS with the others, and this one does not", at.Instance, at.Addr),
				Remedy:  "set listen.tls",
				AtStart: true,
			})
			return
		}
		w.log.Error("instances with and without listen.tls do not understand each other: give all of them certificates", "host", at.Instance)
		return
	}
}

func (w *Worker) tasksOf(partitions map[string][]int32) (map[taskID]bool, error) {
	tasks := make(map[taskID]bool)
	var err error
	for topic, ps := range partitions {
		known := false
		for _, s := range w.cfg.Topology.Subtopologies {
			if s.TopicOf(w.cfg.App) != topic {
				continue
			}
			known = true
			for _, p := range ps {
				tasks[taskID{s.Name, p}] = true
			}
		}
		if !known {
			err = fmt.Errorf("%w: %s", errUnassigned, topic)
		}
	}
	return tasks, err
}
