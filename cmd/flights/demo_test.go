package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The demo is tested as its users have it: the built program, over HTTP.

var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "flights-test")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "flights")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// demo is a running demo.
type demo struct {
	t    *testing.T
	cmd  *exec.Cmd
	dir  string
	port int
	out  *bytes.Buffer
}

func startDemo(t *testing.T, dir string, port int, args ...string) *demo {
	t.Helper()
	d := &demo{t: t, dir: dir, port: port, out: &bytes.Buffer{}}
	args = append([]string{"demo", "--state", dir, "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--dates", "original"}, args...)
	d.cmd = exec.Command(binary, args...)
	d.cmd.Stdout, d.cmd.Stderr = d.out, d.out
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.kill() })
	return d
}

func (d *demo) kill() {
	if d.cmd.ProcessState == nil {
		// What was killed before is gone already.
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
	}
}

// stop ends it as Ctrl-C does.
func (d *demo) stop() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
		d.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- d.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			d.t.Errorf("stopped with %v:\n%s", err, d.out)
		}
	case <-time.After(20 * time.Second):
		d.t.Errorf("does not stop:\n%s", d.out)
		d.kill()
	}
}

func (d *demo) token(name string) string {
	b, err := os.ReadFile(filepath.Join(d.dir, "tokens.json"))
	if err != nil {
		return ""
	}
	var tokens map[string]string
	if json.Unmarshal(b, &tokens) != nil {
		return ""
	}
	return tokens[name]
}

// ask posts a query to instance i and returns status and body.
func (d *demo) ask(i int, token, query string) (int, string) {
	body, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		d.t.Fatal(err)
	}
	req, err := http.NewRequest("POST", fmt.Sprintf("http://127.0.0.1:%d/graphql", d.port+i), bytes.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

const knownQuery = `{ a: airportTotals(origin: "DFW") { ...T } b: airportTotals(origin: "ORD") { ...T } c: airportTotals(origin: "ATL") { ...T }
  airportCount topAirports(first: 5) { rows { origin delayMinutes } } } fragment T on AirportTotals { flights delayed delayMinutes worstDelay }`

const knownData = `{"data":{"a":{"flights":1103,"delayed":269,"delayMinutes":10462,"worstDelay":298},` +
	`"b":{"flights":1095,"delayed":254,"delayMinutes":8181,"worstDelay":259},` +
	`"c":{"flights":846,"delayed":174,"delayMinutes":6611,"worstDelay":365},"airportCount":220,` +
	`"topAirports":{"rows":[{"origin":"DFW","delayMinutes":10462},{"origin":"ORD","delayMinutes":8181},` +
	`{"origin":"PHX","delayMinutes":7627},{"origin":"LAX","delayMinutes":7289},{"origin":"ATL","delayMinutes":6611}]}}`

// awaitKnown waits until each instance gives the known answers.
func (d *demo) awaitKnown(n int) {
	d.t.Helper()
	for i := range n {
		got := ""
		until(d.t, func() bool {
			_, got = d.ask(i, d.token("viewer"), knownQuery)
			return strings.HasPrefix(got, knownData)
		}, func() string { return fmt.Sprintf("known answers of instance %d, got %s\n%s", i, got, d.out) })
	}
}

func until(t *testing.T, ok func() bool, what func() string) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what())
		}
	}
}

// freePorts finds n ports in a row that are free now.
func freePorts(t *testing.T, n int) int {
	t.Helper()
next:
	for first := 20000 + os.Getpid()%20000; first < 60000; first += n {
		for p := first; p < first+n; p++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if err != nil {
				continue next
			}
			l.Close()
		}
		return first
	}
	t.Fatal("no free ports")
	return 0
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestDemo(t *testing.T) {
	dir, port := t.TempDir(), freePorts(t, 3)
	d := startDemo(t, dir, port, "--rate", "max")
	d.awaitKnown(3)
	for i := range 3 {
		base := fmt.Sprintf("http://127.0.0.1:%d", port+i)
		until(t, func() bool { s, _ := get(t, base+"/readyz"); return s == 200 }, func() string {
			_, body := get(t, base+"/readyz")
			return "readiness: " + body
		})
		for _, path := range []string{"/", "/playground/", "/healthz", "/metrics"} {
			if s, _ := get(t, base+path); s != 200 {
				t.Errorf("%s%s: status %d", base, path, s)
			}
		}
	}
	t.Run("tokens", func(t *testing.T) { testTokens(t, d) })
	t.Run("a second demo on the same ports and folder", func(t *testing.T) { testInUse(t, dir, port) })
	d.stop()
	t.Run("kept state is not loaded again", func(t *testing.T) {
		again := startDemo(t, dir, port, "--rate", "max")
		again.awaitKnown(3)
		again.stop()
	})
}

// testTokens: without a token, with one for some stores, with a wrong one.
func testTokens(t *testing.T, d *demo) {
	const totals, hours = `{ airportTotals(origin: "DFW") { flights } }`, `{ airportHours(origin: "DFW", last: "1h") { flights } }`
	nested := `{ airportTotals(origin: "DFW") { flights airport { city } } }`
	for _, c := range []struct {
		name, token, query, code string
		status                   int
	}{
		{"none", "", totals, "UNAUTHENTICATED", 401},
		{"wrong", "x.y.z", totals, "UNAUTHENTICATED", 401},
		{"limited, its store", d.token("limited"), totals, "", 200},
		{"limited, another store", d.token("limited"), hours, "FORBIDDEN", 200},
		{"limited, another store below its own", d.token("limited"), nested, "FORBIDDEN", 200},
		{"viewer", d.token("viewer"), nested, "", 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body := d.ask(1, c.token, c.query)
			if status != c.status || (c.code == "") == strings.Contains(body, `"errors"`) || !strings.Contains(body, c.code) {
				t.Errorf("status %d, want %d with code %q: %s", status, c.status, c.code, body)
			}
		})
	}
}

// testInUse: one clear line and exit code 1, and what runs is left alone.
func testInUse(t *testing.T, dir string, port int) {
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"port", "stop what uses the port, or choose another", []string{"demo", "--listen", fmt.Sprintf("127.0.0.1:%d", port)}},
		{"folder", "is in use by another process", []string{"demo", "--listen", fmt.Sprintf("127.0.0.1:%d", freePorts(t, 3)), "--state", dir}},
		{"rate", "allowed are paced, max, or records a second", []string{"demo", "--rate", "fast"}},
		{"broker", "cannot reach Kafka at 127.0.0.1:1: connection refused", []string{"demo", "--brokers", "127.0.0.1:1", "--listen", "127.0.0.1:0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := exec.Command(binary, c.args...).CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), c.want) {
				t.Errorf("%v: %s", err, out)
			}
			if n := strings.Count(strings.TrimSpace(string(out)), "\n"); n > 0 {
				t.Errorf("not one line: %s", out)
			}
		})
	}
}

// Invariant 1: no acknowledged state is lost and none is counted twice, whatever
// is killed, when.
func TestInvariant1KilledWhileLoading(t *testing.T) {
	for _, after := range []time.Duration{400 * time.Millisecond, 900 * time.Millisecond, 1700 * time.Millisecond} {
		t.Run(after.String(), func(t *testing.T) {
			dir, port := t.TempDir(), freePorts(t, 3)
			first := startDemo(t, dir, port, "--rate", "8000")
			time.Sleep(after) // a moment in the middle, not something waited for
			first.kill()
			second := startDemo(t, dir, port, "--rate", "max")
			second.awaitKnown(3)
			second.stop()
		})
	}
}
