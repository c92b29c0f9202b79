package gen

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// project makes a folder with a module of its own that requires this checkout.
func project(t *testing.T, schema string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module github.com/streamgauge/streamgauge", "module example.com/project", 1)
	text += "\nrequire github.com/streamgauge/streamgauge v0.0.0\nreplace github.com/streamgauge/streamgauge => " + root + "\n"
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"go.mod": text, "go.sum": string(sum), "schema.graphqls": schema,
		"gqlgen.yml": "schema: [schema.graphqls]\nexec: {filename: graph/generated.go, package: graph}\nmodel: {filename: graph/models_gen.go, package: graph}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// everyForm has each form in which a field may read, with keys of several
// columns and types, nullable arguments, and fields of one's own.
const everyForm = `
type Reading @source(topic: "readings", time: "at") {
  site: String!
  sensor: Long!
  at: DateTime!
  value: Float
  cost: Decimal
}
type Sensor @table(topic: "sensors", key: "code", global: true) { code: String! unit: String }
type Now @view(from: "Reading", by: ["site", "sensor"]) {
  id: ID! @id
  site: String!
  sensor: Long!
  n: Long! @count
  cost: Decimal! @sum
  high: Float @max(of: "value")
  seen: DateTime @max(of: "at")
  share: Float @expr(of: "high / n")
  about: Sensor @lookup(key: "site")
  minutes(from: DateTime, last: Duration, step: Duration, zone: String, fill: Fill): [Minute!] @windows(key: ["site", "sensor"])
  lately(last: Duration): Minute @windows(key: ["site", "sensor"])
  shout(loud: Boolean): String @resolver
  freshness: Freshness!
}
type Minute @view(from: "Reading", by: ["site", "sensor"]) @window(size: "1m", retain: "1d") {
  site: String!
  sensor: Long!
  start: DateTime! @windowStart
  n: Long! @count
  p95: Float @quantile(of: "value", q: 0.95)
}
input SensorKey { site: String! sensor: Long! }
type Best { rows: [Now!]! freshness: Freshness! }
type Query {
  now(site: String!, sensor: Long!): Now @lookup
  nows(keys: [SensorKey!]!): [Now] @lookup
  sensors(codes: [String!]!): [Sensor] @lookup
  page(site: String!, first: Int, after: String, reverse: Boolean): NowConnection @range
  rows(first: Int! = 5): [Now!] @range
  best(first: Int): Best @top(by: "cost")
  latest(first: Int! = 3): [Now!] @top(by: "seen", where: "n > 1")
  size(site: String!): Long @size(of: "Now")
  minutes(site: String!, sensor: Long!, from: DateTime, to: DateTime): [Minute!] @windows
  busiest(first: Int! = 3, last: Duration): [Minute!] @top(by: "n")
  hello(name: String! = "you"): String @resolver
}
type Subscription {
  now(site: String!, sensor: Long!, every: Duration): Now @lookup
  best(first: Int): Best @top(by: "cost")
  page(first: Int! = 5): NowConnection @range
  size: Long @size(of: "Now")
  minutes(site: String!, sensor: Long!, last: Duration!): [Minute!] @windows
}
`

// TestGenerateEveryForm: what is generated builds, which Generate itself makes
// sure of; a second run changes nothing, and begins no file of the user's again.
func TestGenerateEveryForm(t *testing.T) {
	dir := project(t, everyForm)
	written, err := Generate(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Join(written, " ")
	for _, want := range []string{"generated.go", "models_gen.go", "views_gen.go", "streamgauge.graphqls", "now_shout.go", "query_hello.go"} {
		if !strings.Contains(names, want) {
			t.Errorf("%s was not written: %s", want, names)
		}
	}
	before := snapshot(t, dir)
	again, err := Generate(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.Join(again, " "), "now_shout.go") {
		t.Error("a file of the user's was begun again")
	}
	for name, text := range snapshot(t, dir) {
		if before[name] != text {
			t.Errorf("%s is not the same the second time", name)
		}
	}
}

// A project is never left worse than it was: by a schema with mistakes, or by
// code of the user's that no longer fits.
func TestGenerateCannotBrickAProject(t *testing.T) {
	dir := project(t, everyForm)
	if _, err := Generate(context.Background(), dir); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	for _, c := range []struct{ name, schema, want string }{
		{"mistake", strings.Replace(everyForm, `@max(of: "at")`, `@max(of: "when")`, 1), "schema.graphqls:17:28:"},
		{"own code does not fit", strings.Replace(everyForm, "shout(loud: Boolean)", "shout(loud: String)", 1), "nothing was changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(dir, "schema.graphqls"), []byte(c.schema), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Generate(context.Background(), dir)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			after := snapshot(t, dir)
			for name, text := range before {
				if after[name] != text {
					t.Errorf("%s was changed", name)
				}
			}
			if len(after) != len(before) {
				t.Errorf("%d files, were %d", len(after), len(before))
			}
		})
	}
}

func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(filepath.Join(dir, "graph"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
