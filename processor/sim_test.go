package processor

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamgauge/streamgauge/internal/simnet"
	"github.com/streamgauge/streamgauge/processor/broker"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
	"github.com/twmb/franz-go/pkg/kfake"
)

var (
	simSeeds = flag.Int("seeds", fewSeeds, "simulated clusters in TestSimulation; more than by default: every crash point too")
	simSeed  = flag.Uint64("seed", 0, "the only seed of TestSimulation")
	simTrace = flag.String("traces", "", "folder for the traces of those that fail")
)

const fewSeeds = 50

// A stateful source task that also forwards, a stateless one, and three
// repartition tasks a partition, one of them with windows.
const simSchema = `
type Visit @source(topic: "visits", key: "user", time: "at") { user: String! at: DateTime! page: String! n: Long! }
type Tick @source(topic: "ticks", time: "at") { k: String! at: DateTime! n: Long! }
type ByUser @view(from: "Visit", by: "user") { user: String! c: Long! @count s: Long! @sum(of: "n") hi: Long @max(of: "n") last: Long @last(of: "n") }
type ByPage @view(from: "Visit", by: "page") { page: String! c: Long! @count s: Long! @sum(of: "n") last: Long @last(of: "n") }
type PageMinute @view(from: "Visit", by: "page") @window(size: "1m", grace: "1d", retain: "30d") {
  page: String! start: DateTime! @windowStart c: Long! @count s: Long! @sum(of: "n") }
type ByTick @view(from: "Tick", by: "k") { k: String! c: Long! @count s: Long! @sum(of: "n") first: Long @first(of: "n") }
type Query {
  byUser(user: String!): ByUser @lookup
  byPage(page: String!): ByPage @lookup
  pageMinutes(page: String!): [PageMinute!] @windows
  byTick(k: String!): ByTick @lookup
}`

const simPartitions = 3

// sim is a cluster in virtual time: a broker of two nodes, a loader whose
// records are all acknowledged, and instances that come and go.
type sim struct {
	t      *testing.T
	rng    *rand.Rand
	net    *simnet.Net
	broker *kfake.Cluster
	topo   *schema.Topology

	mu    sync.Mutex // guards trace
	trace []string

	loader *broker.Client
	load   *broker.Producer
	fold   fold
	next   map[broker.TopicPartition]int64

	standbys   int
	acceptable int64

	starts    int
	instances []*simInstance // by slot
	ending    sync.WaitGroup // of killed instances
	watch     *observer
}

// simInstance is one incarnation of an instance.
type simInstance struct {
	*Worker
	slot   int
	host   *simnet.Host
	wire   *wire
	client *broker.Client
	dir    string
	stop   context.CancelFunc
	done   chan error
}

func newSim(t *testing.T, seed uint64) *sim {
	loaded, err := schema.Load("sim.graphqls", []byte(simSchema))
	if err != nil {
		t.Fatal(err)
	}
	s := &sim{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), topo: loaded.Topology,
		net:  simnet.New(seed, 200*time.Microsecond, 500*time.Microsecond),
		fold: make(fold), next: make(map[broker.TopicPartition]int64),
		instances: make([]*simInstance, 3),
	}
	s.standbys = []int{1, 1, 2, -1}[s.rng.IntN(4)]
	s.acceptable = []int64{1, 20, 10_000}[s.rng.IntN(3)]
	s.broker, err = kfake.NewCluster(kfake.NumBrokers(2), kfake.Ports(9092, 9093), kfake.ListenFn(s.net.Host("broker").Listen))
	if err != nil {
		t.Fatal(err)
	}
	s.loader = s.client(s.net.Host("loader").Dial)
	for _, topic := range []string{"visits", "ticks"} {
		spec := broker.TopicSpec{Name: topic, Partitions: simPartitions, Replication: 1}
		if err := s.loader.CreateTopics(t.Context(), []broker.TopicSpec{spec}); err != nil {
			t.Fatal(err)
		}
	}
	s.load = s.loader.NewProducer(broker.ProducerConfig{})
	s.watch = newObserver()
	return s
}

func (s *sim) client(dial func(context.Context, string, string) (net.Conn, error)) *broker.Client {
	c, err := broker.New(broker.Config{Brokers: []string{"127.0.0.1:9092", "127.0.0.1:9093"}, Dial: dial, MetadataTTL: 2 * time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *sim) note(format string, args ...any) {
	at := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).Round(time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, fmt.Sprintf("%9s ", at)+fmt.Sprintf(format, args...))
}

// start starts an instance in a slot, on a state directory; prepare is called
// before it runs.
func (s *sim) start(slot int, dir string, prepare ...func(*simInstance)) {
	s.starts++
	name := fmt.Sprintf("i%d-%d", slot, s.starts)
	s.note("start %s", name)
	in := &simInstance{slot: slot, host: s.net.Host(name), dir: dir, done: make(chan error, 1)}
	in.wire = &wire{way: in.host.Dial}
	in.client = s.client(in.wire.dial)
	w, err := New(Config{
		App: "sim", Instance: fmt.Sprintf("i%d", slot), Topology: s.topo, Client: in.client, StateDir: dir,
		Replication: 1, MmapSize: 1 << 26, CheckpointInterval: 7 * time.Second, Logger: simLogger(s.t, name),
		Standbys: s.standbys, AcceptableLag: s.acceptable, Rack: fmt.Sprint("rack", slot%2),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	in.Worker = w
	for _, f := range prepare {
		f(in)
	}
	ctx, cancel := context.WithCancel(context.Background())
	in.stop = cancel
	go func() {
		err := w.Run(ctx)
		in.done <- errors.Join(err, in.client.Close())
	}()
	s.instances[slot] = in
}

func simLogger(t *testing.T, name string) *slog.Logger { return testLogger(t).With("host", name) }

// stop ends an instance in order. It says how its Run ended.
func (s *sim) stop(slot int) error {
	in := s.instances[slot]
	s.note("stop %d", slot)
	s.instances[slot] = nil
	in.host.Thaw()
	in.stop()
	return <-in.done
}

// kill ends an instance as kill -9 would, or, silent, as a power cut: what its
// code still does reaches nobody. It returns a copy of its files as they were.
func (s *sim) kill(slot int, silent bool) (dir string) {
	in := s.instances[slot]
	s.note("kill %d, silent %t", slot, silent)
	synctest.Wait()
	in.host.Kill(silent)
	s.instances[slot] = nil
	dir = s.t.TempDir()
	if err := copyFiles(dir, in.dir); err != nil {
		s.t.Fatal(err)
	}
	in.stop()
	s.ending.Go(func() { <-in.done })
	return dir
}

func copyFiles(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		return copySparse(filepath.Join(to, rel), path)
	})
}

// copySparse copies what a file has data in: store files are mostly holes.
func copySparse(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := out.Truncate(info.Size()); err != nil {
		return err
	}
	for at := int64(0); at < info.Size(); {
		data, err := in.Seek(at, seekData)
		if errors.Is(err, syscall.ENXIO) {
			break // nothing but a hole
		}
		if err != nil { // a file system that does not tell
			_, err = io.Copy(io.NewOffsetWriter(out, 0), io.NewSectionReader(in, 0, info.Size()))
			return err
		}
		hole, err := in.Seek(data, seekHole)
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.NewOffsetWriter(out, data), io.NewSectionReader(in, data, hole-data)); err != nil {
			return err
		}
		at = hole
	}
	return out.Close()
}

// Of lseek(2) on Linux.
const (
	seekData = 3
	seekHole = 4
)

// produce writes some random records and waits until they are acknowledged.
func (s *sim) produce(n int) {
	batches := make(map[broker.TopicPartition]*broker.BatchBuilder)
	for range n {
		s.record(batches)
	}
	acks := make(chan error, len(batches))
	for _, tp := range slices.SortedFunc(maps.Keys(batches), func(a, b broker.TopicPartition) int { return strings.Compare(a.String(), b.String()) }) {
		err := s.load.Produce(s.t.Context(), tp, batches[tp], func(_ int64, err error) { acks <- err })
		if err != nil {
			s.t.Fatal(err)
		}
	}
	for range batches {
		if err := <-acks; err != nil {
			s.t.Fatal(err)
		}
	}
}

// record makes one record and takes it into the fold.
func (s *sim) record(batches map[broker.TopicPartition]*broker.BatchBuilder) {
	at := time.Now().Add(-time.Duration(s.rng.IntN(600_000)) * time.Millisecond).UnixMilli()
	n := int64(s.rng.IntN(1000))
	place := view.Place{Time: at}
	var key, value string
	var tp broker.TopicPartition
	if s.rng.IntN(3) == 0 {
		key = fmt.Sprintf("k%d", s.rng.IntN(20))
		tp = broker.TopicPartition{Topic: "ticks", Partition: s.rng.Int32N(simPartitions)}
		value = fmt.Sprintf(`{"k":%q,"at":%d,"n":%d}`, key, at, n)
	} else {
		key = fmt.Sprintf("u%d", s.rng.IntN(20))
		page := fmt.Sprintf("p%d", s.rng.IntN(10))
		tp = broker.TopicPartition{Topic: "visits", Partition: view.Murmur2.Of([]byte(key), simPartitions)}
		value = fmt.Sprintf(`{"user":%q,"at":%d,"page":%q,"n":%d}`, key, at, page, n)
		place.Partition, place.Offset = tp.Partition, s.next[tp]
		s.fold.add("by-user "+key, n, place)
		s.fold.add("by-page "+page, n, place)
		s.fold.add(fmt.Sprintf("page-minute %s %d", page, (&view.Window{Size: 60_000}).Start(at)), n, place)
	}
	if tp.Topic == "ticks" {
		place.Partition, place.Offset = tp.Partition, s.next[tp]
		s.fold.add("by-tick "+key, n, place)
	}
	s.next[tp]++
	if batches[tp] == nil {
		batches[tp] = broker.NewBatchBuilder(broker.None)
	}
	batches[tp].Append(time.Now().UnixMilli(), []byte(key), []byte(value), nil)
}

// holder is the live instance that the newest routes name for a partition.
func (s *sim) holder(sub string, p int32) *simInstance {
	newest := &read.Routes{}
	for _, in := range s.instances {
		if in == nil {
			continue
		}
		if r, _ := in.Routes(); r.Generation > newest.Generation {
			newest = r
		}
	}
	copies := newest.Copies[sub]
	if int(p) >= len(copies) || len(copies[p]) == 0 {
		return nil
	}
	for _, in := range s.instances {
		if in != nil && in.cfg.Instance == copies[p][0].Instance {
			return in
		}
	}
	return nil
}

// contents reads every row of every store from its holders; false when some
// partition does not answer.
func (s *sim) contents() (map[string]string, bool) {
	rows := make(map[string]string)
	whole := true
	for _, v := range s.topo.Views {
		for p := range int32(simPartitions) {
			in := s.holder(v.Subtopology, p)
			if in == nil || !s.rows(in, v, p, rows) {
				whole = false
			}
			for _, other := range s.instances { // copies must say the same at the same seq
				if other != nil && other != in {
					s.rows(other, v, p, make(map[string]string))
				}
			}
		}
	}
	return rows, whole
}

// rows reads one partition of a store into a map, and shows it to the observer.
func (s *sim) rows(in *simInstance, v *view.View, p int32, into map[string]string) bool {
	q := read.Query{Store: v.Store, Op: read.Range, First: 10_000}
	as, err := in.Read(s.t.Context(), []*read.Request{{Query: q, Partition: p}})
	if err != nil || as[0].Err != nil {
		return false
	}
	rows, counts := make(map[string]string), make(map[string]int64)
	for _, row := range as[0].Rows {
		key, text := v.Store+" "+row.Values[v.Keys[0]].Str(), ""
		if i := v.Column("start"); i >= 0 {
			key += fmt.Sprintf(" %d", row.Values[i].Int())
		}
		for i := range v.Columns {
			if v.Columns[i].Role == view.AggRole {
				text += fmt.Sprintf(" %s=%s", v.Columns[i].Name, row.Values[i])
			}
		}
		rows[key] = text[1:]
		counts[key] = row.Values[v.Column("c")].Int()
	}
	maps.Copy(into, rows)
	part := as[0].Part
	if err := s.watch.saw(fmt.Sprintf("%s %d", v.Store, p), part.Seq, fmt.Sprint(rows), counts); err != nil {
		s.fail("read from %s, %s: %v", in.host.Name(), part.Role, err)
	}
	s.watch.roles[part.Role]++
	at := fmt.Sprintf("%s %s %d", in.host.Name(), v.Store, p)
	if part.Seq < s.watch.copies[at] {
		s.fail("the copy of %s went back from seq %d to %d", at, s.watch.copies[at], part.Seq)
	}
	s.watch.copies[at] = part.Seq
	return true
}

func (s *sim) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf(format+"\n%s\n%s", append(args, strings.Join(s.trace, "\n"), s.statuses())...)
	if *simTrace != "" {
		path := filepath.Join(*simTrace, strings.NewReplacer("/", " ", " ", "-").Replace(s.t.Name())+".txt")
		if err := errors.Join(os.MkdirAll(*simTrace, 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			s.t.Error(err)
		}
	}
	s.t.Fatal(text)
}

func (s *sim) statuses() string {
	var b strings.Builder
	fmt.Fprintf(&b, "group: %+v\n", *s.broker.GroupInfo("sim"))
	for _, in := range s.instances {
		if in != nil {
			fmt.Fprintf(&b, "%+v\n", in.Status())
		}
	}
	return b.String()
}

// settle waits until the stores are the fold.
func (s *sim) settle(within time.Duration) {
	s.note("settle")
	for tp, next := range s.next {
		if info := s.broker.PartitionInfo(tp.Topic, tp.Partition); info.HighWatermark != next {
			s.fail("%s ends at %d after %d records acknowledged", tp, info.HighWatermark, next)
		}
	}
	deadline := time.Now().Add(within)
	for round := 1; ; round++ {
		if round%100 == 0 && s.ghost() {
			s.restart()
		}
		rows, whole := s.contents()
		wrong := s.wrong(rows)
		if whole && wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			s.fail("whole %t; the stores are not the fold:\n%s", whole, wrong)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// ghost says whether the group has a member of a dead host. In Kafka its session
// expires. In kfake one that dies while it waits for the answer to its join has
// no session; it keeps its share for ever, or a rebalance waits for it for ever,
// since every join that is repeated sets its timer back.
func (s *sim) ghost() bool {
	for _, m := range s.broker.GroupInfo("sim").Members {
		host, _, _ := strings.Cut(m.ClientHost, ":")
		if !slices.ContainsFunc(s.instances, func(in *simInstance) bool { return in != nil && in.host.Name() == host }) {
			return true
		}
	}
	return false
}

// restart stops all instances until the group has forgotten them and whoever
// else there was, and starts them again.
func (s *sim) restart() {
	s.note("restart, for kfake holds on to a dead member")
	dirs := make([]string, len(s.instances))
	for slot, in := range s.instances {
		if in == nil {
			continue
		}
		dirs[slot] = in.dir
		if err := s.stop(slot); err != nil {
			s.fail("instance %d ended with: %v", slot, err)
		}
	}
	time.Sleep(time.Minute)
	for slot, dir := range dirs {
		if dir != "" {
			s.start(slot, dir)
		}
	}
}

func (s *sim) wrong(rows map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(s.fold)) {
		if got, want := rows[key], s.fold[key].text(key); got != want {
			fmt.Fprintf(&b, "%s: %s, want %s\n", key, got, want)
		}
	}
	for key := range rows {
		if s.fold[key] == nil {
			fmt.Fprintf(&b, "%s: not in the fold\n", key)
		}
	}
	return b.String()
}

// end stops everything that the bubble has.
func (s *sim) end() {
	for slot, in := range s.instances {
		if in == nil {
			continue
		}
		if err := s.stop(slot); err != nil {
			s.t.Errorf("instance %d ended with: %v", slot, err)
		}
	}
	s.ending.Wait()
}
