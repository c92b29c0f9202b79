package streamgauge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/streamgauge/streamgauge/internal/load"
	"github.com/streamgauge/streamgauge/processor/broker"
)

const (
	demoPartitions = 6
	// pacedTail are the records that a paced demo spreads over pacedFor.
	pacedTail = 2000
	pacedFor  = 20 * time.Minute
)

// loader puts a demo's records into their topics. What is there already, the
// end offsets say: it is not loaded again.
type loader struct {
	demo   *Demo
	client *broker.Client
	rate   string // paced, max or a number of records a second
	shift  time.Duration
	log    *slog.Logger
}

// demoState is what a state directory keeps of its demo.
type demoState struct {
	ShiftHours int64 `json:"shiftHours"`
}

// shiftFor is by how much the dates move: whole hours, so that the last event
// falls within the hour before the first start, and the same at each start.
func shiftFor(dir string, d *Demo, dates string, now time.Time) (time.Duration, error) {
	if dates == "original" || d.Events.Time == "" {
		return 0, nil
	}
	path := filepath.Join(dir, "demo.json")
	var st demoState
	if b, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(b, &st); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		return time.Duration(st.ShiftHours) * time.Hour, nil
	}
	last := time.Time{}
	err := eachLine(&d.Events, func(_ int, line []byte) error {
		t, err := timeOf(line, d.Events.Time)
		if t.After(last) {
			last = t
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	st.ShiftHours = int64(now.Sub(last) / time.Hour)
	b, err := json.Marshal(st)
	if err != nil {
		return 0, err
	}
	return time.Duration(st.ShiftHours) * time.Hour, os.WriteFile(path, append(b, '\n'), 0o644)
}

func timeOf(line []byte, field string) (time.Time, error) {
	b, err := load.KeyOf(line, field)
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339, string(b))
}

func eachLine(d *Dataset, each func(n int, line []byte) error) error {
	r, err := d.Open()
	if err != nil {
		return fmt.Errorf("records of %s: %w", d.Topic, err)
	}
	defer r.Close()
	if err := load.Lines(r, each); err != nil {
		return fmt.Errorf("records of %s: %w", d.Topic, err)
	}
	return nil
}

// createTopics makes the topics of the demo that are not there.
func (l *loader) createTopics(ctx context.Context) error {
	specs := []broker.TopicSpec{{Name: l.demo.Events.Topic, Partitions: demoPartitions, Replication: -1}}
	for _, t := range l.demo.Tables {
		specs = append(specs, broker.TopicSpec{
			Name: t.Topic, Partitions: demoPartitions, Replication: -1, Configs: map[string]string{"cleanup.policy": "compact"},
		})
	}
	return l.client.CreateTopics(ctx, specs)
}

// run loads until everything is in or ctx ends.
func (l *loader) run(ctx context.Context) error {
	inner, stop := context.WithCancel(ctx)
	defer stop()
	p := l.client.NewProducer(broker.ProducerConfig{Logger: l.log})
	ran := make(chan error, 1)
	go func() { ran <- p.Run(inner) }()
	err := l.load(ctx, p)
	stop()
	err = errors.Join(err, <-ran)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (l *loader) load(ctx context.Context, p *broker.Producer) error {
	for i := range l.demo.Tables {
		if err := l.all(ctx, p, &l.demo.Tables[i]); err != nil {
			return err
		}
	}
	return l.events(ctx, p)
}

// ends are the end offsets of a topic's partitions.
func (l *loader) ends(ctx context.Context, topic string) ([]int64, error) {
	tps := make([]broker.TopicPartition, demoPartitions)
	for i := range tps {
		tps[i] = broker.TopicPartition{Topic: topic, Partition: int32(i)}
	}
	found, err := l.client.Offsets(ctx, tps, broker.Latest)
	if err != nil {
		return nil, fmt.Errorf("read the ends of %s: %w", topic, err)
	}
	ends := make([]int64, demoPartitions)
	for i, tp := range tps {
		ends[i] = found[tp]
	}
	return ends, nil
}

// all loads a table that is not there yet.
func (l *loader) all(ctx context.Context, p *broker.Producer, d *Dataset) error {
	ends, err := l.ends(ctx, d.Topic)
	if err != nil {
		return err
	}
	for _, end := range ends {
		if end > 0 {
			return nil // rows are put by key: again would change nothing
		}
	}
	w := load.NewWriter(p, d.Topic, demoPartitions)
	err = eachLine(d, func(_ int, line []byte) error {
		key, err := load.KeyOf(line, d.Key)
		if err != nil {
			return err
		}
		return w.Write(ctx, load.Record{Partition: -1, Key: key, Value: append([]byte(nil), line...)})
	})
	if err != nil {
		return err
	}
	return w.Flush(ctx)
}

// events loads the events from where their topic ends: record i is the
// i/6th of partition i mod 6.
func (l *loader) events(ctx context.Context, p *broker.Producer) error {
	d := &l.demo.Events
	ends, err := l.ends(ctx, d.Topic)
	if err != nil {
		return err
	}
	var values [][]byte
	err = eachLine(d, func(_ int, line []byte) error {
		v, err := l.shifted(line)
		values = append(values, v)
		return err
	})
	if err != nil {
		return err
	}
	w := load.NewWriter(p, d.Topic, demoPartitions)
	pace := l.pace(len(values))
	began := time.Now()
	for i, v := range values {
		part := i % demoPartitions
		if int64(i/demoPartitions) < ends[part] {
			continue
		}
		if wait := pace(i); wait > 0 {
			if err := w.Flush(ctx); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(wait):
			}
		}
		if err := w.Write(ctx, load.Record{Partition: int32(part), Value: v}); err != nil {
			return err
		}
	}
	if err := w.Flush(ctx); err != nil {
		return err
	}
	l.log.Info("records loaded", "topic", d.Topic, "written", w.Written(), "there", len(values), "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// pace says how long to wait before record i of n.
func (l *loader) pace(n int) func(i int) time.Duration {
	switch l.rate {
	case "max":
		return func(int) time.Duration { return 0 }
	case "paced":
		return func(i int) time.Duration {
			if i < n-pacedTail {
				return 0
			}
			return pacedFor / pacedTail
		}
	}
	perSecond, _ := strconv.ParseFloat(l.rate, 64) // checked with the flags
	began, first := time.Now(), -1
	return func(i int) time.Duration {
		if first < 0 {
			first = i
		}
		due := time.Duration(float64(i-first) / perSecond * float64(time.Second))
		if wait := due - time.Since(began); wait > 5*time.Millisecond {
			return wait
		}
		return 0
	}
}

// shifted moves a record's event time.
func (l *loader) shifted(line []byte) ([]byte, error) {
	if l.shift == 0 {
		return append([]byte(nil), line...), nil
	}
	field := l.demo.Events.Time
	t, err := timeOf(line, field)
	if err != nil {
		return nil, err
	}
	old := `"` + field + `":"`
	at := indexOf(line, old)
	if at < 0 {
		return nil, fmt.Errorf("field %s is not where it is expected", field)
	}
	end := at
	for end < len(line) && line[end] != '"' {
		end++
	}
	out := append([]byte(nil), line[:at]...)
	out = t.Add(l.shift).UTC().AppendFormat(out, time.RFC3339)
	return append(out, line[end:]...), nil
}

// indexOf is where what follows text begins; −1: nowhere.
func indexOf(line []byte, text string) int {
	for i := 0; i+len(text) <= len(line); i++ {
		if string(line[i:i+len(text)]) == text {
			return i + len(text)
		}
	}
	return -1
}
