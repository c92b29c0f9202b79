package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Flags win over the environment, that over the file, and the rest of an
// instance's settings does not matter.
func TestKafkaConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yml")
	text := "app: x\nlisten: {http: \":1\"}\nkafka:\n  brokers: [\"file:1\"]\n  sasl: {mechanism: PLAIN, user: app, password: S3CRET}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := []string{"STREAMGAUGE_KAFKA_BROKERS=env:1", "STREAMGAUGE_KAFKA_SASL_USER=other", "STREAMGAUGE_APP=y", "STREAMGAUGE_NONSENSE=1"}
	for _, c := range []struct {
		name          string
		file          string
		flag, environ []string
		brokers, user string
	}{
		{"nothing", "", nil, nil, defaultBroker, ""},
		{"file", file, nil, nil, "file:1", "app"},
		{"environment", file, nil, environ, "env:1", "other"},
		{"flag", file, []string{"flag:1"}, environ, "flag:1", "other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := kafkaConfig(c.file, c.flag, c.environ)
			if err != nil || !slices.Equal(got.Brokers, []string{c.brokers}) || got.SASL.User != c.user {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if _, err := kafkaConfig(file, nil, []string{"STREAMGAUGE_KAFKA_SASL_MECHANISM=X"}); err == nil || strings.Contains(err.Error(), "S3CRET") {
		t.Errorf("got %v", err)
	}
}
