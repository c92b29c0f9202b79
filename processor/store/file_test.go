package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
)

func TestErrInUse(t *testing.T) {
	o := Options{Path: testPath(t), Stores: []Spec{{Name: "a"}}, MmapSize: testMap}
	mustOpen(t, o)
	_, err := Open(o)
	if !errors.Is(err, ErrInUse) || !bytes.Contains([]byte(err.Error()), []byte(o.Path)) {
		t.Fatal(err)
	}
}

func TestOptionsRefused(t *testing.T) {
	for _, specs := range [][]Spec{{{Name: ""}}, {{Name: "a", Segment: -1}}, {{Name: "a"}, {Name: "a"}}} {
		if _, err := Open(Options{Path: testPath(t), Stores: specs}); err == nil {
			t.Errorf("%v was accepted", specs)
		}
	}
}

func TestErrSpec(t *testing.T) {
	o := Options{Path: testPath(t), Stores: []Spec{{Name: "w", Segment: 100}}, MmapSize: testMap}
	s := mustOpen(t, o)
	s.Publish(Run{row(0, window("k", 1), "v")}, nil, State{CaughtUp: 1})
	mustCheckpoint(t, s)
	mustClose(t, s)
	for _, segment := range []int64{0, 200} {
		o.Stores = []Spec{{Name: "w", Segment: segment}}
		if _, err := Open(o); !errors.Is(err, ErrSpec) {
			t.Fatal(err)
		}
	}
	if err := Discard(o.Path); err != nil {
		t.Fatal(err)
	}
	with(t, mustOpen(t, o), func(snap *Snapshot) {
		if snap.Count(0) != 0 {
			t.Fatal("a discarded store has rows")
		}
	})
	if err := Discard(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Fatal("discarding nothing:", err)
	}
}

func TestErrVersion(t *testing.T) {
	o := Options{Path: testPath(t), Stores: []Spec{{Name: "a"}}, MmapSize: testMap}
	s := mustOpen(t, o)
	s.Publish(Run{row(0, "k", "v")}, nil, State{CaughtUp: 1})
	mustCheckpoint(t, s)
	if err := s.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketMeta).Put(keyVersion, binary.BigEndian.AppendUint32(nil, formatVersion+1))
	}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	for _, unclean := range []bool{false, true} {
		if unclean {
			touchMarker(t, o.Path)
		}
		if _, err := Open(o); !errors.Is(err, ErrVersion) {
			t.Fatal(err)
		}
	}
}

func touchMarker(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(markerPath(path), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestErrFull(t *testing.T) {
	o := Options{Path: testPath(t), Stores: []Spec{{Name: "a"}}, MmapSize: 1 << 20}
	fill := func(s *Store) error {
		var run Run
		for i := range 2000 {
			run = append(run, row(0, fmt.Sprintf("%05d", i), string(make([]byte, 500))))
		}
		s.Publish(run, nil, State{CaughtUp: 1})
		if !s.Freeze() {
			t.Fatal("nothing to freeze")
		}
		return s.WriteFrozen(context.Background())
	}
	s := mustOpen(t, o)
	if err := fill(s); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	with(t, s, func(snap *Snapshot) {
		if _, ok := snap.Get(0, []byte("01999")); !ok || snap.Count(0) != 2000 {
			t.Fatal("frozen runs are not readable after ErrFull")
		}
	})
	mustClose(t, s)
	o.MmapSize = 8 << 20
	if err := fill(mustOpen(t, o)); err != nil {
		t.Fatal(err)
	}
}

func TestMapGrowsWithFile(t *testing.T) {
	for n, want := range map[int]int{1: 32 << 10, 33 << 10: 64 << 10, 1 << 30: 1 << 30, 1<<30 + 1: 2 << 30, 16 << 30: 16 << 30} {
		if got := mapSize(n); got != want {
			t.Errorf("mapSize(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestCompact(t *testing.T) {
	o := Options{Path: testPath(t), Stores: []Spec{{Name: "a"}, {Name: "w", Segment: 1000}}, MmapSize: testMap}
	s := mustOpen(t, o)
	want := newModel(o.Stores)
	publish := func(run Run) {
		want.apply(run)
		s.Publish(run, nil, State{Record: []byte("r"), CaughtUp: s.state.CaughtUp + 1})
		mustCheckpoint(t, s)
	}
	run := Run{row(0, "", "the empty key")}
	for i := range 4000 {
		run = append(run, row(0, fmt.Sprintf("%05d", i), string(make([]byte, 300))))
	}
	for i := range 1000 {
		run = append(run, row(1, window("k", int64(i*10)), ""))
	}
	publish(run)
	run = nil
	for i := range 4000 {
		if i%50 > 0 {
			run = append(run, gone(0, fmt.Sprintf("%05d", i)))
		}
	}
	publish(run)
	before, err := s.size()
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	if err := os.WriteFile(compactPath(o.Path), []byte("left over"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.CompactSize = 1
	s = mustOpen(t, o)
	after, err := s.size()
	if err != nil || after*4 > before {
		t.Fatalf("compacted from %d to %d: %v", before, after, err)
	}
	check := func() {
		t.Helper()
		with(t, s, func(snap *Snapshot) {
			if err := want.check(snap, seeded(t)); err != nil {
				t.Fatal(err)
			}
		})
		if string(s.State().Record) != "r" {
			t.Fatal("the state was lost")
		}
	}
	check()
	if _, err := Open(o); !errors.Is(err, ErrInUse) {
		t.Fatal("the compacted file is not locked:", err)
	}
	publish(Run{row(0, "after", "x")})
	mustClose(t, s)
	touchMarker(t, o.Path) // all of it must be found in order
	s = mustOpen(t, o)
	check()
}

var sampleRecord = bytes.Repeat([]byte("a record to be found in the file "), 5)

// sample makes a file with everything in it and returns its bytes and what it
// held after each checkpoint: without its newest meta page it is the last but
// one.
func sample(t *testing.T, o Options) (content []byte, versions []model) {
	t.Helper()
	s := mustOpen(t, o)
	r, now := rand.New(rand.NewPCG(7, 7)), newModel(o.Stores)
	publish := func(run Run) {
		now.apply(run)
		versions = append(versions, now.clone())
		s.Publish(run, nil, State{Record: sampleRecord, CaughtUp: int64(len(versions))})
		mustCheckpoint(t, s)
	}
	for range 12 {
		publish(randomRun(r, o.Stores, 400))
	}
	publish(sorted(Run{row(0, "large", string(make([]byte, 30000))), row(0, "", "empty")}))
	mustClose(t, s)
	b, err := os.ReadFile(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	return b, versions
}

func TestInvariant5DamagedFile(t *testing.T) {
	r := seeded(t)
	o := Options{Path: testPath(t), Stores: modelSpecs, MmapSize: 1 << 20}
	good, versions := sample(t, o)
	used := uint64(0)
	for _, pos := range []int{0, pageSize} {
		used = max(used, order.Uint64(good[pos+pageHeader+40:])*pageSize)
	}
	n := 60
	if testing.Short() {
		n = 20
	}
	damage := map[string]func(b []byte) []byte{
		"header":    func(b []byte) []byte { flip(r, b[r.IntN(2)*pageSize:][:pageHeader+metaSize], 1+r.IntN(4)); return b },
		"both meta": func(b []byte) []byte { b[pageHeader+40]++; b[pageSize+pageHeader+40]++; return b },
		"truncated": func(b []byte) []byte { return b[:r.IntN(int(used))] },
		"page": func(b []byte) []byte {
			flip(r, b[r.IntN(int(used/pageSize))*pageSize:][:pageSize], 1+r.IntN(8))
			return b
		},
		"page header": func(b []byte) []byte {
			flip(r, b[r.IntN(int(used/pageSize))*pageSize:][:48], 1+r.IntN(3))
			return b
		},
		"swapped pages": func(b []byte) []byte {
			i, j := r.IntN(int(used/pageSize))*pageSize, r.IntN(int(used/pageSize))*pageSize
			copy(b[i:i+pageSize], good[j:j+pageSize])
			return b
		},
		"state": func(b []byte) []byte {
			for rest := b; ; {
				i := bytes.Index(rest, sampleRecord)
				if i < 0 {
					return b
				}
				flip(r, rest[i:][:len(sampleRecord)], 1)
				rest = rest[i:]
			}
		},
		"garbage": func(b []byte) []byte { flip(r, b, len(b)/100); return b },
	}
	for name, f := range damage {
		t.Run(name, func(t *testing.T) {
			refused, clean := 0, slices.Contains([]string{"header", "both meta", "truncated", "state"}, name)
			for range n {
				if openDamaged(t, o, versions, f(bytes.Clone(good)), !clean) {
					refused++
				}
			}
			t.Logf("%d of %d refused", refused, n)
			if name != "header" && refused == 0 {
				t.Error("no damage was noticed")
			}
		})
	}
}

func flip(r *rand.Rand, b []byte, n int) {
	for range n {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	}
}

// openDamaged opens a damaged file. It must be refused by a typed error, or be
// one of the versions and writable.
func openDamaged(t *testing.T, o Options, versions []model, content []byte, unclean bool) (refused bool) {
	t.Helper()
	if err := Discard(o.Path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if unclean {
		touchMarker(t, o.Path)
	}
	s, err := Open(o)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrSpec) {
			t.Fatalf("untyped: %v", err)
		}
		return true
	}
	defer mustClose(t, s)
	with(t, s, func(snap *Snapshot) {
		version := s.State().CaughtUp
		if version == 0 || version < int64(len(versions)-1) {
			t.Fatalf("the file is at version %d of %d", version, len(versions))
		}
		if err := versions[version-1].check(snap, rand.New(rand.NewPCG(1, 1))); err != nil {
			t.Error(err)
		}
	})
	s.Publish(Run{row(0, "new", "row")}, nil, State{CaughtUp: 1})
	mustCheckpoint(t, s)
	return false
}

// A page damaged under an open store ends its checkpoint, not the process, and
// the next Open knows.
func TestInvariant5DamagedWhileOpen(t *testing.T) {
	o := Options{Path: testPath(t), Stores: modelSpecs, MmapSize: testMap}
	_, versions := sample(t, o)
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	var run Run
	for k := range versions[len(versions)-1].stores[0] {
		run = append(run, row(0, k, "new"))
	}
	s.Publish(sorted(run), nil, State{CaughtUp: 1000})
	s.Freeze()
	f, err := os.OpenFile(o.Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	size, err := s.size()
	if err != nil {
		t.Fatal(err)
	}
	for pos := int64(2 * pageSize); pos < size; pos += pageSize {
		if _, err := f.WriteAt(make([]byte, pageHeader), pos); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteFrozen(context.Background()); !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	with(t, s, func(snap *Snapshot) {
		if v, ok := snap.Get(0, run[0].Key); !ok || string(v) != "new" {
			t.Fatal("frozen runs are not readable")
		}
	})
	mustClose(t, s)
	if _, err := Open(o); !errors.Is(err, ErrCorrupt) {
		t.Fatal(err)
	}
	if err := Discard(o.Path); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, o)
}

func FuzzDecodeMeta(f *testing.F) {
	f.Add(appendState(nil, State{Record: []byte("r"), Positions: []Position{{Topic: "t", Next: 5}}, CaughtUp: 3}))
	f.Add(appendCensus(nil, []storeCensus{{spec: Spec{"a", 5}, segments: map[int64]tally{-1: {2, 30, 77}, 4: {}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := decodeState(b); err == nil {
			if again, err := decodeState(appendState(nil, s)); err != nil || !again.equal(s) {
				t.Errorf("%+v became %+v: %v", s, again, err)
			}
		}
		if c, err := decodeCensus(b); err == nil {
			again, err := decodeCensus(appendCensus(nil, c))
			if err != nil || fmt.Sprint(again) != fmt.Sprint(c) {
				t.Errorf("%v became %v: %v", c, again, err)
			}
		}
	})
}
