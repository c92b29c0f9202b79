package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/streamgauge/streamgauge/internal/load"
	"github.com/streamgauge/streamgauge/processor/broker"
)

const (
	partitions    = 12
	flightsTopic  = "flights"
	slotsTopic    = "departures"
	airportsTopic = "airports"
)

// departures are the records, in order of time.
type departures struct {
	path    string
	records int
	slots   int64 // distinct slots among them, counted as they are loaded
	origins map[string]int64
}

// fetchDepartures makes sure that the data is there.
func fetchDepartures(ctx context.Context, root string, records int) (*departures, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(root, "bench", "data", "fetch.sh"))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("fetch the departures (Node 20 and npm): %w", err)
	}
	return &departures{path: filepath.Join(root, ".cache", "bench", "flights-3m.jsonl"), records: records}, nil
}

// each calls f with every line, which is not valid afterwards.
func (d *departures) each(f func(line []byte) error) error {
	file, err := os.Open(d.path)
	if err != nil {
		return err
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	for n := 0; n < d.records && s.Scan(); n++ {
		if err := f(s.Bytes()); err != nil {
			return err
		}
	}
	return s.Err()
}

// lineForm is how the lines begin, since they are made by one script:
// {"date":"2001-01-01T00:01:00.000Z","origin":"LAS",
const (
	dateAt   = len(`{"date":"`)
	tenths   = len(`2001-01-01T00:0`)
	originAt = dateAt + len(`2001-01-01T00:01:00.000Z","origin":"`)
)

var errForm = errors.New("a line of the departures is not as it should be: delete .cache/bench/flights-3m.jsonl")

// originOf is the airport of a line.
func originOf(line []byte) ([]byte, error) {
	if len(line) < originAt {
		return nil, errForm
	}
	rest := line[originAt:]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return nil, errForm
	}
	return rest[:end], nil
}

// appendSlot appends the key of a line: airport and ten minutes.
func appendSlot(b, line []byte) ([]byte, error) {
	origin, err := originOf(line)
	if err != nil {
		return nil, err
	}
	b = append(append(b, origin...), ' ')
	return append(b, line[dateAt:dateAt+tenths]...), nil
}

// load writes the departures to two topics: without keys, and keyed by slot.
func (b *bench) load(ctx context.Context) error {
	for _, t := range []string{flightsTopic, slotsTopic} {
		if err := b.cluster.create(ctx, t, partitions); err != nil {
			return err
		}
	}
	if err := b.cluster.create(ctx, airportsTopic, 1); err != nil {
		return err
	}
	slots := make(map[string]struct{}, b.data.records/2)
	b.data.origins = make(map[string]int64)
	lines, bytes := 0, 0
	err := b.data.each(func(line []byte) error {
		key, err := appendSlot(nil, line)
		if err != nil {
			return err
		}
		origin, _ := originOf(line)
		slots[string(key)] = struct{}{}
		b.data.origins[string(origin)]++
		lines++
		bytes += len(line)
		return nil
	})
	if err != nil {
		return err
	}
	b.data.slots, b.data.records = int64(len(slots)), lines
	u, err := b.write(ctx, flightsTopic, partitions, func(w func(key, value []byte) error) error {
		return b.data.each(func(line []byte) error { return w(nil, line) })
	})
	if err != nil {
		return err
	}
	b.report.add(line{phase: "load", what: "produce, no keys", figure: u.rates(lines, bytes)})
	u, err = b.writeSlots(ctx)
	b.report.add(line{phase: "load", what: "produce, keyed", figure: u.rates(lines, bytes)})
	return err
}

func (b *bench) writeSlots(ctx context.Context) (usage, error) {
	return b.write(ctx, slotsTopic, partitions, func(w func(key, value []byte) error) error {
		return b.data.each(func(line []byte) error {
			key, err := appendSlot(nil, line)
			if err != nil {
				return err
			}
			return w(key, line)
		})
	})
}

// write runs a producer for as long as feed writes.
func (b *bench) write(ctx context.Context, topic string, partitions int32, feed func(func(key, value []byte) error) error) (usage, error) {
	p := b.cluster.client.NewProducer(broker.ProducerConfig{Linger: 5 * time.Millisecond})
	producing, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(producing) }()
	w := load.NewWriter(p, b.cluster.name(topic), partitions)
	from := now()
	err := feed(func(key, value []byte) error {
		return w.Write(ctx, load.Record{Partition: -1, Key: key, Value: value})
	})
	if err == nil {
		err = w.Flush(ctx)
	}
	u := from.till()
	stop()
	return u, errors.Join(err, <-ended)
}
