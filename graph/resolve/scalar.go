package resolve

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

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

// ReadFrom says which copies may answer, of @read. The edge reads it.
type ReadFrom string

// MarshalLong writes a 64-bit number.
func MarshalLong(n int64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { write(w, strconv.AppendInt(nil, n, 10)) })
}

// UnmarshalLong reads any integral number, exactly, and digits in a text.
func UnmarshalLong(in any) (int64, error) {
	v, err := scalar(in, view.Long)
	return v.Int(), err
}

// GraphQL's own scalars, read strictly: null is an error where a value must be
// (a variable may bring it past a default), and a text is no number.

// MarshalInt writes a 32-bit number.
func MarshalInt(n int) graphql.Marshaler { return MarshalLong(int64(n)) }

// UnmarshalInt reads a number.
func UnmarshalInt(in any) (int, error) {
	if text, ok := in.(string); ok {
		return 0, fmt.Errorf("a text, %.40q, where an Int is due", text)
	}
	v, err := scalar(in, view.Int)
	return int(v.Int()), err
}

// MarshalFloat writes a finite number.
func MarshalFloat(f float64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { write(w, view.OfFloat(f).AppendJSON(nil)) })
}

// UnmarshalFloat reads a number.
func UnmarshalFloat(in any) (float64, error) {
	v, err := scalar(in, view.Float)
	return v.Float(), err
}

// MarshalString writes a text on one line.
func MarshalString(s string) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { write(w, view.AppendJSONString(nil, s)) })
}

// UnmarshalString reads a text.
func UnmarshalString(in any) (string, error) {
	if s, ok := in.(string); ok {
		return s, nil
	}
	return "", misfit(in, view.String)
}

// MarshalID writes an ID as a text.
func MarshalID(s string) graphql.Marshaler { return MarshalString(s) }

// UnmarshalID reads a text or an integer.
func UnmarshalID(in any) (string, error) {
	v, err := scalar(in, view.ID)
	return v.Str(), err
}

// MarshalBoolean writes true or false.
func MarshalBoolean(b bool) graphql.Marshaler { return graphql.MarshalBoolean(b) }

// UnmarshalBoolean reads true or false.
func UnmarshalBoolean(in any) (bool, error) {
	if b, ok := in.(bool); ok {
		return b, nil
	}
	return false, misfit(in, view.Boolean)
}

// misfit says in GraphQL's words what came in place of a scalar.
func misfit(in any, t view.Type) error {
	what := "something else"
	switch in.(type) {
	case nil:
		what = "null"
	case string:
		what = "a text"
	case bool:
		what = "a Boolean"
	case []any:
		what = "a list"
	case map[string]any:
		what = "an object"
	case json.Number, int, int64, float64:
		what = "a number"
	}
	return fmt.Errorf("%s where %s is due", what, t.An())
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
	return fmt.Errorf("not one of %s", strings.Join(fillNames, ", "))
}

// MarshalGQL writes the enum's name.
func (f ReadFrom) MarshalGQL(w io.Writer) { write(w, strconv.AppendQuote(nil, string(f))) }

// UnmarshalGQL reads the enum's name.
func (f *ReadFrom) UnmarshalGQL(in any) error {
	if in != "ANY" && in != "ACTIVE" {
		return fmt.Errorf("not one of ANY, ACTIVE")
	}
	*f = ReadFrom(in.(string))
	return nil
}

// scalar reads an argument: a literal or a variable.
func scalar(in any, t view.Type) (view.Value, error) {
	switch in := in.(type) {
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
	return view.Null, misfit(in, t)
}

// write ignores the error of a response writer: gqlgen writes into a buffer.
func write(w io.Writer, b []byte) { _, _ = w.Write(b) }
