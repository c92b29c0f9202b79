//go:build linux

package processor

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// A disk that fills up: checkpoints fail and the task says so; reads go on; at
// the cap of the memory processing stops; and all goes on when there is room.
func TestDiskFillsUp(t *testing.T) {
	dir := t.TempDir()
	size := func(bytes string, flags uintptr) error {
		return syscall.Mount("state", dir, "tmpfs", flags, "size="+bytes)
	}
	if err := size("1m", 0); errors.Is(err, syscall.EPERM) {
		t.Skip("needs the right to mount a small file system")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	c := newTestCluster(t, hitSchema)
	c.create("hits", 1)
	in := c.start("one", func(cfg *Config) {
		cfg.StateDir, cfg.OverlayBytes, cfg.CheckpointInterval, cfg.Standbys = dir, 1<<20, 300*time.Millisecond, -1
	})
	t.Cleanup(func() {
		if err := in.close(); err != nil {
			t.Error(err)
		}
	})
	task := taskID{"hits", 0}
	until(t, "it is ready", func() bool { return in.Status().Ready })
	produced := 0
	produce := func() {
		var ms []message
		for range 2000 {
			key := fmt.Sprintf("%0200d", produced)
			ms = append(ms, keyed(key, fmt.Sprintf(`{"page":%q,"at":"2024-01-01T00:00:00Z","ms":1}`, key)))
			produced++
		}
		c.produce("hits", ms...)
	}
	for range 10 {
		produce()
	}
	until(t, "it says that the disk is full", func() bool { return strings.Contains(in.Status().Tasks[0].Note, "no space left") })
	var held int64
	until(t, "processing stops at the cap", func() bool {
		was := held
		held = in.task(task).serving.Load().store.OverlayBytes()
		return held > 2<<20 && held == was && in.Status().Tasks[0].Lag >= 0
	})
	before := sizeOfStore(t, in)
	if before <= 0 {
		t.Fatal("reads do not go on")
	}
	for range 5 {
		produce()
	}
	if held > 16<<20 {
		t.Errorf("%d bytes are in memory", held)
	}
	if err := size("64m", syscall.MS_REMOUNT); err != nil {
		t.Fatal(err)
	}
	until(t, "it goes on", func() bool { return sizeOfStore(t, in) == int64(produced) })
	until(t, "nothing is wrong any more", func() bool { return in.Status().Tasks[0].Note == "" })
	if a := in.part(t, "page-totals", 0, view.OfString(fmt.Sprintf("%0200d", 7))); a.Err != nil || a.Rows[0] == nil {
		t.Errorf("key 7: %+v", a)
	}
}

func sizeOfStore(t *testing.T, in *instance) int64 {
	t.Helper()
	as, err := in.Read(t.Context(), []*read.Request{{Query: read.Query{Store: "page-totals", Op: read.Size}}})
	if err != nil {
		t.Fatal(err)
	}
	if as[0].Err != nil {
		return -1
	}
	return as[0].Count
}
