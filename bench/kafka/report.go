package main

import (
	"fmt"
	"io"
	"os"
)

// line is one thing measured. A ratio stands for itself; budget is what it may
// be, empty without one.
type line struct {
	phase, what, figure, ratio, budget string
	met                                bool
}

// report is the table, in the order in which it came about.
type report struct{ lines []line }

// add takes a line, and shows it at once.
func (r *report) add(l line) {
	fmt.Fprintf(os.Stderr, "  %s: %s %s\n", l.what, l.figure, l.ratio)
	r.lines = append(r.lines, l)
}

// print writes the table in Markdown.
func (r *report) print(w io.Writer) {
	fmt.Fprint(w, "| phase | what | figure | ratio | budget | met |\n|---|---|---|---|---|---|\n")
	for _, l := range r.lines {
		met := ""
		if l.budget != "" {
			met = map[bool]string{true: "yes", false: "no"}[l.met]
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s |\n", l.phase, l.what, l.figure, l.ratio, l.budget, met)
	}
}

// atLeast and atMost make the ratio of a line one with a budget.
func (l line) atLeast(ratio, budget float64) line {
	l.ratio, l.budget, l.met = fmt.Sprintf("%.2f", ratio), fmt.Sprintf("≥ %.2g", budget), ratio >= budget
	return l
}

func (l line) atMost(ratio, budget float64) line {
	l.ratio, l.budget, l.met = fmt.Sprintf("%.3f", ratio), fmt.Sprintf("≤ %.2g", budget), ratio <= budget
	return l
}
