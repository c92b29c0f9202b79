package streamgauge

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"
)

// metric is what a registry knows of one.
type metric struct{ kind, labels string } // kind "": it has no samples yet

var describedAs = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: ".*variableLabels: \{([^}]*)\}\}$`)

// described are the metrics in a registry, by name.
func described(t *testing.T, r *prometheus.Registry) map[string]metric {
	t.Helper()
	found := make(map[string]metric)
	out := make(chan *prometheus.Desc)
	go func() {
		r.Describe(out)
		close(out)
	}()
	for d := range out {
		if m := describedAs.FindStringSubmatch(d.String()); m != nil {
			found[m[1]] = metric{labels: m[2]}
		}
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		m := found[f.GetName()]
		m.kind = strings.ToLower(f.GetType().String())
		found[f.GetName()] = m
	}
	return found
}

var documented = regexp.MustCompile("(?m)^\\| `(streamgauge_[a-z_]+)` \\| (counter|gauge|histogram) \\| ([a-z, ]*)\\| ")

// What is in deploy/metrics.md is what an instance and a gateway alone have, and
// rules and panels name nothing else.
func TestMetricsAreDocumented(t *testing.T) {
	c := newSmallCluster(t)
	a, _ := c.instance("a")
	c.instancesAt(a.http, func(list []instanceInfo) bool { return len(list) == 1 && whole(list) })
	gw := c.gateway(a.rpc.Addr().String())
	c.instancesAt(gw.http, func(list []instanceInfo) bool { return len(list) == 2 && whole(list) })
	there := described(t, a.registry)
	for name, m := range described(t, gw.registry) {
		if _, both := there[name]; !both {
			there[name] = m
		}
	}

	text := readFile(t, "deploy/metrics.md")
	told := make(map[string]bool)
	for _, m := range documented.FindAllStringSubmatch(text, -1) {
		name, kind, labels := m[1], m[2], strings.ReplaceAll(strings.TrimSpace(m[3]), " ", "")
		told[name] = true
		is, ok := there[name]
		switch {
		case !ok:
			t.Errorf("%s is documented, and does not exist", name)
		case is.labels != labels || is.kind != "" && is.kind != kind:
			t.Errorf("%s is documented as a %s by %q, and is a %s by %q", name, kind, labels, is.kind, is.labels)
		case kind == "counter" != strings.HasSuffix(name, "_total") && !strings.HasSuffix(name, "_total_records"):
			t.Errorf("%s is a %s", name, kind)
		}
	}
	for name := range there {
		if strings.HasPrefix(name, "streamgauge_") && !told[name] {
			t.Errorf("%s is not documented", name)
		}
	}

	there["up"] = metric{}
	for _, r := range alertRules(t) {
		if wrong := wrongIn(r.Expr, there); wrong != "" {
			t.Errorf("alert %s: %s: %s", r.Alert, wrong, r.Expr)
		}
	}
	for _, p := range dashboardPanels(t) {
		for _, target := range p.Targets {
			if wrong := wrongIn(target.Expr, there); wrong != "" {
				t.Errorf("panel %s: %s: %s", p.Title, wrong, target.Expr)
			}
		}
	}
}

var (
	quoted     = regexp.MustCompile(`"[^"]*"`)
	grouping   = regexp.MustCompile(`\b(by|on|without|ignoring)\s*\([^)]*\)`)
	matchers   = regexp.MustCompile(`\{[^{}]*\}|\[[^\[\]]*\]`)
	word       = regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_]*(\s*\()?`)
	operators  = []string{"and", "or", "unless"}
	functions  = []string{"sum", "max", "min", "count", "rate", "increase", "changes", "deriv", "histogram_quantile", "min_over_time", "vector"}
	histograms = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// wrongIn says what is wrong with an expression: brackets that do not match, or
// a name that is neither a metric that exists nor a known function; "": nothing.
func wrongIn(expression string, there map[string]metric) string {
	rest := quoted.ReplaceAllString(expression, `""`)
	if !balanced(rest) {
		return "brackets do not match"
	}
	rest = grouping.ReplaceAllString(matchers.ReplaceAllString(rest, ""), "")
	metrics := 0
	for _, name := range word.FindAllString(rest, -1) {
		if called, ok := strings.CutSuffix(name, "("); ok {
			if called = strings.TrimSpace(called); !slices.Contains(functions, called) && !slices.Contains(operators, called) {
				return called + " is no function known here"
			}
			continue
		}
		if slices.Contains(operators, name) {
			continue
		}
		metrics++
		is, ok := there[name]
		if !ok {
			is, ok = there[histograms.ReplaceAllString(name, "")]
			ok = ok && (is.kind == "" || is.kind == "histogram")
		}
		if !ok {
			return "there is no metric " + name
		}
	}
	if metrics == 0 {
		return "no metric"
	}
	return ""
}

func balanced(text string) bool {
	var open []rune
	for _, r := range text {
		switch r {
		case '(', '{', '[':
			open = append(open, r)
		case ')', '}', ']':
			if len(open) == 0 || !slices.Contains([]string{"()", "{}", "[]"}, string([]rune{open[len(open)-1], r})) {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return len(open) == 0
}

func TestWrongExpressionsAreNoticed(t *testing.T) {
	there := map[string]metric{"a_total": {kind: "counter"}, "h_seconds": {kind: "histogram"}}
	for expression, want := range map[string]string{
		`sum by (x) (rate(a_total{y="z)"}[5m])) > on (x) histogram_quantile(0.9, h_seconds_bucket) or vector(0)`: "",
		`rate(a_total[5m]`:       "brackets do not match",
		`rate(a_total[5m)]`:      "brackets do not match",
		`sum(b_total) > 0`:       "there is no metric b_total",
		`a_total_bucket`:         "there is no metric a_total_bucket",
		`ratio(a_total)`:         "ratio is no function known here",
		`sum by (a_total) (1)`:   "no metric",
		`1 and on (x) a_total{}`: "",
	} {
		if got := wrongIn(expression, there); got != want {
			t.Errorf("%s: got %q, want %q", expression, got, want)
		}
	}
}

type alertRule struct {
	Alert, Expr, For string
	Labels           map[string]string
	Annotations      map[string]string
}

func alertRules(t *testing.T) (rules []alertRule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []alertRule
		}
	}
	decodeStrict(t, []byte(readFile(t, "deploy/alerts.yml")), &file)
	for _, g := range file.Groups {
		if g.Name == "" {
			t.Error("a group without a name")
		}
		rules = append(rules, g.Rules...)
	}
	return rules
}

func TestAlertsSayWhatToDo(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range alertRules(t) {
		if seen[r.Alert] || r.Alert == "" {
			t.Errorf("alert %q is there twice", r.Alert)
		}
		seen[r.Alert] = true
		if r.For != "" {
			if _, err := time.ParseDuration(r.For); err != nil {
				t.Errorf("%s: for %s", r.Alert, r.For)
			}
		}
		if r.Annotations["summary"] == "" || r.Annotations["remedy"] == "" || !slices.Contains([]string{"critical", "warning"}, r.Labels["severity"]) {
			t.Errorf("%s lacks a summary, a remedy or a severity", r.Alert)
		}
	}
	if len(seen) < 15 {
		t.Errorf("%d alerts", len(seen))
	}
}

type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr string }
}

func dashboardPanels(t *testing.T) []panel {
	t.Helper()
	var file struct{ Panels []panel }
	if err := json.Unmarshal([]byte(readFile(t, "deploy/grafana/dashboard.json")), &file); err != nil {
		t.Fatal(err)
	}
	return file.Panels
}

func TestDashboardIsLaidOut(t *testing.T) {
	panels := dashboardPanels(t)
	for i, p := range panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
		for _, o := range panels[:i] {
			a, b := p.GridPos, o.GridPos
			if p.ID == o.ID || a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("panels %q and %q are in one place", p.Title, o.Title)
			}
		}
	}
}

func TestHealthCommand(t *testing.T) {
	ready := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, `{"reason":"restoring"}`)
	}))
	defer s.Close()
	if _, err := runSmall(t, "health", s.URL+"/readyz"); err == nil || !strings.Contains(err.Error(), `503 Service Unavailable: {"reason":"restoring"}`) {
		t.Errorf("not ready: %v", err)
	}
	ready = true
	if out, err := runSmall(t, "health", s.URL+"/readyz"); err != nil || out != "" {
		t.Errorf("ready: %q, %v", out, err)
	}
	if _, err := runSmall(t, "health", "http://"+freeAddr(t)+"/healthz"); err == nil {
		t.Error("nobody there, and healthy")
	}
	if _, err := runSmall(t, "health", "a", "b"); err == nil || !strings.Contains(err.Error(), "takes one URL") {
		t.Errorf("two: %v", err)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// decodeStrict refuses what the structure does not have.
func decodeStrict(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalWithOptions(text, into, yaml.DisallowUnknownField()); err != nil {
		t.Fatal(err)
	}
}

// documents are those of a YAML file.
func documents(t *testing.T, path string) (list []map[string]any) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader([]byte(readFile(t, path))))
	for {
		var doc map[string]any
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		list = append(list, doc)
	}
}
