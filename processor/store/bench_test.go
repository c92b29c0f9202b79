package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

var benchSpecs = []Spec{{Name: "totals"}, {Name: "hours", Segment: 24 * hour}}

const hour = 3_600_000

func benchKey(i int) []byte { return fmt.Appendf(nil, "key-%08d", i) }

// benchStore has n rows of 100 bytes in the file and a tenth of them changed
// in runs on top.
func benchStore(b *testing.B, n int) *Store {
	b.Helper()
	s := mustOpen(b, Options{Path: testPath(b), Stores: benchSpecs, MmapSize: 4 << 30})
	value := make([]byte, 100)
	for at := 0; at < n; at += 100_000 {
		var run Run
		for i := at; i < min(at+100_000, n); i++ {
			run = append(run, Entry{Key: benchKey(i), Value: value})
		}
		s.Publish(run, nil, State{CaughtUp: int64(at + 1)})
		mustCheckpoint(b, s)
	}
	var run Run
	for i := 0; i < n; i += 10 {
		run = append(run, Entry{Key: benchKey(i), Value: value})
	}
	s.Publish(run, nil, State{CaughtUp: 1})
	return s
}

func benchSize() int {
	if testing.Short() {
		return 50_000
	}
	return 1_000_000
}

func BenchmarkGet(b *testing.B) {
	n := benchSize()
	s := benchStore(b, n)
	r := rand.New(rand.NewPCG(1, 1))
	var inRun, inFile, missing [][]byte
	for range 1 << 14 {
		i := r.IntN(n/10) * 10
		inRun, inFile = append(inRun, benchKey(i)), append(inFile, benchKey(i+1+r.IntN(9)))
		missing = append(missing, append(benchKey(i), 'x'))
	}
	for _, c := range []struct {
		name string
		keys [][]byte
		want bool
	}{{"run", inRun, true}, {"bbolt", inFile, true}, {"missing", missing, false}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				snap := s.Snapshot()
				if _, ok := snap.Get(0, c.keys[i%len(c.keys)]); ok != c.want {
					b.Fatal("wrong answer")
				}
				snap.Release()
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	n := benchSize()
	s := benchStore(b, n)
	snap := s.Snapshot()
	defer snap.Release()
	for b.Loop() {
		rows := 0
		snap.Scan(0, nil, nil, false, func(k, v []byte) bool { rows++; return true })
		if rows != n {
			b.Fatal(rows)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
}

func BenchmarkScanWindows(b *testing.B) {
	s := mustOpen(b, Options{Path: testPath(b), Stores: benchSpecs, MmapSize: 4 << 30})
	keys := benchSize() / 100
	for day := range 4 {
		var run Run
		for k := range keys {
			for h := range 24 {
				key := AppendStart(benchKey(k), int64(day*24+h)*hour)
				run = append(run, Entry{Store: 1, Key: key, Value: make([]byte, 100)})
			}
		}
		s.Publish(run, nil, State{CaughtUp: int64(day + 1)})
		if day < 3 {
			mustCheckpoint(b, s)
		}
	}
	snap := s.Snapshot()
	defer snap.Release()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		windows := 0
		snap.ScanWindows(1, benchKey(i*7919%keys), 24*hour, 96*hour, func(int64, []byte) bool { windows++; return true })
		if windows != 72 {
			b.Fatal(windows)
		}
	}
}

func BenchmarkPublish(b *testing.B) {
	n := benchSize()
	s := benchStore(b, n)
	r := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 100)
	rows := 0
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		var run Run
		for range 1000 {
			run = append(run, Entry{Key: benchKey(r.IntN(n)), Value: value})
		}
		run = sorted(run)
		rows += len(run)
		b.StartTimer()
		s.Publish(run, nil, State{CaughtUp: int64(i + 2)})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
}

func BenchmarkCheckpoint(b *testing.B) {
	n := benchSize()
	s := benchStore(b, n)
	mustCheckpoint(b, s)
	r := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 100)
	rows := 0
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		var run Run
		for range n / 10 {
			run = append(run, Entry{Key: benchKey(r.IntN(n)), Value: value})
		}
		run = sorted(run)
		rows += len(run)
		s.Publish(run, nil, State{CaughtUp: int64(i + 2)})
		s.Freeze()
		b.StartTimer()
		if err := s.WriteFrozen(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		s.Installed()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
}

func BenchmarkOpen(b *testing.B) {
	n := benchSize()
	s := benchStore(b, n)
	path := s.path
	mustClose(b, s)
	for _, unclean := range []bool{false, true} {
		b.Run(fmt.Sprintf("unclean=%v", unclean), func(b *testing.B) {
			for b.Loop() {
				if err := verifyFile(path, unclean); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTop(b *testing.B) {
	n := benchSize()
	all := map[string]int{}
	for i := range n {
		all[string(benchKey(i))] = i
	}
	r := NewRanking(1000, highest)
	b.Run("rebuild", func(b *testing.B) {
		for b.Loop() {
			r.Rebuild(scanOf(all))
		}
	})
	random := rand.New(rand.NewPCG(1, 1))
	b.Run("set", func(b *testing.B) {
		r.Rebuild(scanOf(all))
		repairs := 0
		for b.Loop() {
			i := random.IntN(n)
			r.Set(benchKey(i), random.IntN(n))
			if r.NeedsRepair() {
				repairs++
				r.Rebuild(scanOf(all))
			}
		}
		b.ReportMetric(float64(repairs), "repairs")
	})
	b.Run("publish", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			r.Set(benchKey(n-1), 2*n+i)
			if len(r.Publish().Rows) != 1000 {
				b.Fatal("short")
			}
		}
	})
	b.Run("first 10", func(b *testing.B) {
		for b.Loop() {
			sum := 0
			for _, row := range r.Publish().Rows[:10] {
				sum += row.Value
			}
			if sum == 0 {
				b.Fatal("nothing")
			}
		}
	})
}
