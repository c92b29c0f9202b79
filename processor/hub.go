package processor

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/processor/store"
	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
)

// beatInterval is how often a watch stream says that it is alive.
const beatInterval = time.Second

// maxInterests bounds what one stream may hold.
const maxInterests = 100_000

// hub tells watchers of changes. A task's loop calls changed after it has
// published; the cost without watchers is a lock. Each stream holds only which
// of its interests are dirty, so a slow one costs nobody anything.
type hub struct {
	mu    sync.Mutex // guards everything below, and the streams' dirty sets
	parts map[hubPart]map[*interest]struct{}
}

type hubPart struct {
	store     string
	partition int32
}

type interest struct {
	read.Interest
	stream *watchStream
}

// watchStream is one watcher: a gateway.
type watchStream struct {
	interests map[uint64]*interest
	dirty     map[uint64]read.Event // newest event of each
	seq       uint64
	signal    chan struct{} // of one
}

func newHub() *hub { return &hub{parts: make(map[hubPart]map[*interest]struct{})} }

var errTooManyInterests = errors.New("too many interests on one watch")

// add registers an interest; its first event comes at once, so that nothing
// between a first read and the registration is missed.
func (h *hub) add(s *watchStream, in read.Interest) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(s.interests) >= maxInterests {
		return errTooManyInterests
	}
	h.drop(s, in.ID)
	i := &interest{Interest: in, stream: s}
	part := hubPart{in.Store, in.Partition}
	if h.parts[part] == nil {
		h.parts[part] = make(map[*interest]struct{})
	}
	h.parts[part][i] = struct{}{}
	s.interests[in.ID] = i
	s.mark(read.Event{Kind: read.Changed, ID: in.ID})
	return nil
}

func (h *hub) remove(s *watchStream, id uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(s, id)
}

func (h *hub) drop(s *watchStream, id uint64) {
	i := s.interests[id]
	if i == nil {
		return
	}
	delete(s.interests, id)
	delete(s.dirty, id)
	part := hubPart{i.Store, i.Partition}
	delete(h.parts[part], i)
	if len(h.parts[part]) == 0 {
		delete(h.parts, part)
	}
}

// mark is called with the hub's lock held.
func (s *watchStream) mark(e read.Event) {
	s.dirty[e.ID] = e
	s.seq = max(s.seq, e.Seq)
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// changed tells those who watch what a commit changed. With edge, stream time
// moved: windows may have become final or expired.
func (h *hub) changed(id taskID, sub *schema.Subtopology, run store.Run, rec *commitRecord, edge bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.parts) == 0 {
		return
	}
	for i, f := range sub.Feeds {
		watchers := h.parts[hubPart{f.View.Store, id.Partition}]
		if len(watchers) == 0 {
			continue
		}
		rows := rowsOf(run, i)
		passed := edge && f.View.Window != nil
		for in := range watchers {
			if passed || in.concerns(rows, f.View.Window != nil) {
				in.stream.mark(read.Event{Kind: read.Changed, ID: in.ID, Seq: rec.Seq, Stream: rec.Stream})
			}
		}
	}
}

func rowsOf(run store.Run, at int) store.Run {
	from, _ := slices.BinarySearchFunc(run, at, func(e store.Entry, at int) int { return e.Store - at })
	to, _ := slices.BinarySearchFunc(run, at+1, func(e store.Entry, at int) int { return e.Store - at })
	return run[from:to]
}

// concerns says whether any of the changed rows, sorted by key, is of interest.
func (i *interest) concerns(rows store.Run, windowed bool) bool {
	if i.Keys == nil && len(i.Prefix) == 0 {
		return len(rows) > 0
	}
	if i.Keys == nil {
		return hasPrefix(rows, i.Prefix, -1)
	}
	size := 0
	if windowed {
		size = view.StartSize
	}
	for _, k := range i.Keys {
		if hasPrefix(rows, k, len(k)+size) {
			return true
		}
	}
	return false
}

// hasPrefix finds a row whose key begins with prefix and is of that length; −1:
// any.
func hasPrefix(rows store.Run, prefix []byte, length int) bool {
	n, _ := slices.BinarySearchFunc(rows, prefix, func(e store.Entry, p []byte) int { return bytes.Compare(e.Key, p) })
	for ; n < len(rows) && bytes.HasPrefix(rows[n].Key, prefix); n++ {
		if length < 0 || len(rows[n].Key) == length {
			return true
		}
	}
	return false
}

// touched marks every interest in some stores of a partition: of a task that
// begins to serve or has gone.
func (h *hub) touched(stores []string, partition int32, kind read.EventKind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range stores {
		for in := range h.parts[hubPart{s, partition}] {
			in.stream.mark(read.Event{Kind: kind, ID: in.ID})
		}
	}
}

// Watch serves one stream until ctx ends or commands is closed.
func (w *Worker) Watch(ctx context.Context, commands <-chan read.WatchCommand, events func(read.Event)) error {
	s := &watchStream{interests: make(map[uint64]*interest), dirty: make(map[uint64]read.Event), signal: make(chan struct{}, 1)}
	w.metrics.watchStreams.Inc()
	defer w.metrics.watchStreams.Dec()
	defer w.hub.leave(s)
	beat := time.NewTicker(beatInterval)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case c, ok := <-commands:
			if !ok {
				return nil
			}
			if err := w.command(s, c); err != nil {
				return err
			}
		case <-s.signal:
			for _, e := range w.hub.drain(s) {
				events(e)
			}
		case <-beat.C:
			events(read.Event{Kind: read.Beat, Seq: w.hub.newest(s)})
		}
	}
}

func (w *Worker) command(s *watchStream, c read.WatchCommand) error {
	if c.Add == nil {
		w.hub.remove(s, c.Remove)
		return nil
	}
	if err := w.hub.add(s, *c.Add); err != nil {
		return err
	}
	if !w.holds(c.Add.Store, c.Add.Partition) {
		w.hub.mark(s, read.Event{Kind: read.Moved, ID: c.Add.ID})
	}
	return nil
}

// holds says whether a partition of a store is here, ready or not.
func (w *Worker) holds(name string, partition int32) bool {
	v := w.views[name]
	if v == nil {
		return false
	}
	return v.Global || w.task(taskID{v.Subtopology, partition}) != nil
}

func (h *hub) mark(s *watchStream, e read.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.mark(e)
}

func (h *hub) drain(s *watchStream) []read.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := make([]read.Event, 0, len(s.dirty))
	for _, e := range s.dirty {
		events = append(events, e)
	}
	clear(s.dirty)
	return events
}

// watched is how many interests there are.
func (h *hub) watched() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, interests := range h.parts {
		n += len(interests)
	}
	return n
}

func (h *hub) newest(s *watchStream) uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return s.seq
}

func (h *hub) leave(s *watchStream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range s.interests {
		h.drop(s, id)
	}
}
