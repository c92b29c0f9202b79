package gen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/api"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/streamgauge/streamgauge/view/schema"
	"github.com/vektah/gqlparser/v2/ast"
)

// Files that generation writes, beside those that gqlgen.yml names.
const (
	viewsFile    = "views_gen.go"
	injectedFile = "streamgauge.graphqls"
)

// Generate generates the code of the project in the folder dir, which has a
// gqlgen.yml. It changes the process's working directory while it runs. The
// files that it wrote are returned, relative to dir.
func Generate(ctx context.Context, dir string) (written []string, err error) {
	back, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if err := os.Chdir(dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.Chdir(back)) }()
	cfg, err := config.LoadConfig("gqlgen.yml")
	if err != nil {
		return nil, fmt.Errorf("read gqlgen.yml: %w", err)
	}
	s, err := schema.LoadSources(cfg.Sources...)
	if err != nil {
		return nil, err
	}
	g := &generation{cfg: cfg, schema: s, out: filepath.Dir(cfg.Exec.Filename)}
	return g.run(ctx)
}

// generation is one run.
type generation struct {
	cfg    *config.Config
	schema *schema.Schema
	out    string // the folder of the generated package
	tmp    string // where it is made
}

func (g *generation) run(ctx context.Context) ([]string, error) {
	if err := os.MkdirAll(g.out, 0o755); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp(g.out, "generating")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	g.tmp = tmp
	generated := []string{filepath.Base(g.cfg.Exec.Filename), filepath.Base(g.cfg.Model.Filename), viewsFile}
	if err := copyOwn(g.out, tmp, generated); err != nil {
		return nil, err
	}
	text := sourceText(g.cfg.Sources)
	if err := g.configure(); err != nil {
		return nil, err
	}
	p := &plugin{schema: g.schema, text: text, dir: tmp}
	if err := api.Generate(g.cfg, api.AddPlugin(p)); err != nil {
		return nil, fmt.Errorf("generate: %w", err)
	}
	if err := g.forgetFolder(generated); err != nil {
		return nil, err
	}
	if err := build(ctx, tmp); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(tmp, injectedFile), []byte(g.schema.InjectedSDL()), 0o644); err != nil {
		return nil, err
	}
	return g.swap(append(append(generated, injectedFile), p.started...))
}

// copyOwn copies the project's own Go files of the package, so that the build
// sees them.
func copyOwn(from, to string, generated []string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.go"))
	if err != nil {
		return err
	}
	for _, f := range files {
		name := filepath.Base(f)
		if slices.Contains(generated, name) || strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func sourceText(sources []*ast.Source) string {
	var b strings.Builder
	for _, s := range sources {
		b.WriteString(s.Input)
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// configure points gqlgen at the public schema and at the temporary folder.
func (g *generation) configure() error {
	cfg := g.cfg
	cfg.Sources = []*ast.Source{{Name: "public.graphqls", Input: g.schema.PublicSDL()}}
	tmp, err := filepath.Abs(g.tmp)
	if err != nil {
		return err
	}
	cfg.Exec.Filename = filepath.Join(tmp, filepath.Base(cfg.Exec.Filename))
	cfg.Model.Filename = filepath.Join(tmp, filepath.Base(cfg.Model.Filename))
	cfg.Resolver = config.ResolverConfig{}
	cfg.SkipModTidy, cfg.SkipValidation = true, true
	cfg.OmitResolverFields = true
	cfg.OmitGQLGenVersionInFileNotice = true
	if cfg.Directives == nil {
		cfg.Directives = map[string]config.DirectiveConfig{}
	}
	cfg.Directives["read"] = config.DirectiveConfig{SkipRuntime: true} // the edge sees to it
	const resolve = "github.com/streamgauge/streamgauge/graph/resolve."
	if cfg.Models == nil {
		cfg.Models = config.TypeMap{}
	}
	for _, name := range []string{
		"Int", "Float", "String", "ID", "Boolean",
		"Long", "DateTime", "Decimal", "Duration", "Fill", "ReadFrom", "Freshness", "MissingPartition", "PageInfo",
	} {
		cfg.Models[name] = config.TypeMapEntry{Model: config.StringList{resolve + name}}
	}
	return nil
}

// forgetFolder takes the temporary folder out of the names that gqlgen makes of
// import paths, so that equal schemas give equal code.
func (g *generation) forgetFolder(files []string) error {
	for _, name := range files {
		path := filepath.Join(g.tmp, name)
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(b), "ᚋ"+filepath.Base(g.tmp)+"ᚐ", "ᚐ")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// build compiles what was generated, where it was generated.
func build(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", os.DevNull, "./"+filepath.ToSlash(dir))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	text := strings.ReplaceAll(strings.TrimSpace(string(out)), filepath.ToSlash(dir)+"/", filepath.ToSlash(filepath.Dir(dir))+"/")
	return fmt.Errorf("the generated code does not build with yours; nothing was changed:\n%s", text)
}

// swap puts the files in place. Each is replaced whole.
func (g *generation) swap(files []string) ([]string, error) {
	var written []string
	for _, name := range files {
		to := filepath.Join(g.out, name)
		if err := os.Rename(filepath.Join(g.tmp, name), to); err != nil {
			return written, err
		}
		written = append(written, to)
	}
	return written, nil
}
