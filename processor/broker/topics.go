package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// TopicSpec describes a topic to be created.
type TopicSpec struct {
	Name        string
	Partitions  int32 // -1: the broker's default
	Replication int16 // -1: the broker's default
	Configs     map[string]string
}

// CreateTopics creates the topics and returns once every one of them has
// leaders. A topic that exists is fine, whatever its partitions and
// configuration; callers that care compare with Metadata and TopicConfigs. The
// errors of several topics are joined, each naming its topic.
func (c *Client) CreateTopics(ctx context.Context, topics []TopicSpec) error {
	if len(topics) == 0 {
		return nil
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	err := c.retry(ctx, func(ctx context.Context) error { return c.createTopics(ctx, topics) })
	if err != nil {
		return err
	}
	for b := (backoff{}); ; {
		err := c.settled(ctx, topics)
		if err == nil || b.wait(ctx) != nil {
			return err
		}
	}
}

// settled tells whether the topics are known and all their partitions led.
func (c *Client) settled(ctx context.Context, topics []TopicSpec) error {
	names := make([]string, len(topics))
	for i, spec := range topics {
		names[i] = spec.Name
	}
	cluster, err := c.metadata(ctx, names)
	if err != nil {
		return fmt.Errorf("waiting for new topics: %w", err)
	}
	for _, name := range names {
		t := cluster.Topics[name]
		if t.Err == nil && len(t.Partitions) == 0 {
			t.Err = ErrLeaderNotAvailable
		}
		for _, p := range t.Partitions {
			if _, err := t.leader(p.ID); err != nil {
				t.Err = err
			}
		}
		if t.Err != nil {
			return fmt.Errorf("waiting for new topic %s: %w", name, t.Err)
		}
	}
	return nil
}

func (c *Client) createTopics(ctx context.Context, topics []TopicSpec) error {
	e := encoder{flex: true}
	e.array(len(topics))
	for _, t := range topics {
		e.string(t.Name)
		e.int32(t.Partitions)
		e.int16(t.Replication)
		e.array(0) // assignments
		e.array(len(t.Configs))
		for _, name := range slices.Sorted(maps.Keys(t.Configs)) {
			e.string(name)
			e.string(t.Configs[name])
			e.end()
		}
		e.end()
	}
	e.int32(c.timeoutMillis())
	e.bool(false) // not only validate
	e.end()
	d, err := c.askController(ctx, apiCreateTopics, e.b)
	if err != nil {
		return fmt.Errorf("creating topics: %w", err)
	}
	var errs []error
	d.int32() // throttle
	for range d.items() {
		name, code, message := d.string(), d.int16(), d.string()
		d.int32() // partitions
		d.int16() // replication
		for range d.items() {
			d.string()
			d.string()
			d.bool()
			d.int8()
			d.bool()
			d.end()
		}
		d.end()
		if err := codeError(code, message); err != nil && !errors.Is(err, ErrTopicExists) {
			errs = append(errs, fmt.Errorf("creating topic %s: %w", name, err))
		}
	}
	return errors.Join(append(errs, d.err)...)
}

// askController sends a request to the broker that the cluster calls its
// controller; under KRaft that one forwards.
func (c *Client) askController(ctx context.Context, a api, body []byte) (*decoder, error) {
	cluster, err := c.metadata(ctx, []string{})
	if err != nil {
		return nil, err
	}
	d, _, err := c.send(ctx, request{api: a, node: cluster.Controller, body: body})
	return d, err
}

func (c *Client) timeoutMillis() int32 { return int32(c.cfg.RequestTimeout.Milliseconds()) }

// DeleteTopics deletes the topics. One that does not exist is fine.
func (c *Client) DeleteTopics(ctx context.Context, topics ...string) error {
	if len(topics) == 0 {
		return nil
	}
	defer c.leaders.forget(topics...)
	return c.retry(ctx, func(ctx context.Context) error {
		e := encoder{flex: true}
		e.array(len(topics))
		for _, name := range topics {
			e.string(name)
		}
		e.int32(c.timeoutMillis())
		e.end()
		d, err := c.askController(ctx, apiDeleteTopics, e.b)
		if err != nil {
			return fmt.Errorf("deleting topics: %w", err)
		}
		var errs []error
		d.int32() // throttle
		for range d.items() {
			name, code := d.string(), d.int16()
			d.end()
			if err := codeError(code, ""); err != nil && !errors.Is(err, ErrUnknownTopic) {
				errs = append(errs, fmt.Errorf("deleting topic %s: %w", name, err))
			}
		}
		return errors.Join(append(errs, d.err)...)
	})
}

// DeleteRecords removes the records below the given offsets: they become the
// partitions' log starts. An offset at or below the log start does nothing.
func (c *Client) DeleteRecords(ctx context.Context, before map[TopicPartition]int64) error {
	return c.perLeader(ctx, sortedPartitions(before), func(ctx context.Context, node int32, tps []TopicPartition) error {
		e := encoder{flex: true}
		groups := byTopic(tps)
		e.array(len(groups))
		for _, g := range groups {
			e.string(g.topic)
			e.array(len(g.partitions))
			for _, p := range g.partitions {
				e.int32(p)
				e.int64(before[TopicPartition{g.topic, p}])
				e.end()
			}
			e.end()
		}
		e.int32(c.timeoutMillis())
		e.end()
		d, _, err := c.send(ctx, request{api: apiDeleteRecords, node: node, body: e.b})
		if err != nil {
			return fmt.Errorf("deleting records: %w", err)
		}
		var errs []error
		d.int32() // throttle
		for range d.items() {
			topic := d.string()
			for range d.items() {
				tp := TopicPartition{topic, d.int32()}
				d.int64() // log start
				if err := codeError(d.int16(), ""); err != nil && !errors.Is(err, ErrOffsetOutOfRange) {
					errs = append(errs, fmt.Errorf("deleting records of %v: %w", tp, err))
				}
				d.end()
			}
			d.end()
		}
		return errors.Join(append(errs, d.err)...)
	})
}

// perLeader runs ask once per leader of the partitions, all leaders at once,
// and again, for all, while an error is retriable. ask must be safe to repeat.
func (c *Client) perLeader(ctx context.Context, tps []TopicPartition, ask func(context.Context, int32, []TopicPartition) error) error {
	if len(tps) == 0 {
		return nil
	}
	return c.retry(ctx, func(ctx context.Context) error {
		leaders, err := c.byLeader(ctx, tps)
		if err != nil {
			return err
		}
		var wg sync.WaitGroup
		errs := make([]error, 0, len(leaders))
		results := make(chan error, len(leaders)) // one each, so that none blocks
		for node, part := range leaders {
			wg.Go(func() { results <- ask(ctx, node, part) })
		}
		wg.Wait()
		close(results)
		for err := range results {
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			for _, g := range byTopic(tps) {
				c.leaders.forget(g.topic)
			}
			return err
		}
		return nil
	})
}

// resourceTopic is Kafka's number for a topic among the configurable things.
const resourceTopic = 2

// TopicConfigs reads the effective configuration of the topics, defaults
// included, by topic and name. A value the broker hides is empty.
func (c *Client) TopicConfigs(ctx context.Context, topics ...string) (map[string]map[string]string, error) {
	var configs map[string]map[string]string
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		configs, err = c.topicConfigs(ctx, topics)
		return err
	})
	return configs, err
}

func (c *Client) topicConfigs(ctx context.Context, topics []string) (map[string]map[string]string, error) {
	e := encoder{flex: true}
	e.array(len(topics))
	for _, name := range topics {
		e.int8(resourceTopic)
		e.string(name)
		e.array(-1) // every key
		e.end()
	}
	e.bool(false) // no synonyms
	e.bool(false) // no documentation
	e.end()
	d, _, err := c.send(ctx, request{api: apiDescribeConfigs, node: anyNode, body: e.b})
	if err != nil {
		return nil, fmt.Errorf("reading topic configurations: %w", err)
	}
	configs := make(map[string]map[string]string, len(topics))
	var errs []error
	d.int32() // throttle
	for range d.items() {
		code, message := d.int16(), d.string()
		d.int8() // resource type
		name := d.string()
		configs[name] = decodeConfigs(d)
		d.end()
		if err := codeError(code, message); err != nil {
			errs = append(errs, fmt.Errorf("reading the configuration of topic %s: %w", name, err))
		}
	}
	if err := errors.Join(append(errs, d.err)...); err != nil {
		return nil, err
	}
	return configs, nil
}

func decodeConfigs(d *decoder) map[string]string {
	values := make(map[string]string)
	for range d.items() {
		key := d.string()
		values[key] = d.string()
		d.bool() // read only
		d.int8() // source
		d.bool() // sensitive
		for range d.items() {
			d.string()
			d.string()
			d.int8()
			d.end()
		}
		d.int8()   // type
		d.string() // documentation
		d.end()
	}
	return values
}
