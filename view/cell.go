package view

import (
	"errors"
	"fmt"
	"math"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/shopspring/decimal"
)

// Fn is an aggregate function.
type Fn uint8

// The aggregates. All merge: over windows, and in any order but for first and
// last, which go by event time.
const (
	Count Fn = iota
	Sum
	Avg
	Min
	Max
	First
	Last
	Quantile
)

var fnNames = [...]string{"count", "sum", "avg", "min", "max", "first", "last", "quantile"}

func (f Fn) String() string { return fnNames[f] }

// ErrOverflow is a sum beyond 64 bits.
var ErrOverflow = errors.New("the sum exceeds 64 bits")

// quantileAccuracy is the sketch's relative error; half of what is promised, so
// that rounding has room.
const quantileAccuracy = 0.005

// sketchLimit is the largest number a sketch is given; greater ones count as it.
const sketchLimit = 1e300

// Place orders records of one event time: by source partition, then offset.
type Place struct {
	Time      int64 // event time, ms
	Partition int32
	Offset    int64
}

func (p Place) before(q Place) bool {
	if p.Time != q.Time {
		return p.Time < q.Time
	}
	if p.Partition != q.Partition {
		return p.Partition < q.Partition
	}
	return p.Offset < q.Offset
}

// Cell is the mergeable state of one aggregate column: what a row stores in
// place of the column's value. The zero Cell is the empty aggregate. A Cell is
// owned by one goroutine.
type Cell struct {
	N      int64 // values seen: a count; an average's divisor; 0 is empty
	V      Value // sum, least, greatest, first or last value
	At     Place // of the first or last value
	Sketch *ddsketch.DDSketch
}

// Add takes one record's value into the cell; a null, which is a record without
// a value or outside the aggregate's where, is skipped. A count of records is
// given true for each.
func (a *Agg) Add(c *Cell, v Value, at Place) error {
	if v.IsNull() {
		return nil
	}
	if a.Fn == Count {
		c.N++
		return nil
	}
	if a.Fn == Quantile {
		return c.addSketch(v)
	}
	one := Cell{N: 1, V: v, At: at}
	return a.Merge(c, &one)
}

// Merge takes another cell of the same aggregate into c; other is unchanged.
func (a *Agg) Merge(c, other *Cell) error {
	switch {
	case other.N == 0:
		return nil
	case a.Fn == Count:
		c.N += other.N
		return nil
	case a.Fn == Quantile:
		return c.mergeSketch(other)
	case c.N == 0:
		*c = *other
		return nil
	}
	switch a.Fn {
	case Sum, Avg:
		v, err := Plus(c.V, other.V)
		if err != nil {
			return err
		}
		c.V = v
	case Min:
		if Compare(other.V, c.V) < 0 {
			c.V = other.V
		}
	case Max:
		if Compare(other.V, c.V) > 0 {
			c.V = other.V
		}
	case First:
		if other.At.before(c.At) {
			c.V, c.At = other.V, other.At
		}
	case Last:
		if c.At.before(other.At) {
			c.V, c.At = other.V, other.At
		}
	}
	c.N += other.N
	return nil
}

// Plus adds two numbers of one kind exactly; ErrOverflow beyond 64 bits.
func Plus(a, b Value) (Value, error) {
	switch a.kind {
	case IntKind, DurationKind:
		n := a.n + b.n
		if (n > a.n) != (b.n > 0) && b.n != 0 {
			return Null, ErrOverflow
		}
		return Value{kind: a.kind, n: n}, nil
	case FloatKind:
		return clampFloat(a.Float() + b.Float()), nil
	case DecimalKind:
		return OfDecimal(a.d.Add(*b.d)), nil
	}
	return Null, fmt.Errorf("%s and %s do not add", a, b)
}

// clampFloat keeps a sum finite: one that overflowed stays the largest number.
func clampFloat(f float64) Value {
	if math.IsInf(f, 0) {
		return OfFloat(math.Copysign(math.MaxFloat64, f))
	}
	return OfFloat(f)
}

// Value is what the column shows: 0 for an empty count or sum, null for
// anything else that is empty. The type is the column's.
func (a *Agg) Value(c *Cell, t Type) (Value, error) {
	switch a.Fn {
	case Count:
		return OfInt(c.N), nil
	case Sum:
		if c.N == 0 {
			return Convert(OfInt(0), t)
		}
	}
	if c.N == 0 {
		return Null, nil
	}
	switch a.Fn {
	case Avg:
		return average(c, t)
	case Quantile:
		return Convert(OfFloat(c.quantile(a.Q)), t)
	}
	return Convert(c.V, t)
}

// quantile is the value of the nearest rank, which is the least that has at least
// q of all values up to it, itself included. The sketch's own rank lies between
// two, and takes the lower.
func (c *Cell) quantile(q float64) float64 {
	negative, positive := c.Sketch.GetNegativeValueStore(), c.Sketch.GetPositiveValueStore()
	n, below, zeros := c.Sketch.GetCount(), negative.TotalCount(), c.Sketch.GetZeroCount()
	// The product of a decimal fraction, such as 0.07 of 100, may be a little high.
	rank := min(max(math.Ceil(q*n*(1-1e-13))-1, 0), n-1) // counted from 0
	switch {
	case rank < below:
		return -c.Sketch.Value(negative.KeyAtRank(below - 1 - rank))
	case rank < below+zeros:
		return 0
	}
	return c.Sketch.Value(positive.KeyAtRank(rank - below - zeros))
}

func average(c *Cell, t Type) (Value, error) {
	if t == Decimal {
		return OfDecimal(c.V.Dec().DivRound(decimal.NewFromInt(c.N), 16)), nil
	}
	return OfFloat(c.V.Float() / float64(c.N)), nil
}

func newSketch() *ddsketch.DDSketch {
	m, err := mapping.NewLogarithmicMapping(quantileAccuracy)
	if err != nil {
		panic(err) // a constant within the mapping's domain
	}
	return ddsketch.NewDDSketch(m, store.NewSparseStore(), store.NewSparseStore())
}

func (c *Cell) addSketch(v Value) error {
	if c.Sketch == nil {
		c.Sketch = newSketch()
	}
	f := min(max(v.Float(), -sketchLimit), sketchLimit)
	if err := c.Sketch.Add(f); err != nil {
		return fmt.Errorf("quantile of %s: %w", v, err)
	}
	c.N++
	return nil
}

func (c *Cell) mergeSketch(other *Cell) error {
	if c.Sketch == nil {
		c.Sketch = newSketch()
	}
	if err := c.Sketch.MergeWith(other.Sketch); err != nil {
		return fmt.Errorf("merge quantiles: %w", err)
	}
	c.N += other.N
	return nil
}
