package view

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shopspring/decimal"
)

// readings is a view with every aggregate.
func readings() *View {
	of := func(i int) Expr { return func(v []Value) (Value, error) { return v[i], nil } }
	agg := func(name string, fn Fn, i int, t Type) Column {
		a := Agg{Fn: fn, Type: t, Q: 0.9}
		if fn == Avg {
			a.Type = Long // of the values; the column is a Float
		}
		if fn != Count {
			a.Of = of(i)
		}
		return Column{Name: name, Type: t, Role: AggRole, Agg: a}
	}
	return &View{Name: "Readings", Store: "readings", Window: &Window{Size: 3_600_000, Retain: 3650 * day}, Keys: []int{0}, Columns: []Column{
		{Name: "k", Type: String, Role: KeyRole, Expr: of(0)},
		agg("n", Count, 1, Long), agg("sum", Sum, 1, Long), agg("exact", Sum, 2, Decimal), agg("avg", Avg, 1, Float),
		agg("lo", Min, 1, Long), agg("hi", Max, 1, Long), agg("open", First, 1, Long), agg("close", Last, 1, Long), agg("p90", Quantile, 1, Float),
		{Name: "start", Type: DateTime, Role: StartRole}, {Name: "end", Type: DateTime, Role: EndRole}, {Name: "final", Type: Boolean, Role: FinalRole},
	}}
}

type reading struct {
	n  Value // null: a record without a value
	at Place
}

func someReadings(rng *rand.Rand, n int) []reading {
	rs := make([]reading, n)
	for i := range rs {
		rs[i] = reading{OfInt(rng.Int64N(2000) - 1000), Place{Time: rng.Int64N(50), Partition: rng.Int32N(3), Offset: int64(i)}}
		if rng.IntN(10) == 0 {
			rs[i].n = Null
		}
	}
	return rs
}

func (r reading) fields() []Value {
	if r.n.IsNull() {
		return []Value{OfString("a"), Null, Null}
	}
	return []Value{OfString("a"), r.n, OfDecimal(decimal.New(r.n.Int(), -3))}
}

func accumulate(t *testing.T, v *View, rs []reading) []Cell {
	t.Helper()
	cells, scratch := make([]Cell, len(v.Columns)), make([]Value, len(v.Columns))
	for _, r := range rs {
		if err := v.Accumulate(cells, r.fields(), r.at, scratch); err != nil {
			t.Fatal(err)
		}
	}
	return cells
}

func finished(t *testing.T, v *View, cells []Cell) string {
	t.Helper()
	row, err := v.Finish(nil, []Value{OfString("a")}, cells, Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(row)
}

// plain computes the row from all readings at once, but for the quantile.
func plain(rs []reading) (n, sum, lo, hi, open, last int64) {
	var valued []reading
	for _, r := range rs {
		if !r.n.IsNull() {
			valued = append(valued, r)
		}
	}
	slices.SortFunc(valued, func(a, b reading) int {
		if a.at.before(b.at) {
			return -1
		}
		return 1
	})
	lo, hi = math.MaxInt64, math.MinInt64
	for _, r := range valued {
		sum += r.n.Int()
		lo, hi = min(lo, r.n.Int()), max(hi, r.n.Int())
	}
	return int64(len(rs)), sum, lo, hi, valued[0].n.Int(), valued[len(valued)-1].n.Int()
}

// TestMergeIsAFold: however records are split, ordered, encoded and merged, the
// row is that of a plain fold.
func TestMergeIsAFold(t *testing.T) {
	v := readings()
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		rs := someReadings(rng, 3+rng.IntN(100))
		whole := accumulate(t, v, rs)
		n, sum, lo, hi, open, last := plain(rs)
		values, err := v.Finish(nil, []Value{OfString("a")}, whole, Bounds{})
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(values[1], values[2], values[3], values[5], values[6], values[7], values[8])
		exact := OfDecimal(decimal.New(sum, -3))
		if want := fmt.Sprint(n, sum, exact, lo, hi, open, last); got != want {
			t.Fatalf("seed %d: %s, want %s", seed, got, want)
		}
		want := finished(t, v, whole)
		rng.Shuffle(len(rs), func(i, j int) { rs[i], rs[j] = rs[j], rs[i] })
		cut := rng.IntN(len(rs))
		left, right := accumulate(t, v, rs[:cut]), accumulate(t, v, rs[cut:])
		for _, pair := range [][2][]Cell{{left, right}, {right, left}} {
			into := make([]Cell, len(v.Columns))
			if err := v.DecodeCells(into, v.AppendCells(nil, pair[0])); err != nil {
				t.Fatal(err)
			}
			if err := v.MergeCells(into, pair[1]); err != nil {
				t.Fatal(err)
			}
			if got := finished(t, v, into); got != want {
				t.Fatalf("seed %d: merged %s, want %s", seed, got, want)
			}
		}
	}
}

// By time, not arrival; of equal times the earlier record is first, the later
// last; whatever the order.
func TestFC09AllOrders(t *testing.T) {
	v := readings()
	rs := []reading{
		{OfInt(900), Place{Time: 55, Offset: 0}}, {OfInt(1000), Place{Time: 50, Offset: 1}}, {Null, Place{Time: 58, Offset: 2}},
		{OfInt(901), Place{Time: 55, Offset: 3}}, {OfInt(1001), Place{Time: 50, Offset: 4}},
	}
	orders := 0
	permute(rs, len(rs), func() {
		orders++
		cells := accumulate(t, v, rs)
		row, err := v.Finish(nil, []Value{OfString("a")}, cells, Bounds{})
		if err != nil {
			t.Fatal(err)
		}
		if open, last := row[7].Int(), row[8].Int(); open != 1000 || last != 901 {
			t.Fatalf("open %d, close %d, want 1000 and 901", open, last)
		}
	})
	if orders != 120 {
		t.Errorf("%d orders", orders)
	}
}

func permute(rs []reading, n int, visit func()) {
	if n == 1 {
		visit()
		return
	}
	for i := range n {
		permute(rs, n-1, visit)
		j := 0
		if n%2 == 0 {
			j = i
		}
		rs[j], rs[n-1] = rs[n-1], rs[j]
	}
}

// A quantile is within 1 % of the value at its rank, negatives included.
func TestQuantileError(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	spreads := map[string]func() float64{
		"uniform":     func() float64 { return rng.Float64()*2000 - 1000 },
		"exponential": func() float64 { return rng.ExpFloat64() },
		"negative":    func() float64 { return -math.Exp(rng.NormFloat64() * 5) },
		"with zeros":  func() float64 { return float64(rng.IntN(3)-1) * math.Exp(rng.NormFloat64()) },
		"huge":        func() float64 { return math.Copysign(math.Pow(10, rng.Float64()*290), rng.Float64()-0.5) },
	}
	for name, next := range spreads {
		for _, q := range []float64{0, 0.01, 0.25, 0.5, 0.9, 0.99, 1} {
			a := Agg{Fn: Quantile, Type: Float, Q: q}
			var c Cell
			values := make([]float64, 10_000)
			for i := range values {
				values[i] = next()
				if err := a.Add(&c, OfFloat(values[i]), Place{}); err != nil {
					t.Fatal(err)
				}
			}
			slices.Sort(values)
			want := values[max(int(math.Ceil(q*float64(len(values)))), 1)-1]
			got, err := a.Value(&c, Float)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.Float()-want) > 0.01*math.Abs(want) {
				t.Errorf("%s, q %v: %v, want %v ± 1 %%", name, q, got, want)
			}
		}
	}
}

// Of few values, a quantile is the one of the nearest rank: ceil(q·n).
func TestQuantileNearestRank(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 3000 {
		values := make([]int64, 1+rng.IntN(120))
		if round == 0 {
			values = []int64{-8, 21}
		}
		perMille := int64(rng.IntN(1001))
		if round == 0 {
			perMille = 950
		}
		a := Agg{Fn: Quantile, Type: Float, Q: float64(perMille) / 1000}
		var c Cell
		for i := range values {
			if round > 0 {
				values[i] = rng.Int64N(2001) - 1000
			}
			if err := a.Add(&c, OfInt(values[i]), Place{}); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(values)
		n := int64(len(values))
		want := float64(values[max((perMille*n+999)/1000, 1)-1])
		got, err := a.Value(&c, Float)
		if err != nil || math.Abs(got.Float()-want) > 0.01*math.Abs(want) {
			t.Fatalf("round %d, q %v of %v: %v, %v; want %v ± 1 %%", round, a.Q, values, got, err, want)
		}
	}
}

func TestSumOverflowChangesNothing(t *testing.T) {
	v := readings()
	cells := accumulate(t, v, []reading{{OfInt(math.MaxInt64), Place{}}})
	before := finished(t, v, cells)
	err := v.Accumulate(cells, reading{OfInt(1), Place{Offset: 1}}.fields(), Place{Offset: 1}, make([]Value, len(v.Columns)))
	if err == nil {
		t.Fatal("a sum beyond 64 bits was taken")
	}
	if got := finished(t, v, cells); got != before {
		t.Errorf("the row became %s, was %s", got, before)
	}
}

// An empty row counts nothing, sums to 0, and has no other value.
func TestEmptyAggregates(t *testing.T) {
	v := readings()
	row, err := v.Finish(nil, []Value{OfString("a")}, make([]Cell, len(v.Columns)), Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(row[1:10]), `[0 0 "0" null null null null null null]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	blank, err := v.Blank([]Value{OfString("a")}, Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(blank[1:10]), `[null null null null null null null null null]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// FuzzDecodeCells reads arbitrary bytes as a row: an error, or a row that can be
// merged, finished and written.
func FuzzDecodeCells(f *testing.F) {
	v := readings()
	rng := rand.New(rand.NewPCG(3, 4))
	cells, scratch := make([]Cell, len(v.Columns)), make([]Value, len(v.Columns))
	for _, r := range someReadings(rng, 30) {
		if err := v.Accumulate(cells, r.fields(), r.at, scratch); err != nil {
			f.Fatal(err)
		}
	}
	good := v.AppendCells(nil, cells)
	f.Add(good)
	f.Add([]byte{rowVersion, 0x81, 0xa3, 's', 'u', 'm', 0x92, 1, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		got := make([]Cell, len(v.Columns))
		if v.DecodeCells(got, b) != nil {
			return
		}
		again := make([]Cell, len(v.Columns))
		if err := v.DecodeCells(again, v.AppendCells(nil, got)); err != nil {
			t.Fatalf("%x decodes, and what it is written as does not: %v", b, err)
		}
		_ = v.MergeCells(got, cells)
		_, _ = v.Finish(nil, []Value{OfString("a")}, again, Bounds{})
	})
}

// A column may come or go: old rows still read.
func TestRowsCarryColumnsByName(t *testing.T) {
	v := readings()
	b := v.AppendCells(nil, accumulate(t, v, []reading{{OfInt(7), Place{Time: 1}}}))
	fewer := *v
	fewer.Columns = slices.Concat(v.Columns[:2], []Column{{Name: "new", Type: Long, Role: AggRole, Agg: Agg{Fn: Max, Type: Long}}}, v.Columns[6:])
	cells := make([]Cell, len(fewer.Columns))
	if err := fewer.DecodeCells(cells, b); err != nil {
		t.Fatal(err)
	}
	if cells[1].N != 1 || cells[2].N != 0 || cells[3].V.Int() != 7 {
		t.Errorf("n %d, new %d, hi %s", cells[1].N, cells[2].N, cells[3].V)
	}
	if err := v.DecodeCells(make([]Cell, len(v.Columns)), append([]byte{rowVersion + 1}, b[1:]...)); err == nil {
		t.Error("a row of a newer format was read")
	}
}
