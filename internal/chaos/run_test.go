package chaos

import (
	"errors"
	"testing"
	"time"

	"github.com/streamgauge/streamgauge/internal/chaos/oracle"
)

// Invariants 1, 2 and 4: instances are killed and lose their state while records
// come in and many ask. No number is ever wrong, none goes back, no key that was
// there is missing, and at the end every view is the fold. Reads without an
// answer are for the long run to judge: a machine may be too busy for 5 s.
func TestInvariant1KilledInstances(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	result, err := Run(t.Context(), Config{
		Duration: 12 * time.Second, Seed: uint64(time.Now().UnixNano() % 1_000_000), Instances: 3, Embedded: true, Clients: 8, Keys: 500,
		Rate: 100, Flights: 3000, Slack: 2 * time.Second, Faults: []string{"kill", "wipe"}, Ports: 27, Root: "../..", LogLevel: "info",
		Dir: t.TempDir(), Out: t.Output(),
	})
	if err != nil && !errors.Is(err, ErrFaults) {
		t.Fatal(err)
	}
	if result.Reads == 0 || result.Kills == 0 {
		t.Errorf("%d reads, %d kills", result.Reads, result.Kills)
	}
	for kind, n := range result.Faults {
		if kind != oracle.Failed && n > 0 {
			t.Errorf("%s: %d", kind, n)
		}
	}
}
