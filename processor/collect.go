package processor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// collector tells, when it is asked, how the copies here stand. What belongs to a
// task that is no more here is not told any more.
type collector struct {
	w *Worker

	state, lag, age, trouble, overlay, done, total, rate *prometheus.Desc
	instance, partitions, unowned                        *prometheus.Desc
	generation, ready, heartbeat                         *prometheus.Desc
	tableLag, tableRows                                  *prometheus.Desc
	watched, overlayBound                                *prometheus.Desc
}

var _ prometheus.Collector = (*collector)(nil)

func newCollector(w *Worker) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("streamgauge_"+name, help, labels, nil)
	}
	return &collector{
		w:          w,
		state:      desc("task_state", "1 for the state and the role that a task's copy here has.", "subtopology", "task", "role", "state"),
		lag:        desc("task_lag_records", "Source records that are not in a copy.", "subtopology", "task", "role"),
		age:        desc("task_age_seconds", "Time since a copy last held everything known to be in its source.", "subtopology", "task", "role"),
		trouble:    desc("task_trouble", "1 while a task works on in spite of something: a checkpoint that fails, an input that is held up.", "task"),
		overlay:    desc("task_overlay_bytes", "Rows of a copy that are not in its file yet.", "task"),
		done:       desc("task_restore_done_records", "Changelog offsets read by the restore under way.", "task"),
		total:      desc("task_restore_total_records", "Changelog offsets that the restore under way has to read.", "task"),
		rate:       desc("task_restore_records_per_second", "Changelog offsets a second that the restore under way reads.", "task"),
		instance:   desc("copies", "Copies here, by role.", "role"),
		partitions: desc("subtopology_partitions", "Tasks that a subtopology has in all.", "subtopology"),
		unowned:    desc("unowned_tasks", "Tasks that no instance is assigned, by the newest assignment known here.", "subtopology"),
		generation: desc("group_generation", "Generation of the group; −1: not in it."),
		ready:      desc("ready", "1 when the instance is ready."),
		heartbeat:  desc("group_heartbeat_age_seconds", "Time since the group was last heard of."),
		tableLag:   desc("table_lag_records", "Records of a global table that are not in the copy here.", "table"),
		tableRows:  desc("table_rows", "Rows of a global table.", "table"),

		watched:      desc("watch_interests", "Keys and ranges that gateways watch here."),
		overlayBound: desc("overlay_limit_bytes", "Memory for rows that are not in the files yet, of all copies together."),
	}
}

// Describe is prometheus.Collector's.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.state, c.lag, c.age, c.trouble, c.overlay, c.done, c.total, c.rate, c.instance, c.partitions, c.unowned,
		c.generation, c.ready, c.heartbeat, c.tableLag, c.tableRows, c.watched, c.overlayBound,
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
		roles[s.Tasks[i].Role]++
		c.task(gauge, &s.Tasks[i])
	}
	m := c.w.membership()
	for sub, n := range m.routes.Partitions {
		gauge(c.partitions, float64(n), sub)
		unowned := 0
		for _, owner := range m.routes.Active[sub] {
			if owner == "" {
				unowned++
			}
		}
		gauge(c.unowned, float64(unowned), sub)
	}
	gauge(c.watched, float64(c.w.hub.watched()))
	gauge(c.overlayBound, float64(c.w.cfg.OverlayBytes))
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

// task tells of one copy.
func (c *collector) task(gauge func(*prometheus.Desc, float64, ...string), t *TaskStatus) {
	id, _ := parseTaskID(t.Task)
	gauge(c.state, 1, id.Subtopology, t.Task, t.Role, t.State)
	gauge(c.lag, float64(t.Lag), id.Subtopology, t.Task, t.Role)
	if t.AsOf > 0 {
		gauge(c.age, max(0, time.Since(time.UnixMilli(t.AsOf)).Seconds()), id.Subtopology, t.Task, t.Role)
	}
	gauge(c.trouble, map[bool]float64{true: 1}[t.Note != ""], t.Task)
	gauge(c.overlay, float64(t.Overlay), t.Task)
	if p := t.Progress; p != nil {
		gauge(c.done, float64(p.Done), t.Task)
		gauge(c.total, float64(p.Total), t.Task)
		gauge(c.rate, p.Rate, t.Task)
	}
}
