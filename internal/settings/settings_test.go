package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type sample struct {
	Kafka struct {
		Brokers []string `yaml:"brokers"`
		SASL    struct {
			User     string `yaml:"user"`
			Password Secret `yaml:"password"`
		} `yaml:"sasl"`
	} `yaml:"kafka"`
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSecretsAreNotShown(t *testing.T) {
	var s sample
	if err := Environment(&s, []string{"STREAMGAUGE_KAFKA_SASL_PASSWORD=S3CRET", "STREAMGAUGE_KAFKA_SASL_USER=app"}); err != nil {
		t.Fatal(err)
	}
	if string(s.Kafka.SASL.Password) != "S3CRET" || s.Kafka.SASL.User != "app" {
		t.Errorf("not taken: %q", string(s.Kafka.SASL.Password))
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s.Kafka.SASL.Password, "all", s)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s.Kafka.SASL.Password, "all", s)
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%+v %#v %q", s, s, s), string(b), log.String()} {
		if strings.Contains(text, "S3CRET") {
			t.Errorf("shown: %s", text)
		}
	}
	for _, text := range []string{"kafka: {sasl: {password: [S3CRET]}}", "kafka:\n  sasl:\n    password: {S3CRET: 1}"} {
		if err := File(&s, file(t, text)); err == nil || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A tool reads its own section of a file that has more.
func TestFileInPart(t *testing.T) {
	path := file(t, "app: x\nweb: {nonsense: 1}\nkafka:\n  brokers: [\"a:1\"]\n  sasl:\n    # user: x\n")
	var s sample
	s.Kafka.SASL.User = "default"
	if err := File(&s, path, "kafka"); err != nil || len(s.Kafka.Brokers) != 1 || s.Kafka.SASL.User != "default" {
		t.Errorf("got %+v, %v", s, err)
	}
	if err := File(&s, path); err == nil || !strings.Contains(err.Error(), "no such setting: app") {
		t.Errorf("got %v", err)
	}
	if err := File(&s, file(t, "kafka: {broker: x}"), "kafka"); err == nil || !strings.Contains(err.Error(), "no such setting: broker") {
		t.Errorf("got %v", err)
	}
	if err := File(&s, file(t, "app: x"), "kafka"); err != nil {
		t.Error(err)
	}
}
