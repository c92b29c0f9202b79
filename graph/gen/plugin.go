package gen

import (
	"path/filepath"
	"strings"

	"github.com/99designs/gqlgen/codegen"
	"github.com/99designs/gqlgen/codegen/config"
	"github.com/99designs/gqlgen/codegen/templates"
	gqlplugin "github.com/99designs/gqlgen/plugin"
	"github.com/streamgauge/streamgauge/view/schema"
)

// plugin is what gqlgen calls.
type plugin struct {
	schema  *schema.Schema
	text    string // the schema as written
	dir     string
	started []string // files begun for the user
}

var (
	_ gqlplugin.ConfigMutator = (*plugin)(nil)
	_ gqlplugin.CodeGenerator = (*plugin)(nil)
)

func (p *plugin) Name() string { return "streamgauge" }

// MutateConfig makes nested reads batch resolvers, and fields with @resolver
// resolvers.
func (p *plugin) MutateConfig(cfg *config.Config) error {
	set := func(object, field string, batch bool) {
		e := cfg.Models[object]
		if e.Fields == nil {
			e.Fields = map[string]config.TypeMapField{}
		}
		e.Fields[field] = config.TypeMapField{Resolver: true, Batch: &batch}
		cfg.Models[object] = e
	}
	for _, r := range p.schema.Topology.Reads {
		if !isRoot(r.Parent) {
			set(r.Parent, r.Field, true)
		}
	}
	for _, c := range p.customFields() {
		if !isRoot(c.object) {
			set(c.object, c.field, false)
		}
	}
	return nil
}

func isRoot(name string) bool {
	return name == "Query" || name == "Mutation" || name == "Subscription"
}

// GenerateCode writes views_gen.go.
func (p *plugin) GenerateCode(data *codegen.Data) error {
	started, err := p.startCustom(data)
	if err != nil {
		return err
	}
	p.started = started
	w := &writer{plugin: p, data: data}
	return templates.Render(templates.Options{
		PackageName:     data.Config.Exec.Package,
		Filename:        filepath.Join(p.dir, viewsFile),
		GeneratedHeader: true,
		Packages:        data.Config.Packages,
		Template:        "{{ code }}",
		Funcs:           map[string]any{"code": w.code},
		PruneOptions:    data.Config.GetPruneOptions(),
	})
}

// read finds what the schema says of a field; nil when it reads nothing.
func (p *plugin) read(object, field string) *schema.Read {
	for _, r := range p.schema.Topology.Reads {
		if r.Parent == object && r.Field == field {
			return r
		}
	}
	return nil
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
