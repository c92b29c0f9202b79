package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
)

// ports are the first two digits of the broker's ports.
const ports = "26"

// cluster is the broker that is measured against, and the topics made on it.
type cluster struct {
	addrs  []string
	client *broker.Client
	topics []string
	down   func() error // stops the broker, if it is ours
}

// startCluster connects to the broker that the environment names, or starts one.
func startCluster(ctx context.Context, root string) (*cluster, error) {
	c := &cluster{down: func() error { return nil }}
	if addrs := os.Getenv("STREAMGAUGE_BENCH_KAFKA"); addrs != "" {
		c.addrs = strings.Split(addrs, ",")
	} else {
		script := func(args ...string) error {
			cmd := exec.Command(filepath.Join(root, "deploy", "kafka", "kafka.sh"), args...)
			cmd.Env = append(os.Environ(), "KAFKA_PORTS="+ports, "KAFKA_DIR="+filepath.Join(root, ".cache", "kafka"+ports), "KAFKA_HEAP=1g")
			cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
			return cmd.Run()
		}
		if err := script("up", "1"); err != nil {
			return nil, fmt.Errorf("start Kafka: %w", err)
		}
		c.addrs = []string{"127.0.0.1:" + ports + "091"}
		c.down = func() error { return script("down") }
	}
	client, err := broker.New(broker.Config{Brokers: c.addrs})
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		err = client.Ping(bounded)
	}
	if err != nil {
		return nil, errors.Join(err, c.down())
	}
	c.client = client
	return c, nil
}

// name is what a topic of this run is called on the broker: nobody else has it.
func (c *cluster) name(topic string) string { return fmt.Sprintf("bench-%d-%s", os.Getpid(), topic) }

// create makes a topic of this run.
func (c *cluster) create(ctx context.Context, topic string, partitions int32) error {
	c.topics = append(c.topics, c.name(topic))
	return c.client.CreateTopics(ctx, []broker.TopicSpec{{Name: c.name(topic), Partitions: partitions, Replication: 1}})
}

// close deletes what was made and lets go of the broker.
func (c *cluster) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := c.client.DeleteTopics(ctx, c.topics...)
	return errors.Join(err, c.client.Close(), c.down())
}

// spread are the partitions of a topic.
func spread(topic string, partitions int32) []broker.TopicPartition {
	var tps []broker.TopicPartition
	for p := range partitions {
		tps = append(tps, broker.TopicPartition{Topic: topic, Partition: p})
	}
	return tps
}
