package view

import (
	"errors"
	"fmt"
	"time"
)

const (
	day     = 86_400_000
	maxStep = 100_000 * day
	// maxShift is more than all that clocks were ever moved between two moments.
	maxShift = 2 * day
)

// Fill is what a series puts where no record fell.
type Fill uint8

// The fills.
const (
	FillNone     Fill = iota // nothing
	FillEmpty                // the empty aggregate
	FillNull                 // null wherever a column may be null
	FillPrevious             // the row before
)

// ErrGrid is a step or a zone that the windows cannot be merged into.
var ErrGrid = errors.New("windows do not divide the step")

// Grid cuts event time into the steps that a series asks for: each a whole
// number of windows. Steps below a day begin at local midnight; from a day up
// they are calendar days in the zone (weeks begin on Monday). A Grid is owned by
// one goroutine.
type Grid struct {
	window int64
	step   int64
	zone   *time.Location
	last   stretch // the one that Bounds found last: most calls are near it
}

// stretch is a whole number of calendar days.
type stretch struct {
	day      int64 // the first, counted since 1 January 1970
	from, to int64 // its midnights; equal: none yet
}

// NewGrid makes the grid of a step (0: the window itself) over windows of that
// size in a zone. It refuses a step from a day up that is not whole days.
func NewGrid(window, step int64, zone *time.Location) (*Grid, error) {
	if step < 0 || step > maxStep {
		return nil, fmt.Errorf("%w: a step is positive and at most %s", ErrGrid, FormatDuration(maxStep))
	}
	if step > 0 {
		step = ceilTo(step, window)
	}
	if step == window {
		step = 0
	}
	if step > day && step%day != 0 {
		return nil, fmt.Errorf("%w: a step of %s is over a day and not whole days", ErrGrid, FormatDuration(step))
	}
	return &Grid{window: window, step: step, zone: zone}, nil
}

// Bounds is the step that holds the window starting at start, which lies between
// MinTime and MaxTime or counts as these. It refuses a zone whose local midnights
// fall inside windows.
func (g *Grid) Bounds(start int64) (from, to int64, err error) {
	start = ClampTime(start)
	if g.step == 0 {
		from = floorTo(start, g.window)
		return from, from + g.window, nil
	}
	s := g.stretch(start)
	from, to = s.from, s.to
	if from%g.window != 0 || to%g.window != 0 {
		return 0, 0, fmt.Errorf("%w: a window of %s does not divide the days of %s", ErrGrid, FormatDuration(g.window), g.zone)
	}
	if g.step < day {
		from += floorTo(start-from, g.step)
		to = min(to, from+g.step)
	}
	return from, to, nil
}

// stretch is the days that a step from a day up spans, or the day that shorter
// ones divide. Midnights are dear: those found last serve as long as they do.
func (g *Grid) stretch(ms int64) stretch {
	days := max(g.step/day, 1)
	if s := g.last; s.from < s.to && ms >= s.from {
		if ms >= s.to {
			s = stretch{s.day + days, s.to, g.midnight(s.day + 2*days)}
		}
		if ms < s.to {
			g.last = s
			return s
		}
	}
	first := g.dayOf(ms)
	if days%7 == 0 {
		first = floorTo(first-mondayDay, days) + mondayDay
	} else {
		first = floorTo(first, days)
	}
	g.last = stretch{first, g.midnight(first), g.midnight(first + days)}
	return g.last
}

// mondayDay is a Monday: 5 January 1970, counted in days since the epoch.
const mondayDay = 4

// dayOf is the local calendar day, counted since 1 January 1970, between whose
// midnights ms lies. Where clocks go back over midnight that is not always the
// day they show.
func (g *Grid) dayOf(ms int64) int64 {
	y, m, d := time.UnixMilli(ms).In(g.zone).Date()
	n := floorTo(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).UnixMilli(), day) / day
	for ms < g.midnight(n) {
		n--
	}
	for ms >= g.midnight(n+1) {
		n++
	}
	return n
}

// midnight is the first moment of a local calendar day: 00:00, the first of two
// where clocks go back, and the moment of the change where they skip it.
func (g *Grid) midnight(civil int64) int64 {
	y, m, d := time.UnixMilli(civil * day).UTC().Date()
	t := time.Date(y, m, d, 0, 0, 0, 0, g.zone)
	change, next := t.ZoneBounds()
	if !change.IsZero() {
		// What went before the last change may have had this midnight already.
		_, offset := change.Add(-1).Zone()
		if early := civil*day - int64(offset)*1000; early < change.UnixMilli() {
			return early
		}
	}
	_, offset := t.Zone()
	switch shown := t.UnixMilli() + int64(offset)*1000; {
	case shown > civil*day:
		return change.UnixMilli()
	case shown < civil*day:
		return next.UnixMilli()
	}
	return t.UnixMilli()
}

// Point is one step of a series: merged cells, or nothing where no record
// fell.
type Point struct {
	Bounds
	Cells []Cell // nil: no record fell here
}

// Series merges one key's windows into steps. Add its windows in order of
// their start, then take Points. From and To confine it: bounds tell which
// windows' starts it covers.
type Series struct {
	view     *View
	grid     *Grid
	from, to int64 // window starts [from, to), multiples of the window
	stream   int64
	limit    int
	points   []Point
}

// ErrTooLong is a series of more points than allowed.
var ErrTooLong = errors.New("series too long")

// NewSeries starts a series of windows with start in [from, to), at most limit
// points. Stream time tells which points are final.
func NewSeries(v *View, g *Grid, from, to, streamTime int64, limit int) *Series {
	s := &Series{view: v, grid: g, stream: streamTime, limit: limit}
	s.from, s.to = v.Window.Range(from, to)
	return s
}

// Add takes the window of that start; cells is used until the next Add only.
func (s *Series) Add(start int64, cells []Cell) error {
	from, to, err := s.clip(start)
	if err != nil {
		return err
	}
	if n := len(s.points); n > 0 && s.points[n-1].Start == from {
		return s.merge(s.points[n-1].Cells, cells)
	}
	if len(s.points) >= s.limit {
		return ErrTooLong
	}
	into := make([]Cell, len(cells))
	s.points = append(s.points, s.point(from, to, into))
	return s.merge(into, cells)
}

func (s *Series) point(from, to int64, cells []Cell) Point {
	final := s.view.Window.Closed(to-s.view.Window.Size, s.stream)
	return Point{Bounds: Bounds{Start: from, End: to, Final: final}, Cells: cells}
}

// clip is the step of a window, cut to the range asked for: a row never claims
// a time that it does not cover.
func (s *Series) clip(start int64) (from, to int64, err error) {
	from, to, err = s.grid.Bounds(start)
	return max(from, s.from), min(to, max(s.to, start+s.view.Window.Size)), err
}

func (s *Series) merge(into, cells []Cell) error {
	return s.view.MergeCells(into, cells)
}

// MergeCells merges the aggregates of one row into another of the same view.
func (v *View) MergeCells(into, cells []Cell) error {
	for i := range v.Columns {
		if c := &v.Columns[i]; c.Role == AggRole {
			if err := c.Agg.Merge(&into[i], &cells[i]); err != nil {
				return fmt.Errorf("column %s.%s: %w", v.Name, c.Name, err)
			}
		}
	}
	return nil
}

// Points are the steps that records fell into, or, filled, all steps of the
// range in order. More than the limit are refused before they are made, or, when
// that is close, as soon as the limit is reached.
func (s *Series) Points(fill Fill) ([]Point, error) {
	if fill == FillNone {
		return s.points, nil
	}
	// No step is longer than it says but for what clocks are moved within it.
	if least := (s.to - s.from - maxShift) / max(s.grid.step, s.view.Window.Size); least > int64(s.limit) {
		return nil, ErrTooLong
	}
	var all []Point
	next := 0
	for at := s.from; at < s.to; {
		from, to, err := s.clip(at)
		if err != nil {
			return nil, err
		}
		if len(all) >= s.limit {
			return nil, ErrTooLong
		}
		if next < len(s.points) && s.points[next].Start == from {
			all = append(all, s.points[next])
			next++
		} else {
			all = append(all, s.point(from, to, nil))
		}
		at = to
	}
	return all, nil
}

// Whole merges everything added into one point with the bounds of the range,
// or of the windows found where the range is open (math.MinInt64, MaxInt64).
func (s *Series) Whole(openFrom, openTo bool) (Point, bool, error) {
	if len(s.points) == 0 {
		return Point{}, false, nil
	}
	from, to := s.from, s.to
	if openFrom {
		from = s.points[0].Start
	}
	if openTo {
		to = s.points[len(s.points)-1].End
	}
	into := make([]Cell, len(s.view.Columns))
	for i := range s.points {
		if err := s.merge(into, s.points[i].Cells); err != nil {
			return Point{}, false, err
		}
	}
	return s.point(from, to, into), true, nil
}

// Rows finishes points into rows, in order, with the fill where nothing fell.
func (v *View) Rows(points []Point, keys []Value, fill Fill) ([][]Value, error) {
	rows := make([][]Value, 0, len(points))
	var last []Cell
	for i := range points {
		p := &points[i]
		cells := p.Cells
		if cells == nil {
			if fill == FillNull {
				row, err := v.Blank(keys, p.Bounds)
				if err != nil {
					return nil, err
				}
				rows = append(rows, row)
				continue
			}
			if fill == FillPrevious && last != nil {
				cells = last
			} else {
				cells = make([]Cell, len(v.Columns))
			}
		} else {
			last = cells
		}
		row, err := v.Finish(nil, keys, cells, p.Bounds)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}
