package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/streamgauge/streamgauge/graph/gen"
	"github.com/streamgauge/streamgauge/internal/usage"
	"github.com/urfave/cli/v3"
)

func initCommand() *cli.Command {
	return &cli.Command{
		Name:        "init",
		Usage:       "begin a project in a folder: a schema, gqlgen.yml and main.go, generated and ready to run",
		ArgsUsage:   "DIR",
		Description: "DIR must lie in a Go module that requires Streamgauge, such as this repository's checkout.",
		Action: func(ctx context.Context, c *cli.Command) error {
			dir, err := oneArg(c, "")
			if err != nil {
				return err
			}
			if dir == "" {
				return usage.Errorf(c, "takes the folder to make")
			}
			return begin(ctx, c, dir)
		},
	}
}

const initSchema = `"Something that happened, as a JSON record on the topic events."
type Event @source(topic: "events", time: "at") {
  at: DateTime!
  name: String!
  value: Float
}

"What is known of a name."
type NameTotals @view(from: "Event", by: "name") {
  name: String!
  events: Long! @count
  average: Float @avg(of: "value")
}

type Query {
  nameTotals(name: String!): NameTotals @lookup
  topNames(first: Int! = 10): [NameTotals!] @top(by: "events")
}
`

const initGqlgen = `schema: [schema.graphqls]
exec: {filename: graph/generated.go, package: graph}
model: {filename: graph/models_gen.go, package: graph}
`

const initMain = `package main

import (
	"%s/graph"

	"github.com/streamgauge/streamgauge"
)

func main() {
	streamgauge.Main(streamgauge.App{Name: %q, Schema: graph.SchemaText, New: graph.New})
}
`

func begin(ctx context.Context, c *cli.Command, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "schema.graphqls")); err == nil {
		return fmt.Errorf("%s has a schema.graphqls already", dir)
	}
	path, err := importPath(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"schema.graphqls": initSchema, "gqlgen.yml": initGqlgen,
		"main.go": fmt.Sprintf(initMain, path, filepath.Base(dir)),
	} {
		to := filepath.Join(dir, name)
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return err
		}
		fmt.Fprintln(c.Root().Writer, "wrote", to)
	}
	written, err := gen.Generate(ctx, dir)
	for _, f := range written {
		fmt.Fprintln(c.Root().Writer, "wrote", filepath.Join(dir, f))
	}
	return err
}

// importPath is the import path of a folder: the module that it lies in, and
// the way from there.
func importPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for root := abs; ; root = filepath.Dir(root) {
		b, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if err != nil {
			if root == filepath.Dir(root) {
				return "", fmt.Errorf("%s lies in no Go module: run go mod init and go get github.com/streamgauge/streamgauge first", dir)
			}
			continue
		}
		for line := range strings.Lines(string(b)) {
			if module, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
				rel, err := filepath.Rel(root, abs)
				if err != nil {
					return "", err
				}
				return strings.TrimSuffix(strings.TrimSpace(module)+"/"+filepath.ToSlash(rel), "/."), nil
			}
		}
	}
}
