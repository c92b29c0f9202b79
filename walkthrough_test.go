package streamgauge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The README's walkthrough is run as it stands, but for ports and temporary
// files, in a copy of the sources.
func TestWalkthrough(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a project")
	}
	tree := t.TempDir()
	copySources(t, tree)
	kafka, http, grpc := freeAddr(t), freeAddr(t), freeAddr(t)
	steps := walkthrough(t, strings.NewReplacer(
		"127.0.0.1:9092", kafka, "load --topic", "load --brokers "+kafka+" --topic",
		"localhost:8080", http, "/tmp/", tree+"/tmp-",
		"STREAMGAUGE_AUTH_MODE=off", "STREAMGAUGE_AUTH_MODE=off STREAMGAUGE_KAFKA_BROKERS="+kafka+" STREAMGAUGE_LISTEN_HTTP="+http+" STREAMGAUGE_LISTEN_GRPC="+grpc,
		"go run ./shop run", "bin/shop run",
	))
	sh := func(script string) string {
		t.Helper()
		out, err := shell(t.Context(), tree, script).CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v: %s", script, err, out)
		}
		return string(out)
	}
	sh("go build -o bin/ ./cmd/streamgauge")
	background(t, tree, steps["broker"])
	awaitPort(t, kafka)
	if out := sh(steps["load"]); !strings.Contains(out, "wrote 3 records into orders (6 partitions)") {
		t.Errorf("load said %s", out)
	}
	sh(steps["schema"])
	sh("go build -o bin/shop ./shop")
	background(t, tree, steps["run"])
	want := steps["answer"]
	got := ""
	for deadline := time.Now().Add(60 * time.Second); !strings.HasPrefix(got, strings.TrimSuffix(want, "}")); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		out, err := shell(t.Context(), tree, steps["query"]).Output()
		if err == nil {
			got = string(out)
		}
	}
	t.Run("a resolver of one's own survives generation", func(t *testing.T) { testOwnResolver(t, tree, sh) })
}

// testOwnResolver adds a field with @resolver: generation begins a file for it,
// once, and leaves it alone afterwards; one that does not build changes nothing.
func testOwnResolver(t *testing.T, tree string, sh func(string) string) {
	sh(`sed -i 's/  orders: Long! @count/  orders: Long! @count\n  shout: String @resolver/' shop/schema.graphqls && bin/streamgauge generate shop`)
	path := filepath.Join(tree, "shop/graph/customertotals_shout.go")
	begun, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	own := regexp.MustCompile(`return nil, errors.New\(.*\)`).ReplaceAllString(string(begun), `s := obj.Customer + "!"; return &s, nil`)
	own = strings.Replace(own, "\t\"errors\"\n", "", 1)
	if err := os.WriteFile(path, []byte(own), 0o644); err != nil {
		t.Fatal(err)
	}
	sh("bin/streamgauge generate shop && go vet ./shop/...")
	if after, err := os.ReadFile(path); err != nil || string(after) != own {
		t.Errorf("the file was changed (%v):\n%s", err, after)
	}
	views := filepath.Join(tree, "shop/graph/views_gen.go")
	before, err := os.ReadFile(views)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(own+"\nfunc broken() { return 1 }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := shell(t.Context(), tree, `sed -i 's/ @count/ @count\n  more: Decimal @max(of: "total")/' shop/schema.graphqls && bin/streamgauge generate shop`).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nothing was changed") {
		t.Errorf("%v: %s", err, out)
	}
	if after, err := os.ReadFile(views); err != nil || !bytes.Equal(before, after) {
		t.Errorf("generated code was changed by a generation that failed (%v)", err)
	}
}

// walkthrough takes the marked blocks out of the README, and the answer.
func walkthrough(t *testing.T, r *strings.Replacer) map[string]string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	steps := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)<!-- walkthrough: (\\w+) -->\n```\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		steps[m[1]] = r.Replace(m[2])
	}
	m := regexp.MustCompile("```json\n(\\{\"data\".*)\n```").FindStringSubmatch(string(text))
	if m == nil {
		t.Fatal("no answer in the README")
	}
	steps["answer"] = m[1]
	for _, name := range []string{"broker", "load", "schema", "run", "query"} {
		if steps[name] == "" {
			t.Fatalf("no step %s in the README", name)
		}
	}
	if !json.Valid([]byte(m[1])) {
		t.Fatalf("the answer is no JSON: %s", m[1])
	}
	return steps
}

// copySources copies what a build needs.
func copySources(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != "." && (strings.HasPrefix(name, ".") || name == "bin" || name == "node_modules" || path == "web/app") {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, path), 0o755)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func shell(ctx context.Context, dir, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	return cmd
}

// background runs a step until the test ends.
func background(t *testing.T, dir, script string) {
	t.Helper()
	cmd := shell(context.Background(), dir, "exec env "+strings.TrimSpace(script))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
			t.Errorf("%s: %v", script, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, out.String())
		}
	})
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func awaitPort(t *testing.T, addr string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(fmt.Errorf("nothing listens: %w", err))
		}
	}
}
