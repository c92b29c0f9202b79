package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/processor/format"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/schema"
)

// volume is what a bare loop has read. Bytes are as they came over the wire,
// offsets those of records, markers and holes alike.
type volume struct{ records, bytes, offsets int }

// bare fetches partitions read-committed from their starts to their ends, as the
// worker does, and gives each record to what reader makes: one a partition, each
// called by one goroutine.
func bare(ctx context.Context, client *broker.Client, tps []broker.TopicPartition, reader func() func(*broker.Record) error) (volume, error) {
	starts, err := client.Offsets(ctx, tps, broker.Earliest)
	if err != nil {
		return volume{}, err
	}
	ends, err := client.Offsets(ctx, tps, broker.LastStable)
	if err != nil {
		return volume{}, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	f := client.NewFetcher(broker.FetcherConfig{Isolation: broker.ReadCommitted})
	var records, bytes, offsets atomic.Int64
	var left sync.WaitGroup
	for _, tp := range tps {
		chunks := make(chan *broker.Chunk, 1)
		f.Add(tp, starts[tp], func(c *broker.Chunk) { chunks <- c })
		offsets.Add(ends[tp] - starts[tp])
		left.Go(func() {
			read := reader()
			for at := starts[tp]; at < ends[tp]; {
				select {
				case <-ctx.Done():
					return
				case c := <-chunks:
					next, n, err := readChunk(c, read)
					if err != nil {
						stop(fmt.Errorf("fetch %s: %w", tp, err))
						return
					}
					records.Add(int64(n))
					bytes.Add(int64(c.Size()))
					c.Release()
					at = next
					f.Resume(tp, at)
				}
			}
		})
	}
	fetching, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.Run(fetching) }()
	left.Wait()
	end()
	err = errors.Join(<-ended, context.Cause(ctx))
	return volume{int(records.Load()), int(bytes.Load()), int(offsets.Load())}, err
}

func readChunk(c *broker.Chunk, read func(*broker.Record) error) (next int64, n int, err error) {
	if c.Err != nil {
		return 0, 0, c.Err
	}
	next, err = c.Each(func(r *broker.Record) error {
		n++
		return read(r)
	})
	return next, n, err
}

// decoding makes readers that decode records as the worker does, and do nothing
// with them.
func decoding(src *schema.Source) func() func(*broker.Record) error {
	return func() func(*broker.Record) error {
		d := format.NewJSON(src.Fields, src.KeyFormat)
		values := make([]view.Value, len(src.Fields))
		return func(r *broker.Record) error {
			return d.Decode(values, &format.Record{Timestamp: r.Timestamp, Key: r.Key, Value: r.Value, Header: r.Header})
		}
	}
}

// folding makes readers that decode records and fold them into rows in memory: all
// that a worker does but repartitioning, committing and keeping.
func folding(t *schema.Topology) func() func(*broker.Record) error {
	src := t.Sources[0]
	return func() func(*broker.Record) error {
		d := format.NewJSON(src.Fields, src.KeyFormat)
		values := make([]view.Value, len(src.Fields))
		var folds []*fold
		for _, s := range t.Subtopologies {
			for _, f := range s.Feeds {
				folds = append(folds, &fold{view: f.View, rows: make(map[string][]view.Cell), scratch: make([]view.Value, len(f.View.Columns))})
			}
		}
		return func(r *broker.Record) error {
			if err := d.Decode(values, &format.Record{Timestamp: r.Timestamp, Key: r.Key, Value: r.Value, Header: r.Header}); err != nil {
				return err
			}
			at := view.Place{Time: values[src.Time].Int(), Offset: r.Offset}
			for _, f := range folds {
				if err := f.take(values, at); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

// fold is a view's rows, by key.
type fold struct {
	view    *view.View
	rows    map[string][]view.Cell
	key     []byte
	scratch []view.Value
}

func (f *fold) take(values []view.Value, at view.Place) error {
	f.key = f.key[:0]
	for _, i := range f.view.Keys {
		v, err := f.view.Columns[i].Expr(values)
		if err != nil {
			return err
		}
		f.key = view.AppendKey(f.key, v)
	}
	if w := f.view.Window; w != nil {
		f.key = view.AppendStart(f.key, w.Start(at.Time))
	}
	row, ok := f.rows[string(f.key)]
	if !ok {
		row = make([]view.Cell, len(f.view.Columns))
		f.rows[string(f.key)] = row
	}
	return f.view.Accumulate(row, values, at, f.scratch)
}

// skipping makes readers that do nothing.
func skipping() func(*broker.Record) error {
	return func(*broker.Record) error { return nil }
}
