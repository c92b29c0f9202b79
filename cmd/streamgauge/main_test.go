package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamgauge/streamgauge/internal/embedded"
	"github.com/streamgauge/streamgauge/processor/broker"
)

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c := command()
	c.Writer, c.ErrWriter = &out, &out
	err := c.Run(t.Context(), append([]string{"streamgauge"}, args...))
	return out.String(), err
}

func TestMistakes(t *testing.T) {
	long := strings.Repeat("x", 250)
	for _, c := range []struct {
		want string
		args []string
	}{
		{`streamgauge load: required flag "topic" not set; see --help`, []string{"load"}},
		{"streamgauge load: there is no flag -tpoic; see --help", []string{"load", "--tpoic", "x"}},
		{"streamgauge check: takes one argument, got 2; see --help", []string{"check", "a", "b"}},
		{"streamgauge init: takes the folder to make; see --help", []string{"init"}},
		{`streamgauge: there is no command "lode"; see --help`, []string{"lode"}},
		{`--topic: "a b" is no name of a topic; allowed: letters, digits, '.', '_' and '-', up to 249`, []string{"load", "--topic", "a b"}},
		{`--topic: ".." is no name of a topic; allowed: letters, digits, '.', '_' and '-', up to 249`, []string{"load", "--topic", ".."}},
		{`is no name of a topic; allowed: letters, digits, '.', '_' and '-', up to 249`, []string{"load", "--topic", long}},
		{`--partitions 0: allowed are 1 to 100000`, []string{"load", "--topic", "x", "--partitions", "0"}},
		{`--app begins the names of topics: "a/b" is no name of a topic`, []string{"reset", "--app", "a/b"}},
	} {
		out, err := run(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || out != "" {
			t.Errorf("%v: got %v and %q, want %s", c.args, err, out, c.want)
		}
	}
}

const schemaText = `type Event @source(topic: "%TOPIC") { name: String! }
type NameTotals @view(from: "Event", by: "name") { name: String! events: Long! @count }
type Query { nameTotals(name: String!): NameTotals @lookup }
`

func schemaFile(t *testing.T, topic string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "schema.graphqls")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(schemaText, "%TOPIC", topic)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckRefusesTopicNames(t *testing.T) {
	if out, err := run(t, "check", "--quiet", schemaFile(t, "events")); err != nil || out != "" {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := run(t, "check", schemaFile(t, "the events")); err == nil || !strings.Contains(err.Error(), `topic "the events" is no name of a topic`) {
		t.Errorf("got %v", err)
	}
}

func TestReset(t *testing.T) {
	b, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	schema, state := schemaFile(t, "events"), t.TempDir()
	reset := func(more ...string) (string, error) {
		return run(t, append([]string{"reset", "--brokers", b.Addrs()[0], "--schema", schema, "--app", "counts", "--state", state}, more...)...)
	}
	// Nothing is asked, nor said to be deleted, where there is nothing.
	if out, err := reset(); err != nil || out != "there is nothing of counts to delete\n" {
		t.Errorf("got %q, %v", out, err)
	}
	client, err := broker.New(broker.Config{Brokers: b.Addrs(), ClientID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if err := client.CreateTopics(t.Context(), []broker.TopicSpec{{Name: "counts-dead-letters", Partitions: 1, Replication: 1}}); err != nil {
		t.Fatal(err)
	}
	if out, err := reset("--yes"); err != nil || out != "topic    counts-dead-letters\ndeleted\n" {
		t.Errorf("got %q, %v", out, err)
	}
	folder := filepath.Join(state, "counts")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := reset("--yes"); err != nil || out != "folder   "+folder+"\ndeleted\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
	if out, err := reset("--yes"); err != nil || out != "there is nothing of counts to delete\n" {
		t.Errorf("got %q, %v", out, err)
	}
}
