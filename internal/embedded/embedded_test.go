package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDamagedData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "broker")
	b, err := Start(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	if err := os.WriteFile(filepath.Join(dir, "topics.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Start(Options{Dir: dir})
	var damaged *DamagedError
	if !errors.As(err, &damaged) || damaged.Dir != dir || !strings.Contains(err.Error(), "topics.json") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	b, err = Start(Options{Dir: dir})
	if err != nil {
		t.Fatalf("after what the message says: %v", err)
	}
	b.Close()
}

func TestListenMistakes(t *testing.T) {
	b, err := Start(Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, c := range []struct{ listen, want string }{
		{b.Addrs()[0], "is in use: stop what uses it, or choose another"},
		{"nonsense", `listen address "nonsense": want host:port`},
		{"127.0.0.1:65536", `listen address "127.0.0.1:65536": want a port from 0 to 65535`},
		{"0.0.0.0:9092", `listen address "0.0.0.0:9092": the embedded broker listens on 127.0.0.1 only`},
	} {
		if _, err := Start(Options{Listen: c.listen}); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.listen, err, c.want)
		}
	}
}
