package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/streamgauge/streamgauge/graph/gen"
	"github.com/streamgauge/streamgauge/internal/load"
	"github.com/streamgauge/streamgauge/internal/usage"
	"github.com/streamgauge/streamgauge/view/schema"
	"github.com/urfave/cli/v3"
	"github.com/vektah/gqlparser/v2/ast"
)

func generateCommand() *cli.Command {
	return &cli.Command{
		Name:      "generate",
		Usage:     "generate a project's Go code from its schema",
		ArgsUsage: "[DIR]",
		Description: "Reads gqlgen.yml and the schema in DIR (default: this folder), generates the code in a\n" +
			"temporary folder, builds it there, and puts it in place only if it builds.",
		Action: func(ctx context.Context, c *cli.Command) error {
			dir, err := oneArg(c, ".")
			if err != nil {
				return err
			}
			written, err := gen.Generate(ctx, dir)
			for _, f := range written {
				fmt.Fprintln(c.Root().Writer, "wrote", filepath.Join(dir, f))
			}
			return err
		},
	}
}

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "check a schema, and print it as clients will see it",
		ArgsUsage: "[FILE|DIR]",
		Description: "Reports every mistake as file:line:column: what is wrong, what is allowed.\n" +
			"Without mistakes it prints the public schema. Default: schema.graphqls.",
		Flags: []cli.Flag{&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print mistakes only"}},
		Action: func(_ context.Context, c *cli.Command) error {
			s, err := loadSchema(c)
			if err != nil {
				return err
			}
			if !c.Bool("quiet") {
				fmt.Fprint(c.Root().Writer, s.PublicSDL())
			}
			return nil
		},
	}
}

func topologyCommand() *cli.Command {
	return &cli.Command{
		Name:      "topology",
		Usage:     "show what a schema makes: subtopologies, topics, stores, scopes, root fields",
		ArgsUsage: "[FILE|DIR]",
		Flags:     []cli.Flag{&cli.StringFlag{Name: "app", Value: "app", Usage: "the application's `NAME`, which prefixes its internal topics"}},
		Action: func(_ context.Context, c *cli.Command) error {
			s, err := loadSchema(c)
			if err != nil {
				return err
			}
			if err := checkApp(c.String("app")); err != nil {
				return err
			}
			return s.Topology.Describe(c.Root().Writer, c.String("app"))
		},
	}
}

// loadSchema loads the schema that the argument names.
func loadSchema(c *cli.Command) (*schema.Schema, error) {
	path, err := oneArg(c, "schema.graphqls")
	if err != nil {
		return nil, err
	}
	return schemaAt(path)
}

// schemaAt loads a file, or all .graphqls files of a folder.
func schemaAt(path string) (*schema.Schema, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	files := []string{path}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.graphqls")); err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, fmt.Errorf("no .graphqls file in %s", path)
		}
	}
	var sources []*ast.Source
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, fmt.Errorf("read schema: %w", err)
		}
		sources = append(sources, &ast.Source{Name: f, Input: string(b)})
	}
	return schema.LoadSources(sources...)
}

// oneArg is the command's one optional argument.
func oneArg(c *cli.Command, def string) (string, error) {
	switch c.Args().Len() {
	case 0:
		return def, nil
	case 1:
		return c.Args().First(), nil
	}
	return "", usage.Errorf(c, "takes one argument, got %d", c.Args().Len())
}

// checkApp refuses a name that cannot begin the names of topics.
func checkApp(name string) error {
	if err := load.CheckTopic(name); err != nil {
		return fmt.Errorf("--app begins the names of topics: %w", err)
	}
	return nil
}
