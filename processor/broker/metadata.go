package broker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Cluster is one answer to a metadata request.
type Cluster struct {
	ID         string
	Controller int32
	Brokers    []Broker
	Topics     map[string]Topic // every topic asked for, with Err set where it is missing
}

// Broker is a broker of the cluster at its advertised address.
type Broker struct {
	ID   int32
	Host string
	Port int32
	Rack string
}

// Topic is a topic's incarnation and partitions.
type Topic struct {
	Name       string
	ID         [16]byte // differs between a topic and its recreation
	Internal   bool
	Partitions []Partition // sorted by ID
	Err        error       // ErrUnknownTopic where there is none

	operations int32 // that ACLs allow, a bit each, where asked for
}

// Partition is a partition and who leads it.
type Partition struct {
	ID     int32
	Leader int32 // -1 while there is none
	Epoch  int32 // of the leader
	Err    error // such as ErrLeaderNotAvailable
}

// Metadata asks the cluster about the topics, all of them where none is named.
// A topic that does not exist is reported by its Err and never created. The
// answer is live, not cached; connection errors are retried within ctx.
func (c *Client) Metadata(ctx context.Context, topics ...string) (Cluster, error) {
	var cluster Cluster
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		cluster, err = c.metadata(ctx, topics)
		return err
	})
	if err != nil {
		return Cluster{}, fmt.Errorf("reading cluster metadata: %w", err)
	}
	return cluster, nil
}

// metadata asks once. nil topics are all, an empty list is none. What it learns
// of leaders is remembered.
func (c *Client) metadata(ctx context.Context, topics []string) (Cluster, error) {
	return c.describeTopics(ctx, topics, false)
}

// describeTopics also asks which operations are allowed, where access is true.
func (c *Client) describeTopics(ctx context.Context, topics []string, access bool) (Cluster, error) {
	e := encoder{flex: true}
	if topics == nil {
		e.array(-1)
	} else {
		e.array(len(topics))
	}
	for _, name := range topics {
		e.b = append(e.b, make([]byte, 16)...) // by name, not by id
		e.string(name)
		e.end()
	}
	e.bool(false) // never create
	e.bool(access)
	e.end()
	d, _, err := c.send(ctx, request{api: apiMetadata, node: anyNode, body: e.b})
	if err != nil {
		return Cluster{}, err
	}
	cluster := decodeCluster(d)
	if d.err != nil {
		return Cluster{}, fmt.Errorf("metadata: %w", d.err)
	}
	for _, name := range topics {
		if _, ok := cluster.Topics[name]; !ok {
			cluster.Topics[name] = Topic{Name: name, Err: ErrUnknownTopic}
		}
	}
	c.leaders.store(cluster.Topics)
	return cluster, nil
}

func decodeCluster(d *decoder) Cluster {
	cluster := Cluster{Topics: make(map[string]Topic)}
	d.int32() // throttle
	for range d.items() {
		cluster.Brokers = append(cluster.Brokers, Broker{ID: d.int32(), Host: d.string(), Port: d.int32(), Rack: d.string()})
		d.end()
	}
	cluster.ID = d.string()
	cluster.Controller = d.int32()
	for range d.items() {
		t := Topic{Err: codeError(d.int16(), ""), Name: d.string(), ID: d.uuid(), Internal: d.bool()}
		for range d.items() {
			p := Partition{Err: codeError(d.int16(), ""), ID: d.int32(), Leader: d.int32(), Epoch: d.int32()}
			d.int32s() // replicas
			d.int32s() // in sync
			d.int32s() // offline
			d.end()
			t.Partitions = append(t.Partitions, p)
		}
		t.operations = d.int32()
		d.end()
		slices.SortFunc(t.Partitions, func(a, b Partition) int { return int(a.ID) - int(b.ID) })
		cluster.Topics[t.Name] = t
	}
	d.end()
	return cluster
}

// leaderCache remembers topics for routing.
type leaderCache struct {
	mu     sync.Mutex // guards topics
	topics map[string]cachedTopic
}

type cachedTopic struct {
	Topic
	at time.Time
}

func (l *leaderCache) store(topics map[string]Topic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.topics == nil {
		l.topics = make(map[string]cachedTopic)
	}
	now := time.Now()
	for name, t := range topics {
		if t.Err != nil {
			delete(l.topics, name)
			continue
		}
		l.topics[name] = cachedTopic{t, now}
	}
}

func (l *leaderCache) load(name string, ttl time.Duration) (Topic, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.topics[name]
	if !ok || time.Since(t.at) > ttl {
		return Topic{}, false
	}
	return t.Topic, true
}

// forget makes the next request that needs the topics ask for them anew.
func (l *leaderCache) forget(topics ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range topics {
		delete(l.topics, name)
	}
}

// leader finds the partition; an error where it has no leader.
func (t Topic) leader(partition int32) (Partition, error) {
	if t.Err != nil {
		return Partition{}, t.Err
	}
	i, ok := slices.BinarySearchFunc(t.Partitions, partition, func(p Partition, id int32) int { return int(p.ID) - int(id) })
	if !ok {
		return Partition{}, ErrUnknownTopic
	}
	p := t.Partitions[i]
	if p.Leader < 0 {
		if p.Err != nil {
			return p, p.Err
		}
		return p, ErrLeaderNotAvailable
	}
	return p, nil
}

// lookup answers from the cache and asks once for what is not in it.
func (c *Client) lookup(ctx context.Context, names []string) (map[string]Topic, error) {
	found := make(map[string]Topic, len(names))
	var missing []string
	for _, name := range names {
		if t, ok := c.leaders.load(name, c.cfg.MetadataTTL); ok {
			found[name] = t
		} else if !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	cluster, err := c.metadata(ctx, missing)
	if err != nil {
		return nil, err
	}
	for _, name := range missing {
		found[name] = cluster.Topics[name]
	}
	return found, nil
}

// byLeader sorts partitions by the broker that leads them. A partition without
// a leader fails the whole call, with the partition in the error.
func (c *Client) byLeader(ctx context.Context, tps []TopicPartition) (map[int32][]TopicPartition, error) {
	names := make([]string, 0, len(tps))
	for _, g := range byTopic(tps) {
		names = append(names, g.topic)
	}
	topics, err := c.lookup(ctx, names)
	if err != nil {
		return nil, err
	}
	leaders := make(map[int32][]TopicPartition)
	for _, tp := range tps {
		p, err := topics[tp.Topic].leader(tp.Partition)
		if err != nil {
			c.leaders.forget(tp.Topic)
			return nil, fmt.Errorf("%v: %w", tp, err)
		}
		leaders[p.Leader] = append(leaders[p.Leader], tp)
	}
	return leaders, nil
}

// topicPartitions are the partitions of one topic in a request.
type topicPartitions struct {
	topic      string
	partitions []int32
}

// byTopic groups partitions for the wire: topics in the order of their first
// partition, partitions in the order given.
func byTopic(tps []TopicPartition) []topicPartitions {
	var groups []topicPartitions
	index := make(map[string]int)
	for _, tp := range tps {
		i, ok := index[tp.Topic]
		if !ok {
			i = len(groups)
			index[tp.Topic] = i
			groups = append(groups, topicPartitions{topic: tp.Topic})
		}
		groups[i].partitions = append(groups[i].partitions, tp.Partition)
	}
	return groups
}

// sortedPartitions lists a map's partitions in a fixed order.
func sortedPartitions[V any](m map[TopicPartition]V) []TopicPartition {
	tps := make([]TopicPartition, 0, len(m))
	for tp := range m {
		tps = append(tps, tp)
	}
	slices.SortFunc(tps, compareTopicPartition)
	return tps
}

func compareTopicPartition(a, b TopicPartition) int {
	switch {
	case a.Topic < b.Topic:
		return -1
	case a.Topic > b.Topic:
		return 1
	}
	return int(a.Partition) - int(b.Partition)
}
