package store

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

const testMap = 64 << 20

// seeded returns a source of randomness whose seed a failing test shows.
func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func testPath(t testing.TB) string { return filepath.Join(t.TempDir(), "task_0", "state.db") }

func mustOpen(t testing.TB, o Options) *Store {
	t.Helper()
	if o.MmapSize == 0 {
		o.MmapSize = testMap
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustCheckpoint(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// with runs f on the newest snapshot.
func with(t testing.TB, s *Store, f func(*Snapshot)) {
	t.Helper()
	snap := s.Snapshot()
	if snap == nil {
		t.Fatal("no snapshot")
	}
	defer snap.Release()
	f(snap)
}

func row(store int, key, value string) Entry {
	return Entry{Store: store, Key: []byte(key), Value: []byte(value)}
}

func gone(store int, key string) Entry { return Entry{Store: store, Key: []byte(key)} }

func window(key string, start int64) string { return string(AppendStart([]byte(key), start)) }

// rows is a store as a map.
type rows map[string]string

// model is what a Store must be equal to, a map per store.
type model struct {
	specs  []Spec
	stores []rows
	record string
}

func newModel(specs []Spec) model {
	m := model{specs: specs}
	for range specs {
		m.stores = append(m.stores, rows{})
	}
	return m
}

func (m model) clone() model {
	m.stores = slices.Clone(m.stores)
	for i := range m.stores {
		m.stores[i] = maps.Clone(m.stores[i])
	}
	return m
}

func (m model) apply(run Run) {
	for _, e := range run {
		if e.Value == nil {
			delete(m.stores[e.Store], string(e.Key))
		} else {
			m.stores[e.Store][string(e.Key)] = string(e.Value)
		}
	}
}

func (m model) drop(store int, before int64) {
	span := m.specs[store].Segment
	maps.DeleteFunc(m.stores[store], func(k, _ string) bool {
		end := Start([]byte(k)) // of the segment, found by counting
		for end%span != 0 {
			end++
		}
		if end == Start([]byte(k)) {
			end += span
		}
		return end <= before
	})
}

// check compares a snapshot with the model by every way of reading.
func (m model) check(snap *Snapshot, r *rand.Rand) error {
	for i, want := range m.stores {
		if got := snap.Count(i); got != int64(len(want)) {
			return fmt.Errorf("store %d: count %d, want %d", i, got, len(want))
		}
		keys := slices.Sorted(maps.Keys(want))
		for range 3 {
			from, to := bound(r, keys), bound(r, keys)
			for _, reverse := range []bool{false, true} {
				if err := checkScan(snap, i, want, keys, from, to, reverse); err != nil {
					return err
				}
			}
		}
		for range 20 {
			key := randomKey(r, m.specs[i])
			got, ok := snap.Get(i, []byte(key))
			if w, has := want[key]; ok != has || string(got) != w {
				return fmt.Errorf("store %d: Get(%q) = %q %v, want %q %v", i, key, got, ok, w, has)
			}
		}
		if m.specs[i].Segment > 0 {
			if err := checkWindows(snap, i, want, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// bound returns nil, a key that is there, or one beside it.
func bound(r *rand.Rand, keys []string) []byte {
	if len(keys) == 0 || r.IntN(4) == 0 {
		return nil
	}
	key := []byte(keys[r.IntN(len(keys))])
	switch r.IntN(3) {
	case 0:
		key = append(key, 0)
	case 1:
		key = key[:len(key)/2]
	}
	return key
}

func checkScan(snap *Snapshot, store int, want rows, keys []string, from, to []byte, reverse bool) error {
	var wanted, got []string
	for _, k := range keys {
		if k >= string(from) && (to == nil || k < string(to)) {
			wanted = append(wanted, k+"="+want[k])
		}
	}
	if reverse {
		slices.Reverse(wanted)
	}
	snap.Scan(store, from, to, reverse, func(k, v []byte) bool {
		got = append(got, string(k)+"="+string(v))
		return true
	})
	if !slices.Equal(got, wanted) {
		return fmt.Errorf("store %d: scan [%q, %q) reverse %v: %d rows, want %d: %q, want %q",
			store, from, to, reverse, len(got), len(wanted), got, wanted)
	}
	return nil
}

func checkWindows(snap *Snapshot, store int, want rows, r *rand.Rand) error {
	key := windowKeys[r.IntN(len(windowKeys))]
	from, to := int64(r.IntN(8000)-4000), int64(r.IntN(8000)-4000)
	var wanted, got []string
	for start := from; start < to; start++ {
		if v, ok := want[window(key, start)]; ok {
			wanted = append(wanted, fmt.Sprint(start, v))
		}
	}
	snap.ScanWindows(store, []byte(key), from, to, func(start int64, v []byte) bool {
		got = append(got, fmt.Sprint(start, string(v)))
		return true
	})
	if !slices.Equal(got, wanted) {
		return fmt.Errorf("store %d: windows of %q in [%d, %d): %q, want %q", store, key, from, to, got, wanted)
	}
	return nil
}

// Keys that swallow each other, were they not told apart by length.
var windowKeys = []string{"", "a", "aa", "a\x00", "a\x80\x00\x00\x00\x00\x00\x00\x00", "b"}

func randomKey(r *rand.Rand, spec Spec) string {
	if spec.Segment > 0 {
		return window(windowKeys[r.IntN(len(windowKeys))], int64(r.IntN(80)-40)*100)
	}
	if r.IntN(20) == 0 {
		return ""
	}
	return fmt.Sprintf("key-%03d", r.IntN(400))
}

// randomRun returns a sorted run of up to n rows, a quarter of them deleted.
func randomRun(r *rand.Rand, specs []Spec, n int) Run {
	var run Run
	for range r.IntN(n + 1) {
		store := r.IntN(len(specs))
		e := Entry{Store: store, Key: []byte(randomKey(r, specs[store]))}
		if r.IntN(4) > 0 {
			e.Value = bytes.Repeat([]byte{byte('a' + r.IntN(26))}, r.IntN(60))
		}
		run = append(run, e)
	}
	return sorted(run)
}

func compareEntries(a, b Entry) int {
	if a.Store != b.Store {
		return a.Store - b.Store
	}
	return bytes.Compare(a.Key, b.Key)
}

func sorted(run Run) Run {
	slices.SortStableFunc(run, compareEntries)
	return slices.CompactFunc(run, func(a, b Entry) bool { return compareEntries(a, b) == 0 })
}
