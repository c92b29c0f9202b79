package view

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/shopspring/decimal"
)

// Type is the declared scalar of a column or a source's field.
type Type uint8

// The scalars of the schema language. ID is a text to the store.
const (
	NoType Type = iota
	String
	ID
	Int // 32 bits, GraphQL's own
	Long
	Float
	Boolean
	DateTime // milliseconds since the epoch
	Decimal  // exact
	Duration // milliseconds
)

var typeNames = [...]string{"?", "String", "ID", "Int", "Long", "Float", "Boolean", "DateTime", "Decimal", "Duration"}

func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "Type(" + strconv.Itoa(int(t)) + ")"
}

// An is the type with its article: an Int, a Long.
func (t Type) An() string {
	if t == Int || t == ID {
		return "an " + t.String()
	}
	return "a " + t.String()
}

// TypeOf finds the scalar of that name; false for any other name.
func TypeOf(name string) (Type, bool) {
	for t, n := range typeNames {
		if n == name && t > 0 {
			return Type(t), true
		}
	}
	return NoType, false
}

// Numeric says whether sums and quotients of the type make sense.
func (t Type) Numeric() bool { return t == Int || t == Long || t == Float || t == Decimal }

// Kind is what a Value holds.
type Kind uint8

// The kinds; Null is the zero Value's.
const (
	NullKind Kind = iota
	BoolKind
	IntKind // Int and Long
	FloatKind
	StringKind // String and ID
	TimeKind
	DurationKind
	DecimalKind
)

// Kind is the kind that a value of the type has when it is not null.
func (t Type) Kind() Kind {
	switch t {
	case String, ID:
		return StringKind
	case Int, Long:
		return IntKind
	case Float:
		return FloatKind
	case Boolean:
		return BoolKind
	case DateTime:
		return TimeKind
	case Duration:
		return DurationKind
	case Decimal:
		return DecimalKind
	}
	return NullKind
}

// Value is one scalar, or null (the zero Value). It is immutable and may be
// copied and shared freely.
type Value struct {
	kind Kind
	n    int64 // bool, int, time, duration; a float's bits
	s    string
	d    *decimal.Decimal
}

// Null is the value of a column that has none.
var Null Value

// OfBool makes a Boolean.
func OfBool(b bool) Value {
	if b {
		return Value{kind: BoolKind, n: 1}
	}
	return Value{kind: BoolKind}
}

// OfInt makes an Int or a Long.
func OfInt(n int64) Value { return Value{kind: IntKind, n: n} }

// OfFloat makes a Float. NaN and the infinities become null and −0 becomes 0:
// they have no JSON form and no place in an order.
func OfFloat(f float64) Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Null
	}
	if f == 0 {
		f = 0 // drops the sign of −0
		return Value{kind: FloatKind}
	}
	return Value{kind: FloatKind, n: int64(math.Float64bits(f))}
}

// OfString makes a String or an ID.
func OfString(s string) Value { return Value{kind: StringKind, s: s} }

// OfTime makes a DateTime from milliseconds since the epoch.
func OfTime(ms int64) Value { return Value{kind: TimeKind, n: ms} }

// OfDuration makes a Duration from milliseconds.
func OfDuration(ms int64) Value { return Value{kind: DurationKind, n: ms} }

// OfDecimal makes a Decimal.
func OfDecimal(d decimal.Decimal) Value { return Value{kind: DecimalKind, d: &d} }

// Kind says what the value holds.
func (v Value) Kind() Kind { return v.kind }

// IsNull says whether there is no value.
func (v Value) IsNull() bool { return v.kind == NullKind }

// Bool is a Boolean's value, false for anything else.
func (v Value) Bool() bool { return v.kind == BoolKind && v.n != 0 }

// Int is the number of an Int or Long, the milliseconds of a DateTime or
// Duration, 0 for anything else.
func (v Value) Int() int64 {
	switch v.kind {
	case IntKind, TimeKind, DurationKind, BoolKind:
		return v.n
	}
	return 0
}

// Str is a text's value, "" for anything else.
func (v Value) Str() string { return v.s }

// Float is the value of any number as a float64, rounded where it must be.
func (v Value) Float() float64 {
	switch v.kind {
	case FloatKind:
		return math.Float64frombits(uint64(v.n))
	case DecimalKind:
		return v.d.InexactFloat64()
	}
	return float64(v.Int())
}

// Dec is the value of any number as a Decimal, exact but for a Float.
func (v Value) Dec() decimal.Decimal {
	switch v.kind {
	case DecimalKind:
		return *v.d
	case FloatKind:
		return decimal.NewFromFloat(v.Float())
	}
	return decimal.NewFromInt(v.Int())
}

// String is the value for logs and messages; a text is quoted.
func (v Value) String() string {
	if v.kind == StringKind {
		return strconv.Quote(v.s)
	}
	if v.kind == NullKind {
		return "null"
	}
	return string(v.AppendJSON(nil))
}

// Compare orders two values: null first, then by value; numbers of different
// kinds by what they are worth, anything else of different kinds by kind.
func Compare(a, b Value) int {
	if a.kind != b.kind {
		return compareKinds(a, b)
	}
	switch a.kind {
	case NullKind:
		return 0
	case StringKind:
		return cmp.Compare(a.s, b.s)
	case FloatKind:
		return cmp.Compare(a.Float(), b.Float())
	case DecimalKind:
		return a.d.Cmp(*b.d)
	}
	return cmp.Compare(a.n, b.n)
}

func compareKinds(a, b Value) int {
	if a.numeric() && b.numeric() {
		return a.Dec().Cmp(b.Dec())
	}
	return cmp.Compare(a.kind, b.kind)
}

func (v Value) numeric() bool {
	return v.kind == IntKind || v.kind == FloatKind || v.kind == DecimalKind
}

// Convert turns a value into one of the type, exactly: an integer into a Float,
// a Decimal or a text's ID, never a Float into an integer unless it is integral.
func Convert(v Value, t Type) (Value, error) {
	k := t.Kind()
	switch {
	case v.kind == k && t != Int, v.kind == NullKind:
		return v, nil
	case t == Int && v.kind == IntKind:
		if v.n < math.MinInt32 || v.n > math.MaxInt32 {
			return Null, fmt.Errorf("%d does not fit an Int (32 bits)", v.n)
		}
		return v, nil
	case k == IntKind && v.kind == FloatKind:
		return floatToInt(v.Float(), t)
	case k == IntKind && v.kind == DecimalKind:
		if v.d.IsInteger() && v.d.BigInt().IsInt64() {
			return Convert(OfInt(v.d.IntPart()), t)
		}
	case k == FloatKind && v.numeric():
		return OfFloat(v.Float()), nil
	case k == DecimalKind && v.numeric():
		return OfDecimal(v.Dec()), nil
	case k == TimeKind && v.kind == IntKind && checkTime(v.n) == nil:
		return OfTime(v.n), nil
	case t == ID && v.kind == IntKind:
		return OfString(strconv.FormatInt(v.n, 10)), nil
	}
	return Null, fmt.Errorf("%s is no %s", v, t)
}

func floatToInt(f float64, t Type) (Value, error) {
	if f != math.Trunc(f) || f < -1<<63 || f >= 1<<63 {
		return Null, fmt.Errorf("%v is no %s", f, t)
	}
	return Convert(OfInt(int64(f)), t)
}
