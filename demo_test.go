package streamgauge

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamgauge/streamgauge/internal/usage"
)

const smallSchema = `type Event @source(topic: "events", time: "at") { at: DateTime! name: String! }
type NameTotals @view(from: "Event", by: "name") { name: String! events: Long! @count }
type Query { nameTotals(name: String!): NameTotals @lookup }
`

// small is an application that can be asked to start, and no more.
func small() App {
	return App{Name: "small", Schema: smallSchema, Demo: &Demo{Events: Dataset{
		Topic: "events", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("")), nil },
	}}}
}

func runSmall(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := command(small())
	c.Writer, c.ErrWriter = &out, &out
	err := c.Run(t.Context(), append([]string{"small"}, args...))
	return out.String(), err
}

func TestCommandMistakes(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"run --port 1", "small run: there is no flag -port; see --help"},
		{"run now", `small run: takes no arguments, got "now"; see --help`},
		{"demo --instances many", `small demo: invalid value "many" for flag -instances: want a whole number; see --help`},
		{"dmeo", `small: there is no command "dmeo"; see --help`},
	} {
		out, err := runSmall(t, strings.Fields(c.args)...)
		var wrong *usage.Error
		if !errors.As(err, &wrong) || err.Error() != c.want || out != "" {
			t.Errorf("%s: got %v and %q, want %s", c.args, err, out, c.want)
		}
	}
	if out, err := runSmall(t, "version"); err != nil || !strings.HasPrefix(out, "small "+Version) {
		t.Errorf("version: %q, %v", out, err)
	}
	for _, c := range []struct{ args, want string }{
		{"demo --listen nonsense", `--listen "nonsense": want HOST:PORT, with a port from 0 to 65535`},
		{"demo --listen 127.0.0.1:65535", `--listen "127.0.0.1:65535": 3 instances have ports beyond 65535: choose a lower one`},
	} {
		if _, err := runSmall(t, strings.Fields(c.args)...); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.args, err, c.want)
		}
	}
}

// A demo that cannot start leaves nothing behind.
func TestDemoLeavesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	made, there := filepath.Join(tmp, "made"), filepath.Join(tmp, "there")
	if err := os.Mkdir(there, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"", made, there} {
		_, err := runSmall(t, "demo", "--instances", "1", "--listen", l.Addr().String(), "--state", state)
		if err == nil || !strings.Contains(err.Error(), "address already in use; stop what uses the port") {
			t.Errorf("got %v", err)
		}
	}
	// What is wrong may also come out later, here that there is no Kafka.
	free := freeAddr(t)
	if _, err := runSmall(t, "demo", "--instances", "1", "--listen", free, "--state", made, "--brokers", "nonsense"); err == nil {
		t.Error("it started")
	}
	var left []string
	if err := filepath.WalkDir(tmp, func(path string, _ os.DirEntry, err error) error {
		left = append(left, path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(left) != 2 || left[1] != there {
		t.Errorf("left behind: %v", left)
	}
}

func TestDemoSaysThatItsBrokerIsDamaged(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "broker"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"meta.json", "topics.json"} {
		if err := os.WriteFile(filepath.Join(dir, "broker", name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, err := runSmall(t, "demo", "--instances", "1", "--listen", freeAddr(t), "--state", dir)
	if err == nil || !strings.Contains(err.Error(), "is damaged") || !strings.Contains(err.Error(), "delete "+dir+", all that belongs to it, and start again") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}
