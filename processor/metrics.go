package processor

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/streamgauge/streamgauge/view/read"
)

// metrics of one worker.
type metrics struct {
	records            *prometheus.CounterVec // by subtopology
	bad                *prometheus.CounterVec // by view or source
	late               *prometheus.CounterVec // by store
	nullKeys           *prometheus.CounterVec // by store or subtopology
	tombstones         *prometheus.CounterVec // by subtopology
	repeats            prometheus.Counter
	lost               prometheus.Counter
	commits            prometheus.Counter
	commitSeconds      prometheus.Histogram
	inDoubt            prometheus.Counter
	restarts           prometheus.Counter
	heldUp             prometheus.Counter
	restored           prometheus.Counter
	overtaken          prometheus.Counter
	discarded          prometheus.Counter
	checkpointSeconds  prometheus.Histogram
	checkpointFailures prometheus.Counter
	reads              *prometheus.CounterVec            // by op and outcome
	answered           [read.Size + 1]prometheus.Counter // of reads: by op
	readSeconds        prometheus.Histogram
	watchStreams       prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "streamgauge", Name: name, Help: help})
		register(r, c)
		return c
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "streamgauge", Name: name, Help: help}, labels)
		register(r, c)
		return c
	}
	seconds := func(name, help string, start float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "streamgauge", Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(start, 4, 10),
		})
		register(r, h)
		return h
	}
	m := &metrics{
		records:            counters("records_total", "Records taken by tasks.", "subtopology"),
		bad:                counters("bad_records_total", "Records written to the dead letters.", "view"),
		late:               counters("late_records_total", "Records dropped as late beyond grace.", "store"),
		nullKeys:           counters("null_key_records_total", "Records dropped for a null in a key column that must have a value.", "view"),
		tombstones:         counters("source_tombstones_total", "Null values on source topics, which carry no event.", "subtopology"),
		repeats:            counter("repeated_records_total", "Forwarded records that had been taken before."),
		lost:               counter("lost_records_total", "Input records deleted before they were read."),
		commits:            counter("commits_total", "Transactions committed."),
		commitSeconds:      seconds("commit_seconds", "Time of a commit.", 0.001),
		inDoubt:            counter("commits_in_doubt_total", "Transactions whose outcome had to be found out."),
		restarts:           counter("task_restarts_total", "Tasks that started over after a fault."),
		heldUp:             counter("inputs_held_up_total", "Inputs that an open transaction held up for long."),
		restored:           counter("restored_records_total", "Changelog offsets read by restores."),
		overtaken:          counter("copies_overtaken_total", "Copies that restored because compaction had overtaken them."),
		discarded:          counter("stores_discarded_total", "Store files discarded and rebuilt."),
		checkpointSeconds:  seconds("checkpoint_seconds", "Time of a checkpoint.", 0.001),
		checkpointFailures: counter("checkpoint_failures_total", "Checkpoints that failed."),
		reads:              counters("reads_total", "Requests answered, by read and outcome.", "op", "outcome"),
		readSeconds:        seconds("read_seconds", "Time to answer a request here.", 0.000002),
		watchStreams:       prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "streamgauge", Name: "watch_streams", Help: "Gateways that watch this instance."}),
	}
	register(r, m.watchStreams)
	for op := range m.answered {
		m.answered[op] = m.reads.WithLabelValues(read.Op(op).String(), "ok")
	}
	return m
}

func register(r prometheus.Registerer, c prometheus.Collector) {
	if r != nil {
		r.MustRegister(c)
	}
}
