package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// condition is how an instance is, as far as this process knows: what may be
// asked of it.
type condition uint8

// The conditions.
const (
	down     condition = iota // no process, or one that is about to stop
	starting                  // a process that was not ready yet
	up                        // was ready since it started
	paused                    // stopped by a signal
)

func (c condition) String() string { return [...]string{"down", "starting", "up", "paused"}[c] }

// instance is one slot's process.
type instance struct {
	slot    int
	name    string
	http    string
	state   string
	log     string
	command func() *exec.Cmd
	note    func(pid int) // of a start and an end
	died    func(how string)

	mu       sync.Mutex // guards the following
	cmd      *exec.Cmd
	ended    chan struct{} // closed when cmd's process has ended
	cond     condition
	isolated bool // from the other instances
	epoch    int  // changes whenever cond does
}

// newInstance makes a slot; extra are further variables of its environment.
func newInstance(cfg *Config, dir string, slot int, note func(pid int), died func(how string), extra []string) *instance {
	s := slot + 1
	in := &instance{
		slot: slot, name: fmt.Sprintf("instance-%d", s), http: cfg.port(instancePort + 10*s + 1),
		state: filepath.Join(dir, fmt.Sprintf("state-%d", s)), log: filepath.Join(dir, fmt.Sprintf("instance-%d.log", s)),
		note: note, died: died,
	}
	env := append(os.Environ(),
		"STREAMGAUGE_APP=chaos", "STREAMGAUGE_INSTANCE="+in.name,
		"STREAMGAUGE_LISTEN_HTTP="+in.http, "STREAMGAUGE_LISTEN_GRPC="+cfg.port(instancePort+10*s+2),
		"STREAMGAUGE_LISTEN_ADVERTISE="+cfg.port(instancePort+10*s+3), "STREAMGAUGE_STATE_DIR="+in.state,
		"STREAMGAUGE_KAFKA_SESSIONTIMEOUT=6s", "STREAMGAUGE_KAFKA_HEARTBEATINTERVAL=1s",
		"STREAMGAUGE_STATE_CHECKPOINTINTERVAL=4s", "STREAMGAUGE_AUTH_MODE=off", "STREAMGAUGE_LOG_LEVEL="+cfg.LogLevel,
		"STREAMGAUGE_LIMITS_ANONYMOUSRATE=100000", "STREAMGAUGE_LIMITS_SOCKETS=1000", "STREAMGAUGE_LIMITS_COMPLEXITY=200000",
	)
	in.command = func() *exec.Cmd {
		cmd := exec.Command(cfg.Binary, "run")
		cmd.Env = append(env, extra...)
		// A terminal's interrupt is for this process alone.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return cmd
	}
	return in
}

// start runs the process, if there is none. It becomes up when it is ready first.
func (in *instance) start() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.cond != down {
		return nil
	}
	out, err := os.OpenFile(in.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("log of %s: %w", in.name, err)
	}
	defer out.Close()
	fmt.Fprintf(out, "---- %s starts\n", time.Now().UTC().Format(time.RFC3339Nano))
	cmd := in.command()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", in.name, err)
	}
	in.cmd, in.ended = cmd, make(chan struct{})
	in.set(starting)
	in.note(cmd.Process.Pid)
	go in.wait(cmd, in.ended)
	return nil
}

// wait tells of an end that nobody asked for.
func (in *instance) wait(cmd *exec.Cmd, ended chan struct{}) {
	err := cmd.Wait()
	close(ended)
	in.mu.Lock()
	unasked := in.cmd == cmd && in.cond != down
	if unasked {
		in.set(down)
	}
	in.mu.Unlock()
	if unasked {
		how := "without an error"
		if err != nil {
			how = err.Error()
		}
		in.died(how)
	}
}

// set changes the condition; the caller holds mu.
func (in *instance) set(c condition) {
	in.cond = c
	in.epoch++
}

func (in *instance) now() (c condition, isolated bool, epoch int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.cond, in.isolated, in.epoch
}

func (in *instance) isolate(yes bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.isolated = yes
	in.epoch++
}

// ready notes that the process was ready.
func (in *instance) ready() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.cond == starting {
		in.set(up)
	}
}

// signal sends a signal, with the condition that follows.
func (in *instance) signal(s syscall.Signal, c condition) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.cmd == nil || in.cond == down {
		return
	}
	if s != syscall.SIGCONT {
		in.set(c)
	}
	_ = in.cmd.Process.Signal(s) // one that has ended is noticed by wait
	if s == syscall.SIGCONT {
		in.set(c)
	}
}

// kill ends the process as kill -9 does, and waits for it.
func (in *instance) kill() {
	in.signal(syscall.SIGKILL, down)
	in.await(10 * time.Second)
}

// stop ends the process by SIGTERM; it says how long that took, or that it did
// not end in time and was killed.
func (in *instance) stop(within time.Duration) (time.Duration, error) {
	began := time.Now()
	in.signal(syscall.SIGTERM, down)
	if in.await(within) {
		return time.Since(began), nil
	}
	in.mu.Lock()
	cmd := in.cmd
	in.mu.Unlock()
	_ = cmd.Process.Signal(syscall.SIGQUIT) // its stacks, into its log
	if !in.await(2 * time.Second) {
		_ = cmd.Process.Kill()
		in.await(10 * time.Second)
	}
	return time.Since(began), fmt.Errorf("%s did not end within %s of SIGTERM", in.name, within)
}

// await waits for the end of the process.
func (in *instance) await(within time.Duration) bool {
	in.mu.Lock()
	ended := in.ended
	in.mu.Unlock()
	if ended == nil {
		return true
	}
	select {
	case <-ended:
		in.note(0)
		return true
	case <-time.After(within):
		return false
	}
}

func (in *instance) pid() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.cmd == nil || in.cmd.Process == nil {
		return "none"
	}
	return strconv.Itoa(in.cmd.Process.Pid)
}
