package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/streamgauge/streamgauge/internal/chaos/oracle"
	"github.com/streamgauge/streamgauge/internal/load"
	"github.com/streamgauge/streamgauge/processor/broker"
)

// tick is how often what is due goes out, a batch a partition.
const tick = 50 * time.Millisecond

// feed writes the records, paced, and tells the ledger.
type feed struct {
	client   *broker.Client
	producer *broker.Producer
	ran      chan struct{} // closed when the producer has ended
	stop     context.CancelFunc
	ledger   *oracle.Ledger
	failed   atomic.Pointer[error]
	airports map[string]airport // set by table
}

// startFeed makes the topics. Records are never given up: a broker that is away
// holds them up.
func startFeed(ctx context.Context, brokers []string, ledger *oracle.Ledger, log *slog.Logger) (*feed, error) {
	client, err := broker.New(broker.Config{Brokers: brokers, ClientID: "chaos", Logger: log})
	if err != nil {
		return nil, err
	}
	f := &feed{client: client, ledger: ledger, ran: make(chan struct{}), airports: map[string]airport{}}
	f.producer = client.NewProducer(broker.ProducerConfig{DeliveryTimeout: time.Hour, Logger: log})
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop = stop
	go func() {
		defer close(f.ran)
		_ = f.producer.Run(inner) // nil by its contract
	}()
	err = client.CreateTopics(ctx, []broker.TopicSpec{
		{Name: "flights", Partitions: partitions, Replication: -1},
		{Name: "airports", Partitions: partitions, Replication: -1, Configs: map[string]string{"cleanup.policy": "compact"}},
	})
	if err != nil {
		f.close()
		return nil, fmt.Errorf("create the topics: %w", err)
	}
	return f, nil
}

func (f *feed) close() {
	f.stop()
	<-f.ran
	f.client.Close()
}

// table writes the airports.
func (f *feed) table(ctx context.Context, root string) error {
	text, err := lines(root, "airports.jsonl")
	if err != nil {
		return err
	}
	w := load.NewWriter(f.producer, "airports", partitions)
	for _, line := range text {
		var a airport
		if err := json.Unmarshal(line, &a); err != nil {
			return fmt.Errorf("airports: %w", err)
		}
		f.airports[a.IATA] = a
		if err := w.Write(ctx, load.Record{Partition: -1, Key: []byte(a.IATA), Value: line}); err != nil {
			return err
		}
	}
	return w.Flush(ctx)
}

// run feeds the flights over a duration, and generated records beside them. It
// returns when all are acknowledged.
func (f *feed) run(ctx context.Context, flights []oracle.Event, g *generator, rate float64, over time.Duration) error {
	began := time.Now()
	extra := rate * over.Seconds() / float64(len(flights)) // generated records for each flight
	owed, sent := 0.0, 0
	t := time.NewTicker(tick)
	defer t.Stop()
	for sent < len(flights) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
		due := min(len(flights), int(float64(len(flights))*time.Since(began).Seconds()/over.Seconds())+1)
		batches := make([]*broker.BatchBuilder, partitions)
		for ; sent < due && f.mayGo(flights[sent].Date); sent++ {
			f.add(batches, sent%partitions, flights[sent])
			for owed += extra; owed >= 1; owed-- {
				p, e := g.next(flights[sent].Date)
				f.add(batches, p, e)
			}
		}
		if err := f.send(ctx, batches); err != nil {
			return err
		}
		if err := f.failed.Load(); err != nil {
			return *err
		}
	}
	return f.flush(ctx)
}

// mayGo says whether a record of an event time may go out: no record that is on
// its way is so much older.
func (f *feed) mayGo(date int64) bool {
	oldest, found := f.ledger.OldestUnacked()
	return !found || date-oldest < ahead.Milliseconds()
}

func (f *feed) add(batches []*broker.BatchBuilder, p int, e oracle.Event) {
	if batches[p] == nil {
		batches[p] = broker.NewBatchBuilder(broker.LZ4)
	}
	f.ledger.Sent(p, e)
	batches[p].Append(time.Now().UnixMilli(), nil, e.JSON(), nil)
}

func (f *feed) send(ctx context.Context, batches []*broker.BatchBuilder) error {
	for p, b := range batches {
		if b == nil {
			continue
		}
		n := b.Len()
		err := f.producer.Produce(ctx, broker.TopicPartition{Topic: "flights", Partition: int32(p)}, b, func(_ int64, err error) {
			if err != nil {
				err = fmt.Errorf("write flights-%d: %w", p, err)
				f.failed.CompareAndSwap(nil, &err)
				return
			}
			f.ledger.Acked(p, n, time.Now())
		})
		if err != nil {
			return fmt.Errorf("write flights-%d: %w", p, err)
		}
	}
	return nil
}

// flush waits until everything is acknowledged.
func (f *feed) flush(ctx context.Context) error {
	for {
		if _, waiting := f.ledger.OldestUnacked(); !waiting {
			return nil
		}
		if err := f.failed.Load(); err != nil {
			return *err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("records without an acknowledgement: %w", ctx.Err())
		case <-time.After(tick):
		}
	}
}

// ends compares the log's ends with what was acknowledged: a difference is the
// writer's fault or the brokers', not the views'.
func (f *feed) ends(ctx context.Context) error {
	tps := make([]broker.TopicPartition, partitions)
	for p := range tps {
		tps[p] = broker.TopicPartition{Topic: "flights", Partition: int32(p)}
	}
	found, err := f.client.Offsets(ctx, tps, broker.Latest)
	if err != nil {
		return fmt.Errorf("read the ends of flights: %w", err)
	}
	_, acked := f.ledger.Counts()
	for p, tp := range tps {
		if found[tp] != acked[p] {
			return fmt.Errorf("%s ends at %d, acknowledged were %d records", tp, found[tp], acked[p])
		}
	}
	return nil
}
