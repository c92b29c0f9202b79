package processor

import (
	"slices"
	"testing"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
	"github.com/streamgauge/streamgauge/view/schema"
)

// The next release drops a column and adds a view of another topic.
const nextSchema = `
type Hit @source(topic: "hits", key: "page", time: "at") { page: String! at: DateTime! ms: Long! }
type Sale @source(topic: "sales", key: "page", time: "at") { page: String! at: DateTime! eur: Long! }
type PageTotals @view(from: "Hit", by: "page") { page: String! hits: Long! @count }
type PageSales @view(from: "Sale", by: "page") { page: String! eur: Long! @sum }
type Query { pageTotals(page: String!): PageTotals @lookup  pageSales(page: String!): PageSales @lookup }`

// In a rolling upgrade old and new releases run side by side: each task only where
// its subtopology is known, and, as long as somebody has it, by the schema that its
// state was written with.
func TestRollingUpgrade(t *testing.T) {
	c := newTestCluster(t, hitSchema)
	c.create("hits", 2)
	c.create("sales", 2)
	loaded, err := schema.Load("next.graphqls", []byte(nextSchema))
	if err != nil {
		t.Fatal(err)
	}
	next := func(cfg *Config) { cfg.Topology = loaded.Topology }
	old := c.start("old")
	c.produce("hits", keyed("a", `{"page":"a","at":"2024-01-01T00:00:00Z","ms":7}`))
	c.produce("sales", keyed("a", `{"page":"a","at":"2024-01-01T00:00:00Z","eur":3}`))
	until(t, "the old one has it all", func() bool {
		return len(old.owns()) == 2 && ask(t, []*instance{old}, "page-totals", view.OfString("a")) != nil
	})
	fresh := c.start("new", next)
	until(t, "the new one owns what only it knows", func() bool {
		return slices.Equal(fresh.owns(), []string{"sales_0 running", "sales_1 running"})
	})
	if !slices.Equal(old.owns(), []string{"hits_0 running", "hits_1 running"}) {
		t.Errorf("the old one owns %v", old.owns())
	}
	until(t, "it has the sales", func() bool {
		row := ask(t, []*instance{fresh}, "page-sales", view.OfString("a"))
		return row != nil && column(fresh, "page-sales", row, "eur").Int() == 3
	})
	routes, _ := old.Routes() // of the new view too: gateways of either release read them
	if len(routes.Copies["sales"]) != 2 || routes.Copies["sales"][0][0] != (read.Copy{Instance: "new", Role: read.Active}) {
		t.Errorf("the old one's routes are %v", routes.Copies)
	}
	if err := old.close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the new one goes on with what the old one wrote", func() bool {
		row := ask(t, []*instance{fresh}, "page-totals", view.OfString("a"))
		return len(fresh.owns()) == 4 && row != nil && column(fresh, "page-totals", row, "hits").Int() == 1
	})
	c.produce("hits", keyed("a", `{"page":"a","at":"2024-01-01T00:00:00Z","ms":7}`))
	until(t, "and counts", func() bool {
		row := ask(t, []*instance{fresh}, "page-totals", view.OfString("a"))
		return row != nil && column(fresh, "page-totals", row, "hits").Int() == 2
	})
}
