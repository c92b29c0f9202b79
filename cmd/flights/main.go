// Command flights is the example application: departures of flights as live
// views.
package main

import (
	"compress/gzip"
	"embed"
	"io"

	"github.com/streamgauge/streamgauge"
	"github.com/streamgauge/streamgauge/graph"
)

//go:embed data
var data embed.FS

func main() {
	streamgauge.Main(streamgauge.App{
		Name: "flights", Title: "Departures", Schema: graph.SchemaText, New: graph.New,
		Demo: &streamgauge.Demo{
			Tables:  []streamgauge.Dataset{{Topic: "airports", Key: "iata", Open: airports}},
			Events:  streamgauge.Dataset{Topic: "flights", Time: "date", Open: flights},
			Query:   `{ topAirports(first: 5) { rows { origin flights delayMinutes airport { name city } } freshness { asOf lag } } }`,
			Limited: []string{"airport-totals"},
		},
	})
}

func airports() (io.ReadCloser, error) { return data.Open("data/airports.jsonl") }

func flights() (io.ReadCloser, error) {
	f, err := data.Open("data/flights-20k.jsonl.gz")
	if err != nil {
		return nil, err
	}
	return gzip.NewReader(f)
}
