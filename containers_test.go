package streamgauge

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// at finds what is at a path of keys and indices; nil: nothing.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

func list(v any) []any { l, _ := v.([]any); return l }

// The environment of each service in Compose is one that LoadConfig takes, and
// makes an instance that others reach.
func TestComposeLoads(t *testing.T) {
	doc := documents(t, "deploy/compose/compose.yml")[0]
	services, _ := doc["services"].(map[string]any)
	for _, name := range []string{"kafka", "airports", "flights", "a", "b", "c", "gateway"} {
		if services[name] == nil {
			t.Fatalf("no service %s", name)
		}
	}
	ports := make(map[string]string)
	for _, name := range []string{"a", "b", "c", "gateway"} {
		s := services[name]
		var environ []string
		env, _ := at(s, "environment").(map[string]any)
		for k, v := range env {
			environ = append(environ, fmt.Sprintf("%s=%v", k, v))
		}
		cfg, err := LoadConfig("flights", "", environ)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if cfg.Instance != name || !slices.Equal(cfg.Kafka.Brokers, []string{"kafka:9092"}) || name != "gateway" && cfg.Listen.Advertise != name+":9090" {
			t.Errorf("%s is %s, at %s, with %v", name, cfg.Instance, cfg.Listen.Advertise, cfg.Kafka.Brokers)
		}
		if grace, err := time.ParseDuration(fmt.Sprint(at(s, "stop_grace_period"))); err != nil || grace <= cfg.StopTimeout {
			t.Errorf("%s: it is killed after %v, before it has stopped in %s", name, at(s, "stop_grace_period"), cfg.StopTimeout)
		}
		if test := fmt.Sprint(at(s, "healthcheck", "test")); !strings.Contains(test, "flights health http://127.0.0.1:8080/") {
			t.Errorf("%s: its health is asked by %s", name, test)
		}
		published := fmt.Sprint(at(s, "ports", 0))
		if ports[published] != "" || !strings.HasPrefix(published, "127.0.0.1:") {
			t.Errorf("%s and %s are both at %s, or others reach it", name, ports[published], published)
		}
		ports[published] = name
		if volumes := list(at(s, "volumes")); name != "gateway" && (len(volumes) != 1 || volumes[0] != name+":"+cfg.State.Dir) {
			t.Errorf("%s keeps its state in %v, not in %s", name, volumes, cfg.State.Dir)
		}
	}
	for name := range maps.Keys(services) {
		for _, v := range list(at(services[name], "volumes")) {
			from, _, _ := strings.Cut(fmt.Sprint(v), ":")
			if strings.HasPrefix(from, ".") {
				if _, err := os.Stat(filepath.Join("deploy/compose", from)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			} else if _, ok := at(doc, "volumes").(map[string]any)[from]; !ok {
				t.Errorf("%s: there is no volume %s", name, from)
			}
		}
	}
}

func TestImageIsSmallAndUnprivileged(t *testing.T) {
	text := readFile(t, "deploy/compose/Dockerfile")
	for _, want := range []string{"CGO_ENABLED=0", "FROM gcr.io/distroless/static-debian12:nonroot", "\nUSER 65532:65532\n", "./cmd/flights ./cmd/streamgauge", `"flights", "health", "http://127.0.0.1:8080/healthz"`} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %s", want)
		}
	}
}

// kubernetes are the objects, by kind and name.
func kubernetes(t *testing.T) map[string]any {
	t.Helper()
	objects := make(map[string]any)
	k := documents(t, "deploy/kubernetes/kustomization.yaml")[0]
	for _, file := range list(k["resources"]) {
		for _, doc := range documents(t, "deploy/kubernetes/"+fmt.Sprint(file)) {
			key := fmt.Sprintf("%v/%v", doc["kind"], at(doc, "metadata", "name"))
			if objects[key] != nil || doc["apiVersion"] == nil {
				t.Errorf("%s is there twice, or of no version", key)
			}
			objects[key] = doc
		}
	}
	return objects
}

// The settings in the ConfigMap, with the environment of the pods, are ones that
// LoadConfig takes, and fit what Kubernetes does with the pods.
func TestKubernetesLoads(t *testing.T) {
	objects := kubernetes(t)
	file := filepath.Join(t.TempDir(), "streamgauge.yml")
	text, _ := at(objects["ConfigMap/flights"], "data", "streamgauge.yml").(string)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, command string }{{"StatefulSet/flights", "run"}, {"Deployment/flights-gateway", "gateway"}} {
		t.Run(c.key, func(t *testing.T) {
			pod := at(objects[c.key], "spec", "template", "spec")
			container := at(pod, "containers", 0)
			cfg, err := LoadConfig("flights", file, podEnvironment(container))
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(at(container, "args")) != "["+c.command+" --config /etc/streamgauge/config/streamgauge.yml]" {
				t.Errorf("it runs %v", at(container, "args"))
			}
			if cfg.Instance != "flights-0" || !cfg.Kafka.StaticMember || cfg.Listen.TLS.Cert == "" {
				t.Errorf("instance %s, static %t, certificate %q", cfg.Instance, cfg.Kafka.StaticMember, cfg.Listen.TLS.Cert)
			}
			if c.command == "run" && (cfg.Listen.Advertise != "flights-0.flights-instances.prod.svc:9090" || cfg.Rack != "zone-1") {
				t.Errorf("it is at %s, in %q", cfg.Listen.Advertise, cfg.Rack)
			}
			if c.command == "gateway" && (len(cfg.Gateway.Seeds) != 3 || cfg.Gateway.Seeds[2] != "flights-2.flights-instances.prod.svc:9090") {
				t.Errorf("seeds %v", cfg.Gateway.Seeds)
			}
			sleep := time.Duration(number(at(container, "lifecycle", "preStop", "sleep", "seconds"))) * time.Second
			grace := time.Duration(number(at(pod, "terminationGracePeriodSeconds"))) * time.Second
			if grace <= sleep+cfg.StopTimeout {
				t.Errorf("it is killed after %s, before it has slept %s and stopped in %s", grace, sleep, cfg.StopTimeout)
			}
			if at(container, "readinessProbe", "httpGet", "path") != "/readyz" || at(container, "livenessProbe", "httpGet", "path") != "/healthz" {
				t.Error("probes are asked elsewhere")
			}
			if at(pod, "securityContext", "runAsNonRoot") != true || at(container, "securityContext", "readOnlyRootFilesystem") != true || at(pod, "enableServiceLinks") != false {
				t.Error("it has more rights than it needs, or variables of services")
			}
			if at(objects[c.key], "spec", "template", "metadata", "annotations", "prometheus.io/scrape") != "true" {
				t.Error("it is not scraped")
			}
			files := []string{cfg.Listen.TLS.Cert, cfg.Listen.TLS.Key, cfg.Listen.TLS.CA, cfg.Auth.Keys[0].File}
			if c.command == "run" {
				files = append(files, filepath.Join(cfg.State.Dir, "x"))
			}
			mounted(t, objects[c.key], container, files)
		})
	}
	selects(t, objects)
}

// podEnvironment is what a pod named flights-0, in prod and zone-1, is given.
func podEnvironment(container any) (environ []string) {
	values := map[string]string{}
	fields := map[string]string{"metadata.name": "flights-0", "metadata.namespace": "prod", "metadata.labels['topology.kubernetes.io/zone']": "zone-1"}
	for _, e := range list(at(container, "env")) {
		name := fmt.Sprint(at(e, "name"))
		value, ok := at(e, "value").(string)
		if !ok {
			value = fields[fmt.Sprint(at(e, "valueFrom", "fieldRef", "fieldPath"))]
		}
		for k, v := range values { // of those before
			value = strings.ReplaceAll(value, "$("+k+")", v)
		}
		values[name] = value
		environ = append(environ, name+"="+value)
	}
	return environ
}

// mounted sees to it that files are on volumes that the pod has.
func mounted(t *testing.T, object, container any, files []string) {
	t.Helper()
	have := make(map[string]bool)
	for _, v := range list(at(object, "spec", "template", "spec", "volumes")) {
		have[fmt.Sprint(at(v, "name"))] = true
	}
	for _, v := range list(at(object, "spec", "volumeClaimTemplates")) {
		have[fmt.Sprint(at(v, "metadata", "name"))] = true
	}
	var folders []string
	for _, m := range list(at(container, "volumeMounts")) {
		if !have[fmt.Sprint(at(m, "name"))] {
			t.Errorf("there is no volume %v", at(m, "name"))
		}
		folders = append(folders, fmt.Sprint(at(m, "mountPath")))
	}
	for _, f := range files {
		if !slices.Contains(folders, filepath.Dir(f)) {
			t.Errorf("%s is on none of %v", f, folders)
		}
	}
}

// selects sees to it that services and budgets select pods that there are.
func selects(t *testing.T, objects map[string]any) {
	t.Helper()
	pods := []any{
		at(objects["StatefulSet/flights"], "spec", "template", "metadata", "labels"),
		at(objects["Deployment/flights-gateway"], "spec", "template", "metadata", "labels"),
	}
	for key, o := range objects {
		var selector any
		switch kind, _, _ := strings.Cut(key, "/"); kind {
		case "Service":
			selector = at(o, "spec", "selector")
		case "PodDisruptionBudget", "StatefulSet", "Deployment":
			selector = at(o, "spec", "selector", "matchLabels")
		default:
			continue
		}
		if !slices.ContainsFunc(pods, func(p any) bool { return selector != nil && fmt.Sprint(p) == fmt.Sprint(selector) }) {
			t.Errorf("%s selects no pods by %v", key, selector)
		}
	}
	headless := objects["Service/"+fmt.Sprint(at(objects["StatefulSet/flights"], "spec", "serviceName"))]
	if at(headless, "spec", "clusterIP") != "None" || at(headless, "spec", "publishNotReadyAddresses") != true {
		t.Error("the pods have no names before they are ready")
	}
}

func number(v any) int64 {
	switch n := v.(type) {
	case uint64:
		return int64(n)
	case int64:
		return n
	case int:
		return int64(n)
	}
	return -1
}
