package broker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestComplaints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		var c complaints
		for range 25 { // seconds
			c.warn(log, "fetching", "host", 1)
			c.warn(log, "heartbeat")
			time.Sleep(time.Second)
		}
		if n, m := strings.Count(out.String(), "msg=fetching host=1"), strings.Count(out.String(), "msg=heartbeat"); n != 3 || m != 3 {
			t.Errorf("told %d and %d times:\n%s", n, m, &out)
		}
	})
}
