package resolve

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
	"github.com/shopspring/decimal"
	"github.com/streamgauge/streamgauge/view"
)

// DateTime is a moment in milliseconds since the epoch. On the wire it is RFC
// 3339; epoch milliseconds are taken too.
type DateTime int64

// Duration is a span in milliseconds, "1h30m" on the wire.
type Duration int64

// Decimal is an exact decimal number, a string on the wire.
type Decimal struct{ decimal.Decimal }

// Fill is what a series puts where no record fell.
type Fill view.Fill

// MarshalLong writes a 64-bit number.
func MarshalLong(n int64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { write(w, strconv.AppendInt(nil, n, 10)) })
}

// UnmarshalLong reads any integral number, exactly, and digits in a text.
func UnmarshalLong(in any) (int64, error) {
	v, err := scalar(in, view.Long)
	return v.Int(), err
}

// MarshalGQL writes RFC 3339 in UTC.
func (t DateTime) MarshalGQL(w io.Writer) { write(w, view.OfTime(int64(t)).AppendJSON(nil)) }

// MarshalJSON writes the same, for extensions.
func (t DateTime) MarshalJSON() ([]byte, error) { return view.OfTime(int64(t)).AppendJSON(nil), nil }

// UnmarshalGQL reads RFC 3339 or epoch milliseconds.
func (t *DateTime) UnmarshalGQL(in any) error {
	v, err := scalar(in, view.DateTime)
	*t = DateTime(v.Int())
	return err
}

// MarshalGQL writes "1h30m".
func (d Duration) MarshalGQL(w io.Writer) { write(w, view.OfDuration(int64(d)).AppendJSON(nil)) }

// UnmarshalGQL reads "1h30m".
func (d *Duration) UnmarshalGQL(in any) error {
	v, err := scalar(in, view.Duration)
	*d = Duration(v.Int())
	return err
}

// MarshalGQL writes the number as a string.
func (d Decimal) MarshalGQL(w io.Writer) { write(w, view.OfDecimal(d.Decimal).AppendJSON(nil)) }

// UnmarshalGQL reads a string or a number.
func (d *Decimal) UnmarshalGQL(in any) error {
	v, err := scalar(in, view.Decimal)
	if err == nil && !v.IsNull() {
		d.Decimal = v.Dec()
	}
	return err
}

var fillNames = []string{"NONE", "EMPTY", "NULL", "PREVIOUS"}

// MarshalGQL writes the enum's name.
func (f Fill) MarshalGQL(w io.Writer) { write(w, strconv.AppendQuote(nil, fillNames[f])) }

// UnmarshalGQL reads the enum's name.
func (f *Fill) UnmarshalGQL(in any) error {
	for i, name := range fillNames {
		if in == name {
			*f = Fill(i)
			return nil
		}
	}
	return fmt.Errorf("%v is no Fill", in)
}

// scalar reads an argument: a literal or a variable.
func scalar(in any, t view.Type) (view.Value, error) {
	switch in := in.(type) {
	case nil:
		return view.Null, fmt.Errorf("null where a %s is due", t)
	case string:
		return view.ParseText(in, t)
	case json.Number:
		return view.ParseNumber(in.String(), t)
	case int64:
		return view.ParseNumber(strconv.FormatInt(in, 10), t)
	case int:
		return view.ParseNumber(strconv.Itoa(in), t)
	case float64:
		return view.ParseNumber(strconv.FormatFloat(in, 'g', -1, 64), t)
	}
	return view.Null, fmt.Errorf("%T where a %s is due", in, t)
}

// write ignores the error of a response writer: gqlgen writes into a buffer.
func write(w io.Writer, b []byte) { _, _ = w.Write(b) }
