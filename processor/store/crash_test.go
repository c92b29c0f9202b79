package store

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// crashEnv names the file to a child process that checkpoints until killed.
const crashEnv = "STORE_CRASH_FILE"

var crashSpecs = []Spec{{Name: "totals"}, {Name: "hours", Segment: 5000}}

// crashRun is the run of commit i, the same in parent and child.
func crashRun(i int) Run {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	var run Run
	for range 150 {
		e := row(0, fmt.Sprintf("key-%04d", r.IntN(2000)), fmt.Sprintf("%d of commit %d", r.IntN(1000), i))
		if r.IntN(2) == 0 {
			e.Store, e.Key = 1, []byte(window(fmt.Sprint(r.IntN(20)), int64(r.IntN(40000)-20000)))
		}
		if r.IntN(5) == 0 {
			e.Value = nil
		}
		run = append(run, e)
	}
	return sorted(run)
}

// crashChild, in a child, publishes and checkpoints without end and says so on
// standard output. Elsewhere it returns.
func crashChild() {
	path := os.Getenv(crashEnv)
	if path == "" {
		return
	}
	if err := checkpointForever(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func checkpointForever(path string) error {
	s, err := Open(Options{Path: path, Stores: crashSpecs, MmapSize: testMap})
	if err != nil {
		return err
	}
	i := 0
	if r := s.State().Record; r != nil {
		if i, err = strconv.Atoi(string(r)); err != nil {
			return err
		}
	}
	for {
		for range 3 {
			i++
			s.Publish(crashRun(i), i, State{Record: []byte(strconv.Itoa(i)), CaughtUp: int64(i)})
		}
		if err := s.Checkpoint(context.Background()); err != nil {
			return err
		}
		fmt.Println(i)
	}
}

func TestInvariant5KilledInCheckpoint(t *testing.T) {
	kills := 10
	if testing.Short() {
		kills = 4
	}
	r := seeded(t)
	path, want, reached := testPath(t), newModel(crashSpecs), 0
	for range kills {
		said := runAndKill(t, path, r)
		s := mustOpen(t, Options{Path: path, Stores: crashSpecs})
		record := 0
		if b := s.State().Record; b != nil {
			record, _ = strconv.Atoi(string(b))
		}
		if record < said || record < reached {
			t.Fatalf("the file is at commit %d; the child had written %d", record, said)
		}
		for reached < record {
			reached++
			want.apply(crashRun(reached))
		}
		with(t, s, func(snap *Snapshot) {
			if err := want.check(snap, r); err != nil {
				t.Fatalf("at commit %d: %v", record, err)
			}
			for i, stored := range want.stores {
				snap.Scan(i, nil, nil, false, func(k, v []byte) bool {
					if stored[string(k)] != string(v) {
						t.Errorf("at commit %d: %q is %q, want %q", record, k, v, stored[string(k)])
					}
					return true
				})
			}
		})
		mustClose(t, s)
	}
	t.Logf("%d commits, %d kills", reached, kills)
}

// runAndKill lets a child checkpoint and kills it at a random moment. It
// returns the last commit that the child said was written.
func runAndKill(t *testing.T, path string, r *rand.Rand) (said int) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crashEnv+"="+path)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines, after := bufio.NewScanner(out), 1+r.IntN(8)
	for i := 0; lines.Scan(); i++ {
		if said, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(err)
		}
		if i == after { // and then in the midst of whatever it does
			time.AfterFunc(time.Duration(r.IntN(5000))*time.Microsecond, func() { child.Process.Kill() })
		}
	}
	if err := child.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	if _, err := os.Stat(markerPath(path)); err != nil {
		t.Fatal("a killed child left no marker:", err)
	}
	return said
}
