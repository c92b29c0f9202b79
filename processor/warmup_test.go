package processor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/streamgauge/streamgauge/view/read"
)

// The group is asked soon, once, when all have caught up or some have for long; an
// answer that changes nothing makes the next question wait longer.
func TestAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &membership{others: map[taskID]read.Role{{"a", 1}: read.WarmUp, {"a", 2}: read.WarmUp, {"a", 3}: read.Standby}}
		a := newAsking()
		a.assigned(m)
		expect := func(want bool, reading int) {
			t.Helper()
			if got := a.due(reading); got != want {
				t.Fatalf("due %t after %s, want %t", got, time.Since(a.last), want)
			}
		}
		time.Sleep(time.Second)
		expect(false, 0)
		time.Sleep(time.Second)
		expect(false, 1)
		expect(true, 0)
		expect(false, 0)
		a.assigned(m) // no task given
		time.Sleep(3 * time.Second)
		expect(false, 0)
		time.Sleep(time.Second)
		expect(true, 0)
		for range 10 {
			a.assigned(m)
			time.Sleep(rejoinAtMost)
			expect(true, 0)
		}
		a.assigned(&membership{others: map[taskID]read.Role{{"a", 2}: read.WarmUp}})
		time.Sleep(5 * time.Second)
		expect(false, 1)
		time.Sleep(15 * time.Second)
		expect(true, 1)
	})
}
