package processor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/processor/store"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// A commit's rows travel in batches of bounded size, whose last in each
// changelog ends with the commit record.
func TestCommitBatchesAreBounded(t *testing.T) {
	l := benched(t, 0, 0)
	for i := range 20_000 {
		l.applyAll(t, fmt.Sprintf("key%07d", i), 0, int64(i))
	}
	rows, last := make(map[broker.TopicPartition]int), make(map[broker.TopicPartition]int)
	next := l.rec.clone()
	for _, b := range l.batches(l.agg.takeRun(), &next) {
		if b.Records.Size() > maxBatch+1<<10 {
			t.Errorf("%s: a batch of %d bytes", b.TopicPartition, b.Records.Size())
		}
		rows[b.TopicPartition] += b.Records.Len()
		last[b.TopicPartition]++
	}
	for _, tp := range l.changelog {
		if rows[tp] != 20_001 || last[tp] < 2 {
			t.Errorf("%s: %d records in %d batches", tp, rows[tp], last[tp])
		}
	}
}

// A flood of bad records, and one larger than the dead letters take, hurts only
// itself (invariant 6).
func TestFloodOfBadRecords(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 1)
	var bad []message
	for i := range 3000 {
		bad = append(bad, keyed("a", fmt.Sprintf(`{"page":%d,"x":%q}`, i, strings.Repeat(fmt.Sprint(i), 400))))
	}
	for part := range slices.Chunk(bad, 200) {
		c.produce("hits", part...)
	}
	c.produce("hits", keyed("a", `{"page":"a","at":"2024-01-01T00:00:00Z","ms":7}`))
	in := c.start("one")
	in.becomes(t, all("page-totals"), "hits", "hits=1")
	if n := len(c.letters(3000)); n != 3000 {
		t.Errorf("%d dead letters", n)
	}
}

func TestLettersLeaveOutWhatIsTooLarge(t *testing.T) {
	var x letters
	small := &broker.Record{Value: make([]byte, 100<<10)}
	for range 12 {
		x.add(broker.TopicPartition{Topic: "a"}, small, "V", errors.New("bad"))
	}
	x.add(broker.TopicPartition{Topic: "a"}, &broker.Record{Value: make([]byte, maxLetter+1)}, "V", errors.New("bad"))
	n := 0
	for _, b := range x.take() {
		if n += b.Len(); b.Size() > maxBatch+1<<10 {
			t.Errorf("a batch of %d bytes", b.Size())
		}
	}
	if n != 13 || !x.empty() {
		t.Errorf("%d letters, empty %t", n, x.empty())
	}
}

// A bad record makes no row of a key that had none.
func TestBadRecordMakesNoRow(t *testing.T) {
	_, in := one(t, `
type S @source(topic: "s", time: "at") { k: String! at: DateTime! n: Long! }
type Sums @view(from: "S", by: "k") { k: String! n: Long! @count s: Long! @sum(of: "n * n") }
type Query { sums(k: String!): Sums @lookup }`, "s", 1, lines(1,
		`{"k":"a","at":"2024-01-01T00:00:00Z","n":9223372036854775807}`, `{"k":"b","at":"2024-01-01T00:00:00Z","n":3}`)...)
	in.becomes(t, all("sums"), "k n s", "k=b n=1 s=9")
}

// Expired windows are out of reads at once; their tombstones follow with the
// commits, and only then their segments.
func TestSweepDeletesExpiredWindows(t *testing.T) {
	l := benched(t, 100, 24)
	w := l.agg.feeds[1].View.Window
	hours := l.agg.feeds[1].store
	l.rec.Stream = w.Retain + 2*segmentSpan(w)
	live := func() int64 {
		snap := l.store.Snapshot()
		defer snap.Release()
		return snap.Count(hours)
	}
	if n := live(); n != 2400 {
		t.Fatalf("%d windows", n)
	}
	tombstones := 0
	for range 3 {
		run := l.expire(l.agg.takeRun())
		for _, e := range run {
			if e.Value != nil || e.Store != hours {
				t.Fatalf("entry %+v", e)
			}
		}
		tombstones += len(run)
		if n := live(); n != int64(2400-tombstones+len(run)) {
			t.Fatalf("%d windows before the commit", n)
		}
		next := l.rec.clone()
		next.Seq++
		l.publish(run, &next, nil)
	}
	if n := live(); n != 0 || tombstones != 2400 {
		t.Errorf("%d windows left after %d tombstones", n, tombstones)
	}
	// A window in which a record fell before time went on is deleted with them.
	l.rec.Stream += segmentSpan(w)
	key := view.AppendStart(view.AppendKey(nil, view.OfString("key")), segmentSpan(w))
	run := l.expire(store.Run{{Store: hours, Key: key, Value: []byte{1, 0x80}}})
	if len(run) != 1 || run[0].Value != nil {
		t.Errorf("%+v", run)
	}
}

// A file that has reached the end of its map is opened anew, and nothing is lost.
func TestFullFileIsOpenedAnew(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 1)
	in := c.start("one", func(cfg *Config) { cfg.MmapSize, cfg.CheckpointInterval = 1<<20, 50*time.Millisecond })
	const pages = 12_000
	for from := 0; from < pages; from += 2000 {
		var hits []message
		for i := range 2000 {
			page := fmt.Sprintf("page-%06d", from+i)
			hits = append(hits, keyed(page, fmt.Sprintf(`{"page":%q,"at":"2024-01-01T00:00:00Z","ms":7}`, page)))
		}
		c.produce("hits", hits...)
	}
	size := read.Query{Store: "page-totals", Op: read.Size}
	until(t, "all pages are counted and in the file", func() bool {
		as, err := in.Read(t.Context(), []*read.Request{{Query: size}})
		return err == nil && as[0].Err == nil && as[0].Count == pages && count(t, in.metrics.restarts) > 0
	})
	if n := count(t, in.metrics.discarded); n != 0 {
		t.Errorf("%v files discarded", n)
	}
}

// Watchers of a key hear of it, once added, after each change, and when it moves.
func TestWatch(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 1)
	in := c.start("one")
	until(t, "ready", func() bool { return in.Status().Ready })
	var mu sync.Mutex // guards heard
	heard := make(map[string]int)
	commands, watched := make(chan read.WatchCommand), make(chan error, 1)
	go func() {
		watched <- in.Watch(t.Context(), commands, func(e read.Event) {
			mu.Lock()
			defer mu.Unlock()
			heard[fmt.Sprint(e.ID, " ", e.Kind)]++
		})
	}()
	hears := func(want string) {
		t.Helper()
		until(t, want, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return fmt.Sprint(heard["1 0"], heard["2 0"], heard["3 1"], heard["1 1"]) == want
		})
	}
	watch := func(id uint64, store, page string) {
		key := view.AppendKey(nil, view.OfString(page))
		commands <- read.WatchCommand{Add: &read.Interest{ID: id, Store: store, Keys: [][]byte{key}}}
	}
	watch(1, "page-totals", "a")
	hears("1 0 0 0")
	watch(2, "page-totals", "b")
	watch(3, "nothing", "a")
	hears("1 1 1 0")
	c.produce("hits", keyed("a", `{"page":"a","at":"2024-01-01T00:00:00Z","ms":7}`))
	hears("2 1 1 0")
	if err := in.close(); err != nil {
		t.Fatal(err)
	}
	hears("2 1 1 1")
	close(commands)
	if err := <-watched; err != nil {
		t.Error(err)
	}
}

// A task whose place another owner took for a while must not take that one's
// transaction for its own, though it has the seq that its own would have had.
func TestAnotherOwnersCommitIsNotOurs(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 1)
	in := c.start("one")
	until(t, "ready", func() bool { return in.Status().Ready })
	task := in.task(taskID{"hits", 0})
	var err error
	asked := task.ask(t.Context(), task.serving.Load(), func(c *taskCopy) {
		other := in.client.NewTransaction("test-hits_0", 10*time.Second)
		if err = other.Init(t.Context()); err != nil {
			return
		}
		m := in.membership()
		_, err = other.Commit(t.Context(), broker.TxnCommit{
			Group: "test", MemberID: m.memberID, Generation: m.generation,
			Offsets: map[broker.TopicPartition]broker.OffsetCommit{c.input: {Offset: c.last.Position, Metadata: fmt.Sprint(c.last.Seq+1, " another")}},
		})
	})
	if err := errors.Join(asked, err); err != nil {
		t.Fatal(err)
	}
	restarts := count(t, in.metrics.restarts)
	// It starts over from its changelog, and goes on.
	c.produce("hits", keyed("a", `{"page":"a","at":"2024-01-01T00:00:00Z","ms":7}`))
	in.becomes(t, all("page-totals"), "hits", "hits=1")
	if count(t, in.metrics.restarts) == restarts {
		t.Error("it went on from what it had")
	}
}
