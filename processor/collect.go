package processor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collector tells, when it is asked, how the copies here stand. What belongs to a
// task that is no more here is not told any more.
type collector struct {
	w *Worker

	state, lag, age, overlay, done, total, rate *prometheus.Desc
	instance, generation, ready, heartbeat      *prometheus.Desc
	tableLag, tableRows                         *prometheus.Desc
}

var _ prometheus.Collector = (*collector)(nil)

func newCollector(w *Worker) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("streamgauge_"+name, help, labels, nil)
	}
	return &collector{
		w:          w,
		state:      desc("task_state", "1 for the state and the role that a task's copy here has.", "task", "role", "state"),
		lag:        desc("task_lag_records", "Source records that are not in a copy.", "task", "role"),
		age:        desc("task_age_seconds", "Time since a copy last held everything known to be in its source.", "task", "role"),
		overlay:    desc("task_overlay_bytes", "Rows of a copy that are not in its file yet.", "task"),
		done:       desc("task_restore_done_records", "Changelog offsets read by the restore under way.", "task"),
		total:      desc("task_restore_total_records", "Changelog offsets that the restore under way has to read.", "task"),
		rate:       desc("task_restore_rate_records", "Changelog offsets a second that the restore under way reads.", "task"),
		instance:   desc("copies", "Copies here, by role.", "role"),
		generation: desc("group_generation", "Generation of the group; −1: not in it."),
		ready:      desc("ready", "1 when the instance is ready."),
		heartbeat:  desc("group_heartbeat_age_seconds", "Time since the group was last heard of."),
		tableLag:   desc("table_lag_records", "Records of a global table that are not in the copy here.", "table"),
		tableRows:  desc("table_rows", "Rows of a global table.", "table"),
	}
}

// Describe is prometheus.Collector's.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.state, c.lag, c.age, c.overlay, c.done, c.total, c.rate, c.instance, c.generation, c.ready, c.heartbeat, c.tableLag, c.tableRows,
	} {
		out <- d
	}
}

// Collect is prometheus.Collector's.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s := c.w.Status()
	roles := make(map[string]int)
	for i := range s.Tasks {
		t := &s.Tasks[i]
		roles[t.Role]++
		gauge(c.state, 1, t.Task, t.Role, t.State)
		gauge(c.lag, float64(t.Lag), t.Task, t.Role)
		if t.AsOf > 0 {
			gauge(c.age, max(0, time.Since(time.UnixMilli(t.AsOf)).Seconds()), t.Task, t.Role)
		}
		gauge(c.overlay, float64(t.Overlay), t.Task)
		if p := t.Progress; p != nil {
			gauge(c.done, float64(p.Done), t.Task)
			gauge(c.total, float64(p.Total), t.Task)
			gauge(c.rate, p.Rate, t.Task)
		}
	}
	for role, n := range roles {
		gauge(c.instance, float64(n), role)
	}
	for _, t := range s.Tables {
		gauge(c.tableLag, float64(t.Lag), t.Table)
		gauge(c.tableRows, float64(t.Rows), t.Table)
	}
	gauge(c.generation, float64(s.Generation))
	gauge(c.ready, map[bool]float64{true: 1}[s.Ready])
	if last := c.w.member.Status().LastGood; !last.IsZero() {
		gauge(c.heartbeat, time.Since(last).Seconds())
	}
}
