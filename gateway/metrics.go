package gateway

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/streamgauge/streamgauge/view/read"
)

// metrics of one gateway.
type metrics struct {
	queries     *prometheus.CounterVec // by op and outcome
	answered    [read.Size + 1]outcomes
	age         prometheus.Histogram
	callSeconds prometheus.Histogram
	hedgesSent  prometheus.Counter
	hedgesWon   prometheus.Counter
	fallbacks   [read.Global]prometheus.Counter // by role; the active one's counts nothing
	breaker     *prometheus.GaugeVec            // by instance
	watches     prometheus.Gauge
	routesAt    atomic.Int64 // ms: when the newest routes came; 0: none yet
}

// outcomes are the counters of the answers to one op, at hand for the many.
type outcomes struct{ fresh, standby, partial prometheus.Counter }

func newMetrics(r prometheus.Registerer, g *Gateway) *metrics {
	const namespace, subsystem = "streamgauge", "gateway"
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help, Buckets: buckets})
	}
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
	}
	hedges := counters("hedges_total", "Calls to another copy while the active one took its time: sent, and those that answered first.", "result")
	fallbacks := counters("fallbacks_total", "Partitions answered by a copy that is not active, by its role.", "role")
	m := &metrics{
		queries:     counters("queries_total", "Queries by read and outcome: fresh, standby, partial, or why there was no answer.", "op", "outcome"),
		age:         histogram("answer_age_seconds", "How long ago the oldest part of an answer held everything in its source.", []float64{0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200}),
		callSeconds: histogram("call_seconds", "Time of a call to another instance.", prometheus.ExponentialBuckets(0.0001, 4, 10)),
		hedgesSent:  hedges.WithLabelValues("sent"),
		hedgesWon:   hedges.WithLabelValues("won"),
		breaker:     prometheus.NewGaugeVec(gauge("breaker_state", "Circuit breaker of an instance: 0 closed, 1 half-open, 2 open."), []string{"host"}),
		watches:     prometheus.NewGauge(gauge("watches", "Watches under way.")),
	}
	for op := range m.answered {
		name := read.Op(op).String()
		m.answered[op] = outcomes{m.queries.WithLabelValues(name, "fresh"), m.queries.WithLabelValues(name, "standby"), m.queries.WithLabelValues(name, "partial")}
	}
	for role := range m.fallbacks {
		if role := read.Role(role); role.Flagged() {
			m.fallbacks[role] = fallbacks.WithLabelValues(role.String())
		}
	}
	if r != nil {
		generation := prometheus.NewGaugeFunc(gauge("routes_generation", "Generation of the newest routes."), func() float64 {
			routes, _ := g.cfg.Routes.Routes()
			return float64(routes.Generation)
		})
		age := prometheus.NewGaugeFunc(gauge("routes_age_seconds", "Since when the routes are the newest ones."), m.routesAge)
		r.MustRegister(m.queries, m.age, m.callSeconds, hedges, fallbacks, m.breaker, m.watches, generation, age)
	}
	return m
}

func (m *metrics) routesAge() float64 {
	at := m.routesAt.Load()
	if at == 0 {
		return 0
	}
	return time.Since(time.UnixMilli(at)).Seconds()
}

func (m *metrics) fallback(r read.Role) {
	if int(r) < len(m.fallbacks) && m.fallbacks[r] != nil {
		m.fallbacks[r].Inc()
	}
}

// count counts an answer, or why there is none.
func (m *metrics) count(op read.Op, err error, r *read.Result) {
	if err != nil {
		m.queries.WithLabelValues(op.String(), read.AsError(err).Code.String()).Inc()
		return
	}
	o := &m.answered[op]
	outcome, oldest := o.fresh, int64(0)
	for i := range r.Parts {
		switch p := &r.Parts[i]; {
		case p.Err != nil:
			outcome = o.partial
			continue
		case p.Role.Flagged() && outcome == o.fresh:
			outcome = o.standby
		}
		if at := r.Parts[i].AsOf; at != 0 && (oldest == 0 || at < oldest) {
			oldest = at
		}
	}
	outcome.Inc()
	if oldest != 0 {
		m.age.Observe(max(0, float64(time.Now().UnixMilli()-oldest)/1000))
	}
}
