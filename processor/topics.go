package processor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view/schema"
)

// RefusedError is a state of affairs in which going on could answer wrongly.
// Its text says what is wrong, where, and what to do.
type RefusedError struct {
	Reason string
	Remedy string
	// AtStart: the whole instance must not run, not only one task.
	AtStart bool
}

func (e *RefusedError) Error() string {
	if e.Remedy == "" {
		return e.Reason
	}
	return e.Reason + "; " + e.Remedy
}

func refuse(remedy, format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...), Remedy: remedy}
}

func refuseStart(remedy, format string, args ...any) error {
	return &RefusedError{Reason: fmt.Sprintf(format, args...), Remedy: remedy, AtStart: true}
}

// ofTask makes what would end the instance end the task alone.
func ofTask(err error) error {
	var r *RefusedError
	if !errors.As(err, &r) {
		return err
	}
	c := *r
	c.AtStart = false
	return &c
}

// layout is what the brokers have of the topics that a topology needs.
type layout struct {
	topics     map[string]broker.Topic // by name, all of them
	partitions map[string]int32        // by subtopology
}

// deadLetters is the topic of records that could not be processed.
func deadLetters(app string) string { return app + "-dead-letters" }

// InternalTopics are the topics that belong to an application: repartition
// topics, changelogs and dead letters.
func InternalTopics(app string, t *schema.Topology) []string {
	var names []string
	for _, s := range t.Subtopologies {
		if s.Repartition != nil {
			names = append(names, s.TopicOf(app))
		}
		for _, store := range storesOf(s) {
			names = append(names, schema.Changelog(app, store))
		}
	}
	names = append(names, deadLetters(app))
	slices.Sort(names)
	return slices.Compact(names)
}

// storesOf are the stores that a task of the subtopology keeps, in a fixed
// order.
func storesOf(s *schema.Subtopology) []string {
	var stores []string
	for _, f := range s.Feeds {
		stores = append(stores, f.View.Store)
	}
	return stores
}

// prepareTopics checks that the sources are there, creates the internal topics
// that are missing and checks those that exist.
func prepareTopics(ctx context.Context, cfg *Config) (*layout, error) {
	sources, err := sourceTopics(ctx, cfg)
	if err != nil {
		return nil, err
	}
	specs := internalSpecs(cfg, sources)
	if err := cfg.Client.CreateTopics(ctx, slices.Collect(maps.Values(specs))); err != nil {
		return nil, fmt.Errorf("create the internal topics: %w", err)
	}
	names := append(slices.Collect(maps.Keys(specs)), slices.Collect(maps.Keys(sources))...)
	cluster, err := cfg.Client.Metadata(ctx, names...)
	if err != nil {
		return nil, fmt.Errorf("read the topics: %w", err)
	}
	l := &layout{topics: cluster.Topics, partitions: make(map[string]int32)}
	for _, s := range cfg.Topology.Subtopologies {
		l.partitions[s.Name] = int32(len(cluster.Topics[s.TopicOf(cfg.App)].Partitions))
	}
	return l, checkInternal(ctx, cfg, specs, cluster.Topics)
}

func sourceTopics(ctx context.Context, cfg *Config) (map[string]broker.Topic, error) {
	need := make(map[string]string)
	for _, s := range cfg.Topology.Sources {
		need[s.Topic] = s.Name
	}
	for _, t := range cfg.Topology.Tables {
		need[t.Topic] = t.View.Name
	}
	names := slices.Sorted(maps.Keys(need))
	cluster, err := cfg.Client.Metadata(ctx, names...)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		t := cluster.Topics[name]
		if errors.Is(t.Err, broker.ErrUnknownTopic) {
			return nil, refuseStart("create it, or correct the schema", "topic %q, which %s reads, does not exist", name, need[name])
		}
		if t.Err != nil {
			return nil, fmt.Errorf("topic %q: %w", name, t.Err)
		}
	}
	return cluster.Topics, nil
}

func internalSpecs(cfg *Config, sources map[string]broker.Topic) map[string]broker.TopicSpec {
	specs := make(map[string]broker.TopicSpec)
	add := func(name string, partitions int, configs map[string]string) {
		specs[name] = broker.TopicSpec{Name: name, Partitions: int32(partitions), Replication: cfg.Replication, Configs: configs}
	}
	for _, s := range cfg.Topology.Subtopologies {
		topic := s.Topic
		if s.Repartition != nil {
			topic = s.Repartition.Source.Topic
		}
		n := len(sources[topic].Partitions)
		if s.Repartition != nil {
			add(s.TopicOf(cfg.App), n, map[string]string{"cleanup.policy": "delete", "retention.ms": "-1"})
		}
		for _, store := range storesOf(s) {
			add(schema.Changelog(cfg.App, store), n, map[string]string{
				"cleanup.policy": "compact", "max.message.bytes": fmt.Sprint(maxMessageBytes),
			})
		}
	}
	add(deadLetters(cfg.App), 1, map[string]string{
		"cleanup.policy": "delete", "max.message.bytes": fmt.Sprint(maxMessageBytes),
	})
	return specs
}

// checkInternal compares what exists with what is needed: a topic with another
// partition count or policy would lose state or answer wrongly.
func checkInternal(ctx context.Context, cfg *Config, specs map[string]broker.TopicSpec, topics map[string]broker.Topic) error {
	names := slices.Sorted(maps.Keys(specs))
	configs, err := cfg.Client.TopicConfigs(ctx, names...)
	if err != nil {
		return fmt.Errorf("read the configuration of the internal topics: %w", err)
	}
	for _, name := range names {
		t, spec := topics[name], specs[name]
		if t.Err != nil {
			return fmt.Errorf("topic %q: %w", name, t.Err)
		}
		if got, want := len(t.Partitions), int(spec.Partitions); got != want {
			return refuseStart(cfg.resetHint(), "topic %q has %d partitions where its source has %d: the number of partitions of a source must not change under an application", name, got, want)
		}
		policy, ok := configs[name]["cleanup.policy"]
		if want := spec.Configs["cleanup.policy"]; ok && want == "compact" && policy != want {
			return refuseStart("set cleanup.policy=compact on it, after making sure that nothing was deleted from it", "changelog %q has cleanup.policy=%s and would lose state", name, policy)
		}
	}
	return nil
}

// resetHint is what to do when only starting over helps.
func (c *Config) resetHint() string {
	if c.StartOver != "" {
		return c.StartOver
	}
	return "to start over, stop every instance and run: streamgauge reset --app " + c.App + " --schema FILE --state " + c.StateDir
}

// inputs are the topics that the group subscribes to.
func inputs(app string, t *schema.Topology) []string {
	names := make([]string, 0, len(t.Subtopologies))
	for _, s := range t.Subtopologies {
		names = append(names, s.TopicOf(app))
	}
	slices.Sort(names)
	return names
}

// joinNames lists names for a message, at most a few of them.
func joinNames(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
