package oracle

import (
	"fmt"
	"math"
)

// columnCheck collects the columns that cannot be right.
type columnCheck []string

func (c *columnCheck) integer(name string, got *int64, lo, hi int64) {
	if got != nil && (*got < lo || *got > hi) {
		*c = append(*c, fmt.Sprintf("%s is %d, want %s", name, *got, between(lo, hi)))
	}
}

func (c *columnCheck) number(name string, got *float64, lo, hi float64) {
	if got == nil {
		return
	}
	loose := 1e-9 * max(1, math.Abs(lo), math.Abs(hi))
	if math.IsNaN(*got) || *got < lo-loose || *got > hi+loose {
		*c = append(*c, fmt.Sprintf("%s is %g, want %s", name, *got, between(lo, hi)))
	}
}

func between[T int64 | float64](lo, hi T) string {
	if lo == hi {
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%v to %v", lo, hi)
}
