package store

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Sizes of what a disk writes as one: a sector, and a page of the file.
const sector = 512

// Power loss: of the blocks that a checkpoint was writing, any may have reached the
// disk and any not. The file is then the one before or the one after, or is
// refused, for it to be rebuilt; it never opens with anything else (invariant 5).
func TestInvariant5PowerLoss(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 5
	}
	r := seeded(t)
	path := testPath(t)
	models := []model{newModel(crashSpecs)}
	outcomes := make(map[string]int)
	commit := 0
	for range rounds {
		before := fileOf(t, path)
		s := mustOpen(t, Options{Path: path, Stores: crashSpecs})
		for range 1 + r.IntN(4) {
			commit++
			next := models[commit-1].clone()
			next.apply(crashRun(commit))
			models = append(models, next)
			s.Publish(crashRun(commit), commit, State{Record: []byte(strconv.Itoa(commit)), CaughtUp: int64(commit)})
		}
		if err := s.Checkpoint(context.Background()); err != nil {
			t.Fatal(err)
		}
		after := fileOf(t, path)
		mustClose(t, s)
		if before == nil {
			continue
		}
		for _, tear := range tears {
			outcomes[tear.name+": "+openTorn(t, r, tear.blocks(r, before, after), models, tear.whole)]++
		}
	}
	t.Log(outcomes)
	for _, wanted := range []string{"any sectors: refused", "data alone: opened", "all but a torn meta page: opened"} {
		if outcomes[wanted] == 0 {
			t.Errorf("no file was %q: %v", wanted, outcomes)
		}
	}
}

// tears are ways in which a checkpoint may be cut short. whole: the disk keeps the
// order that was asked of it, so that the file must open.
var tears = []struct {
	name   string
	whole  bool
	blocks func(r *rand.Rand, before, after []byte) []byte
}{
	{"any sectors", false, func(r *rand.Rand, before, after []byte) []byte { return mix(r, before, after, 0, sector, r.Float64()) }},
	{"any pages", false, func(r *rand.Rand, before, after []byte) []byte {
		return mix(r, before, after, 0, pageSize, r.Float64())
	}},
	{"one page lost", false, func(r *rand.Rand, before, after []byte) []byte {
		torn := append([]byte(nil), after...)
		var changed []int
		for at := 0; at < len(after); at += pageSize {
			if !bytes.Equal(after[at:at+pageSize], block(before, at, pageSize)) {
				changed = append(changed, at)
			}
		}
		at := changed[r.IntN(len(changed))]
		copy(torn[at:at+pageSize], block(before, at, pageSize))
		return torn
	}},
	{"data alone", true, func(r *rand.Rand, before, after []byte) []byte {
		return mix(r, before, after, 2*pageSize, sector, r.Float64())
	}},
	{"all but a torn meta page", true, func(r *rand.Rand, before, after []byte) []byte {
		torn := append([]byte(nil), after...)
		copy(torn, mix(r, before[:2*pageSize], after[:2*pageSize], 0, sector, 0.5))
		return torn
	}},
}

// mix takes each block from after with that chance, from before otherwise; what
// lies below from is as before.
func mix(r *rand.Rand, before, after []byte, from, size int, chance float64) []byte {
	torn := append([]byte(nil), after...)
	for at := 0; at < len(torn); at += size {
		if at < from || r.Float64() >= chance {
			copy(torn[at:min(at+size, len(torn))], block(before, at, size))
		}
	}
	return torn
}

// block is a part of a file, zeros beyond its end.
func block(b []byte, at, size int) []byte {
	out := make([]byte, size)
	if at < len(b) {
		copy(out, b[at:])
	}
	return out
}

func fileOf(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return b
}

// openTorn opens a file as it is after power loss, and compares it with the commit
// that it claims to end at.
func openTorn(t *testing.T, r *rand.Rand, file []byte, models []model, whole bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "state.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(markerPath(path), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{Path: path, Stores: crashSpecs, MmapSize: testMap})
	if errors.Is(err, ErrCorrupt) && !whole {
		return "refused"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, s)
	record := 0
	if b := s.State().Record; b != nil {
		record, _ = strconv.Atoi(string(b))
	}
	with(t, s, func(snap *Snapshot) {
		want := models[record]
		if err := want.check(snap, r); err != nil {
			t.Fatalf("at commit %d: %v", record, err)
		}
		for i, stored := range want.stores {
			n := 0
			snap.Scan(i, nil, nil, false, func(k, v []byte) bool {
				n++
				if stored[string(k)] != string(v) {
					t.Errorf("at commit %d: %q is %q, want %q", record, k, v, stored[string(k)])
				}
				return true
			})
			if n != len(stored) || snap.Count(i) != int64(n) {
				t.Errorf("at commit %d: store %d has %d rows and counts %d, want %d", record, i, n, snap.Count(i), len(stored))
			}
		}
	})
	return "opened"
}
