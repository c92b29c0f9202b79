package gateway

import (
	"maps"
	"slices"

	"github.com/streamgauge/streamgauge/view"
	"github.com/streamgauge/streamgauge/view/read"
)

// active is the instance to ask for a piece first: the one with the active copy,
// "" when none is known. Of a global table every copy is alike: the local one,
// or the same other one as long as it answers, so that offsets do not go back.
func (g *Gateway) active(routes *read.Routes, pc *piece) string {
	if pc.view.Global {
		if g.cfg.Local != nil {
			return g.cfg.LocalID
		}
		ids := slices.Sorted(maps.Keys(routes.Instances))
		if len(ids) == 0 {
			return ""
		}
		return ids[(g.turn+pc.rounds)%len(ids)]
	}
	copies := copiesOf(routes, pc.view, pc.req.Partition)
	if len(copies) == 0 || copies[0].Role.Flagged() {
		return ""
	}
	return copies[0].Instance
}

func copiesOf(routes *read.Routes, v *view.View, partition int32) []read.Copy {
	copies := routes.Copies[v.Subtopology]
	if int(partition) >= len(copies) {
		return nil
	}
	return copies[partition]
}

// fallbacks are the instances to ask when the active copy is away, at most
// maxFallbacks, others with each round where there are more.
func (g *Gateway) fallbacks(routes *read.Routes, pc *piece) []string {
	var ids []string
	first := g.active(routes, pc)
	if pc.view.Global {
		ids = slices.Sorted(maps.Keys(routes.Instances))
	} else if pc.demand == nil || !pc.demand.activeOnly {
		for _, c := range copiesOf(routes, pc.view, pc.req.Partition) {
			ids = append(ids, c.Instance)
		}
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == first })
	if len(ids) <= maxFallbacks {
		return ids
	}
	turned := make([]string, 0, maxFallbacks)
	for i := range maxFallbacks {
		turned = append(turned, ids[((pc.rounds-1)*maxFallbacks+i)%len(ids)])
	}
	return turned
}

// hasFallback says whether fallbacks would name any.
func (g *Gateway) hasFallback(routes *read.Routes, pc *piece) bool {
	if pc.view.Global {
		return len(routes.Instances) > 1
	}
	return (pc.demand == nil || !pc.demand.activeOnly) && len(copiesOf(routes, pc.view, pc.req.Partition)) > 1
}
