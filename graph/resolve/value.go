package resolve

import "github.com/streamgauge/streamgauge/view"

// Of what a nullable column or argument is in Go: nil stands for null.

// String is a nullable String or ID.
func String(v view.Value) *string { return opt(v, v.Str()) }

// Int is a nullable Int.
func Int(v view.Value) *int { return opt(v, int(v.Int())) }

// Long is a nullable Long.
func Long(v view.Value) *int64 { return opt(v, v.Int()) }

// Float is a nullable Float.
func Float(v view.Value) *float64 { return opt(v, v.Float()) }

// Boolean is a nullable Boolean.
func Boolean(v view.Value) *bool { return opt(v, v.Bool()) }

// Time is a nullable DateTime.
func Time(v view.Value) *DateTime { return opt(v, DateTime(v.Int())) }

// Span is a nullable Duration.
func Span(v view.Value) *Duration { return opt(v, Duration(v.Int())) }

// Dec is a nullable Decimal.
func Dec(v view.Value) *Decimal {
	if v.IsNull() {
		return nil
	}
	return &Decimal{v.Dec()}
}

func opt[T any](v view.Value, t T) *T {
	if v.IsNull() {
		return nil
	}
	return &t
}

// Go is what an argument or a field of a scalar type is in Go.
type Go interface {
	~string | ~int | ~int64 | ~bool
}

// Key makes a key column's value of an argument or a parent's field.
func Key[T Go](t T) view.Value {
	switch x := any(t).(type) {
	case string:
		return view.OfString(x)
	case int:
		return view.OfInt(int64(x))
	case int64:
		return view.OfInt(x)
	case bool:
		return view.OfBool(x)
	case DateTime:
		return view.OfTime(int64(x))
	case Duration:
		return view.OfDuration(int64(x))
	}
	return view.Null
}

// KeyOf is Key of something nullable.
func KeyOf[T Go](t *T) view.Value {
	if t == nil {
		return view.Null
	}
	return Key(*t)
}

// Ptr makes an option of an argument that cannot be null.
func Ptr[T any](t T) *T { return &t }

// Keys makes the keys of a lookup of many.
func Keys[T any](list []T, of func(T) []view.Value) [][]view.Value {
	keys := make([][]view.Value, len(list))
	for i, t := range list {
		keys[i] = of(t)
	}
	return keys
}
