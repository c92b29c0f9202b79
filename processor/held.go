package processor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/streamgauge/streamgauge/processor/store"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
)

// findCopies looks at the files that were left here, so that the group knows what
// this instance could go on with. Files that have been out of use for so long that
// they would be discarded go at once.
func (w *Worker) findCopies() error {
	root := filepath.Join(w.cfg.StateDir, w.cfg.App)
	subs := make(map[string]*schema.Subtopology)
	for _, s := range w.cfg.Topology.Subtopologies {
		subs[s.Name] = s
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	for _, e := range entries {
		id, err := parseTaskID(e.Name())
		if err != nil || !e.IsDir() {
			continue
		}
		path := filepath.Join(root, e.Name(), "state.db")
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && time.Since(info.ModTime()) > w.tombstonesFor/2 {
			w.log.Info("store file deleted: it has not been used for longer than tombstones are kept", "task", e.Name(), "since", info.ModTime())
			err = store.Discard(path)
		}
		if err != nil {
			return fmt.Errorf("state directory: %w", err)
		}
		if s := subs[id.Subtopology]; s != nil && len(s.Feeds) > 0 && id.Partition < w.layout.partitions[id.Subtopology] {
			w.keep(id, w.peek(id, s, path))
		}
	}
	return nil
}

// peek reads how far a file is; nil when it is not known or does not count.
func (w *Worker) peek(id taskID, sub *schema.Subtopology, path string) *heldCopy {
	state, err := store.Peek(path)
	if err != nil {
		return nil // opening it says what is wrong
	}
	recs, err := decodeCommits(state.Record)
	if err != nil {
		return nil
	}
	h := &heldCopy{Partition: id.Partition}
	for _, p := range state.Positions {
		if p.ID != w.layout.topics[p.Topic].ID {
			return nil
		}
		h.Position += max(p.Next, 0)
	}
	for _, name := range storesOf(sub) {
		if rec := recs[schema.Changelog(w.cfg.App, name)]; rec != nil {
			h.Schema = columnsMark(rec.Columns)
			return h
		}
	}
	return h
}

// keep notes how far the file of a task that is not open is; nil: unknown.
func (w *Worker) keep(id taskID, h *heldCopy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h == nil {
		delete(w.kept, id)
		return
	}
	w.kept[id] = *h
}

// heldCopies are all copies here, for the group's leader.
func (w *Worker) heldCopies() map[string][]heldCopy {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[taskID]heldCopy)
	for id, h := range w.kept {
		h.Use = stored
		all[id] = h
	}
	for id, t := range w.tasks {
		if h := t.held.Load(); h != nil {
			all[id] = t.use(*h)
		}
	}
	copies := make(map[string][]heldCopy)
	for id, h := range all {
		if h.columns != nil { // made when it is asked for: a copy tells of itself with each commit
			h.Schema = columnsMark(h.columns)
		}
		copies[id.Subtopology] = append(copies[id.Subtopology], h)
	}
	return copies
}

// use tells what is done with an open copy.
func (t *task) use(h heldCopy) heldCopy {
	switch {
	case t.leading.Load():
		h.Use = processing
	case t.role() == read.Lingering:
		h.Use = leaving
	default: // an owner that does not run yet too
		h.Use = following
	}
	return h
}
