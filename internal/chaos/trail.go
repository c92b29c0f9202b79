package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/streamgauge/streamgauge/internal/chaos/oracle"
)

// mostViolations are written in full; the rest is only counted.
const mostViolations = 500

// trail is the folder that leads to a cause: schedule.log (what was done, when),
// violations.jsonl, the logs of instances and brokers. Safe for concurrent use.
type trail struct {
	dir string
	out io.Writer

	mu         sync.Mutex // guards the following
	schedule   *os.File
	violations *os.File
	written    int
	began      time.Time
}

func newTrail(dir string, seed uint64, out io.Writer) (*trail, error) {
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", fmt.Sprintf("streamgauge-chaos-%d-", seed)); err != nil {
			return nil, fmt.Errorf("make the trail's folder: %w", err)
		}
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the trail's folder: %w", err)
	}
	t := &trail{dir: dir, out: out, began: time.Now()}
	var err error
	if t.schedule, err = os.Create(filepath.Join(dir, "schedule.log")); err == nil {
		t.violations, err = os.Create(filepath.Join(dir, "violations.jsonl"))
	}
	if err != nil {
		return nil, fmt.Errorf("begin the trail: %w", err)
	}
	return t, nil
}

// event notes what is done, in the schedule and on the output.
func (t *trail) event(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	fmt.Fprintf(t.schedule, "%s +%.3fs %s\n", now.UTC().Format("15:04:05.000"), now.Sub(t.began).Seconds(), text)
	fmt.Fprintf(t.out, "%7.1fs %s\n", now.Sub(t.began).Seconds(), text)
}

// note writes a line into the schedule alone.
func (t *trail) note(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	fmt.Fprintf(t.schedule, "%s +%.3fs %s\n", now.UTC().Format("15:04:05.000"), now.Sub(t.began).Seconds(), line)
}

// violation is one fault with what led to it.
type violation struct {
	At       time.Time         `json:"at"`
	Since    float64           `json:"since"` // seconds since the start
	Kind     oracle.Kind       `json:"kind"`
	Text     string            `json:"text"`
	Instance string            `json:"instance,omitempty"`
	Client   string            `json:"client,omitempty"`
	Sent     *time.Time        `json:"sent,omitempty"`
	TookMS   float64           `json:"tookMs,omitempty"`
	Request  string            `json:"request,omitempty"`
	Status   int               `json:"status,omitempty"`
	Headers  map[string]string `json:"headers,omitempty"`
	Answer   string            `json:"answer,omitempty"`
	Known    string            `json:"known,omitempty"` // what the ledger has of the key
	Under    string            `json:"under,omitempty"` // the faults under way
}

func (t *trail) violation(v violation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v.At = time.Now().UTC()
	v.Since = v.At.Sub(t.began).Seconds()
	if len(v.Answer) > 8000 {
		v.Answer = v.Answer[:4000] + " … " + v.Answer[len(v.Answer)-4000:]
	}
	if t.written++; t.written > mostViolations {
		return
	}
	b, err := json.Marshal(v)
	if err == nil {
		_, err = t.violations.Write(append(b, '\n'))
	}
	if err != nil || t.written <= 10 {
		fmt.Fprintf(t.out, "%7.1fs %s: %s (%s, under: %s)\n", v.Since, strings.ToUpper(string(v.Kind)), v.Text, v.Instance, v.Under)
	}
}

// end closes the trail; without keep it is deleted.
func (t *trail) end(keep bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := errors.Join(t.schedule.Close(), t.violations.Close())
	if keep {
		return err
	}
	return errors.Join(err, os.RemoveAll(t.dir))
}

// picture keeps what every instance says of itself at the moment, in the folder
// picture-S, S the seconds since the start.
func (r *run) picture(ctx context.Context) {
	dir := filepath.Join(r.trail.dir, fmt.Sprintf("picture-%d", int(time.Since(r.trail.began).Seconds())))
	err := os.MkdirAll(dir, 0o755)
	for _, in := range r.cluster.list {
		for path, name := range map[string]string{"/api/instances": "tasks.json", "/metrics": "metrics.txt", "/readyz": "ready.json"} {
			_, b, e := r.cluster.get(ctx, in, path)
			if e != nil {
				b = []byte(e.Error() + "\n")
			}
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, in.name+"-"+name), b, 0o644))
		}
	}
	if err != nil {
		r.trail.event("no picture: %v", err)
	}
}
