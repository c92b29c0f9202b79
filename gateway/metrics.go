package gateway

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/streamgauge/streamgauge/view/read"
)

// metrics of one gateway.
type metrics struct {
	queries     *prometheus.CounterVec // by op and outcome
	callSeconds prometheus.Histogram
	breaker     *prometheus.GaugeVec // by instance
	watches     prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		queries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "streamgauge", Subsystem: "gateway", Name: "queries_total", Help: "Queries answered, by read and outcome.",
		}, []string{"op", "outcome"}),
		callSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "streamgauge", Subsystem: "gateway", Name: "call_seconds", Help: "Time of a call to another instance.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10),
		}),
		breaker: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "streamgauge", Subsystem: "gateway", Name: "breaker_state", Help: "Circuit breaker of an instance: 0 closed, 1 half-open, 2 open.",
		}, []string{"host"}),
		watches: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "streamgauge", Subsystem: "gateway", Name: "watches", Help: "Watches under way.",
		}),
	}
	if r != nil {
		r.MustRegister(m.queries, m.callSeconds, m.breaker, m.watches)
	}
	return m
}

func (m *metrics) count(op read.Op, err error, r *read.Result) {
	outcome := "ok"
	if err != nil {
		outcome = read.AsError(err).Code.String()
	} else {
		for i := range r.Parts {
			if r.Parts[i].Err != nil {
				outcome = "partial"
			}
		}
	}
	m.queries.WithLabelValues(op.String(), outcome).Inc()
}
