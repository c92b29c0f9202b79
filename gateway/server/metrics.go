package server

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of the edge. Handles of fixed labels are kept so that a request looks
// up nothing.
type metrics struct {
	post, get, socket, stream prometheus.Observer
	errors                    *prometheus.CounterVec
	refusals                  *prometheus.CounterVec
	sockets, streams          prometheus.Gauge
	subscriptions             prometheus.Gauge
	cacheHits, cacheMisses    prometheus.Counter
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "streamgauge_graphql_seconds", Help: "Time of queries, from the whole request read to the response encoded.",
		Buckets: prometheus.ExponentialBuckets(50e-6, 4, 10),
	}, []string{"transport"})
	cache := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "streamgauge_graphql_documents_total", Help: "Documents looked up in the cache of validated ones.",
	}, []string{"result"})
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		post: seconds.WithLabelValues("post"), get: seconds.WithLabelValues("get"),
		socket: seconds.WithLabelValues("websocket"), stream: seconds.WithLabelValues("sse"),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "streamgauge_graphql_errors_total", Help: "GraphQL errors sent, by extensions.code.",
		}, []string{"code"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "streamgauge_http_refusals_total", Help: "Requests refused before GraphQL, by code.",
		}, []string{"code"}),
		sockets:       gauge("streamgauge_websockets", "Open websockets."),
		streams:       gauge("streamgauge_event_streams", "Open event streams."),
		subscriptions: gauge("streamgauge_subscriptions", "Running subscriptions, over websockets and event streams."),
		cacheHits:     cache.WithLabelValues("hit"), cacheMisses: cache.WithLabelValues("miss"),
	}
	if r == nil {
		return m, nil
	}
	var errs []error
	for _, c := range []prometheus.Collector{seconds, cache, m.errors, m.refusals, m.sockets, m.streams, m.subscriptions} {
		errs = append(errs, r.Register(c))
	}
	return m, errors.Join(errs...)
}

func since(o prometheus.Observer, start time.Time) { o.Observe(time.Since(start).Seconds()) }
