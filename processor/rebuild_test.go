package processor

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/processor/store"
	"github.com/streamgauge/streamgauge/view"
)

// A file that its changelogs contradict is discarded and rebuilt, loudly: what is
// served is what the changelogs say.
func TestRebuildsFileThatDoesNotFit(t *testing.T) {
	tests := map[string]func(s *store.State){
		"changelog of another topic id":        func(s *store.State) { s.Positions[0].ID[0] ^= 1 },
		"position beyond the end":              func(s *store.State) { s.Positions[0].Next += 1000 },
		"last at the end before tombstones go": func(s *store.State) { s.CaughtUp -= (25 * time.Hour).Milliseconds() },
		"a changelog of which it knows nothing": func(s *store.State) {
			s.Positions = s.Positions[:1]
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t, hitSchema)
			c.create("hits", 1)
			dir := t.TempDir()
			here := func(cfg *Config) { cfg.StateDir = dir }
			in := c.start("one", here)
			c.produce("hits", keyed("a", `{"page":"a","at":"2024-01-01T00:00:00Z","ms":7}`))
			in.becomes(t, all("page-totals"), "hits", "hits=1")
			if err := in.close(); err != nil {
				t.Fatal(err)
			}
			falsify(t, filepath.Join(dir, "test", "hits_0", "state.db"), change)
			in = c.start("two", here)
			in.becomes(t, all("page-totals"), "hits", "hits=1")
			if n := count(t, in.metrics.discarded); n != 1 {
				t.Errorf("%v files were discarded, want 1", n)
			}
			c.produce("hits", keyed("a", `{"page":"a","at":"2024-01-01T00:00:00Z","ms":7}`))
			in.becomes(t, all("page-totals"), "hits", "hits=2")
			if row := in.part(t, "page-totals", 0, view.OfString("made up")); row.Rows[0] != nil {
				t.Error("a row of the discarded file is served")
			}
		})
	}
}

// falsify changes what a file says of itself, and puts a row into it that no
// changelog has.
func falsify(t *testing.T, path string, change func(*store.State)) {
	t.Helper()
	s, err := store.Open(store.Options{Path: path, Stores: []store.Spec{{Name: "page-totals"}, {Name: "page-times"}}, MmapSize: 1 << 28})
	if err != nil {
		t.Fatal(err)
	}
	state := s.State()
	change(&state)
	s.Publish(store.Run{{Key: view.AppendKey(nil, view.OfString("made up")), Value: []byte{0x80}}}, nil, state)
	if err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
