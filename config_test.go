package streamgauge

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The reference file says what the defaults are.
func TestReferenceFileHasTheDefaults(t *testing.T) {
	got, err := LoadConfig("flights", "deploy/streamgauge.yml", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := DefaultConfig("flights")
	want.Instance = "host-1"
	normalize(reflect.ValueOf(got).Elem())
	normalize(reflect.ValueOf(want).Elem())
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// normalize makes empty lists nil.
func normalize(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Struct:
			normalize(f)
		case f.Kind() == reflect.Slice && f.Len() == 0:
			f.SetZero()
		}
	}
}

// Every setting is in the reference file.
func TestReferenceFileHasEverySetting(t *testing.T) {
	b, err := os.ReadFile("deploy/streamgauge.yml")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(v reflect.Type)
	walk = func(v reflect.Type) {
		for i := range v.NumField() {
			f := v.Field(i)
			if name := f.Tag.Get("yaml"); !strings.Contains(string(b), name+":") {
				t.Errorf("%s is missing", name)
			}
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[Config]())
}

func TestConfigOverrides(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yml")
	if err := os.WriteFile(file, []byte("kafka: {brokers: [\"x:1\"]}\nlimits: {depth: 7}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig("app", file, []string{"STREAMGAUGE_KAFKA_BROKERS=a:1,b:2", "STREAMGAUGE_STATE_COMMITINTERVAL=250ms", "STREAMGAUGE_WEB_PLAYGROUND=false", "OTHER=1"})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(c.Kafka.Brokers, []string{"a:1", "b:2"}) || c.State.CommitInterval != 250*time.Millisecond || c.Web.Playground || c.Limits.Depth != 7 || c.Limits.Aliases != 30 {
		t.Errorf("got %+v", c)
	}
}

func TestConfigMistakes(t *testing.T) {
	for _, c := range []struct{ name, file, env, want string }{
		{"unknown setting", "kafka: {broker: x}", "", "broker"},
		{"value", "processing: {onError: panic}", "", `processing.onError is "panic"; allowed: deadLetter, fail`},
		{"environment", "", "STREAMGAUGE_STATE_OVERLAYBYTES=lots", "STREAMGAUGE_STATE_OVERLAYBYTES"},
		{"type", "limits: {depth: deep}", "", "depth"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "c.yml")
			if err := os.WriteFile(file, []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := LoadConfig("app", file, []string{c.env})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := LoadConfig("app", "nowhere.yml", nil); err == nil || !strings.Contains(err.Error(), "nowhere.yml") {
		t.Errorf("got %v", err)
	}
}
