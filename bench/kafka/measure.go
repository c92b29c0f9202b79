package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is time passed and processor time of this process taken.
type usage struct{ wall, cpu time.Duration }

// mark is a moment to measure from.
type mark struct {
	at  time.Time
	cpu time.Duration
}

func now() mark { return mark{time.Now(), processorTime()} }

func (m mark) till() usage { return usage{time.Since(m.at), processorTime() - m.cpu} }

// processorTime is what this process took so far, all its threads together.
func processorTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err) // there is no such thing as a process without usage
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// perSecond and perCore are the rates of n things.
func (u usage) perSecond(n int) float64 { return float64(n) / u.wall.Seconds() }
func (u usage) perCore(n int) float64   { return float64(n) / u.cpu.Seconds() }

// rates tells the rates of records that had so many bytes.
func (u usage) rates(records, bytes int) string {
	return fmt.Sprintf("%s rec/s, %s rec/s/core, %.1f MB/s in %.1f s", short(u.perSecond(records)), short(u.perCore(records)),
		float64(bytes)/1e6/u.wall.Seconds(), u.wall.Seconds())
}

// short is a number that people can read.
func short(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.2fM", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.0fk", n/1e3)
	}
	return fmt.Sprintf("%.0f", n)
}

func median[T cmp.Ordered](of []T) T {
	s := slices.Sorted(slices.Values(of))
	return s[len(s)/2]
}

// memory is what the process holds, in bytes. Mapped files are the kernel's to
// take back.
type memory struct{ heap, anonymous, mapped int64 }

// held measures after a collection.
func held() (memory, error) {
	runtime.GC()
	debug.FreeOSMemory()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	m := memory{heap: int64(s.HeapInuse)}
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return m, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(fields[1], 10, 64) // other lines have no number
		switch fields[0] {
		case "RssAnon:":
			m.anonymous = kb << 10
		case "RssFile:":
			m.mapped = kb << 10
		}
	}
	return m, nil
}

func (m memory) minus(o memory) memory {
	return memory{m.heap - o.heap, m.anonymous - o.anonymous, m.mapped - o.mapped}
}

// profiled runs f, writing profiles of it if that was asked for.
func (b *bench) profiled(name string, f func() error) error {
	if !b.profile {
		return f()
	}
	dir := filepath.Join(b.folder(), "profiles")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(dir, name+".cpu"))
	if err != nil {
		return err
	}
	defer out.Close()
	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	err = f()
	pprof.StopCPUProfile()
	if err != nil {
		return err
	}
	mem, err := os.Create(filepath.Join(dir, name+".mem"))
	if err != nil {
		return err
	}
	defer mem.Close()
	return pprof.Lookup("allocs").WriteTo(mem, 0)
}
