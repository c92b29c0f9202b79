package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/streamgauge/streamgauge/internal/kafka"
	"github.com/streamgauge/streamgauge/internal/settings"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/urfave/cli/v3"
)

func brokersFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "brokers", Usage: "the Kafka at `HOST:PORT,…` (default: as configured, else " + defaultBroker + ")"}
}

func configFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "config", Aliases: []string{"c"},
		Usage: "reach Kafka as an instance with the settings in `FILE` does: its brokers, tls and sasl; STREAMGAUGE_KAFKA_… overrides it",
	}
}

// kafkaConfig is how an instance with these settings would reach Kafka. Of the
// file and the environment only what is about Kafka is read.
func kafkaConfig(file string, brokers, environ []string) (*kafka.Config, error) {
	var s struct {
		Kafka kafka.Config `yaml:"kafka"`
	}
	s.Kafka = kafka.Default()
	if file != "" {
		if err := settings.File(&s, file, "kafka"); err != nil {
			return nil, err
		}
	}
	var ours []string
	for _, e := range environ {
		if strings.HasPrefix(e, settings.Prefix+"KAFKA_") {
			ours = append(ours, e)
		}
	}
	if err := settings.Environment(&s, ours); err != nil {
		return nil, err
	}
	if len(brokers) > 0 {
		s.Kafka.Brokers = brokers
	}
	if err := s.Kafka.Check(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return &s.Kafka, nil
}

// connect makes a client of the Kafka that flags and settings name, and sees
// that it is there.
func connect(ctx context.Context, c *cli.Command) (*broker.Client, error) {
	cfg, err := kafkaConfig(c.String("config"), c.StringSlice("brokers"), os.Environ())
	if err != nil {
		return nil, err
	}
	client, err := cfg.Client("streamgauge-toolbox", nil)
	if err != nil {
		return nil, err
	}
	if err := client.Ping(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}
