package streamgauge

import (
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// metric is what a registry knows of one.
type metric struct {
	help   string
	labels string // divided by commas
}

var describedAs = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "(.*)", constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)

// described are the metrics of ours in a registry, by name.
func described(r *prometheus.Registry) map[string]metric {
	found := make(map[string]metric)
	out := make(chan *prometheus.Desc)
	go func() {
		r.Describe(out)
		close(out)
	}()
	for d := range out {
		m := describedAs.FindStringSubmatch(d.String())
		if m != nil && strings.HasPrefix(m[1], "streamgauge_") {
			found[m[1]] = metric{help: m[2], labels: m[3]}
		}
	}
	return found
}
