package format

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/streamgauge/streamgauge/view"
)

// Record is what a decoder sees of a Kafka record. Header finds the last header
// of a name; ok is false when there is none or its value is null.
type Record struct {
	Timestamp  int64 // ms
	Key, Value []byte
	Header     func(name string) (value []byte, ok bool)
}

// Error is a record that does not decode. Field is empty when the record as a
// whole is at fault.
type Error struct {
	Field  string
	Reason string
}

func (e *Error) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return "field " + e.Field + ": " + e.Reason
}

func bad(field, format string, args ...any) error {
	return &Error{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// outside reads the fields that do not come from the value.
func outside(dst []view.Value, fields []view.Field, keyFormat view.KeyFormat, r *Record) error {
	for i := range fields {
		f := &fields[i]
		var err error
		switch f.Path.Origin {
		case view.TheTime:
			dst[i], err = view.Convert(view.OfTime(r.Timestamp), f.Type)
		case view.TheKey:
			if r.Key != nil && len(f.Path.Names) == 0 {
				dst[i], err = view.ParsePartitionBytes(r.Key, keyFormat, f.Type)
			}
		case view.TheHeader:
			dst[i], err = header(f, r)
		}
		if err != nil {
			return bad(f.Name, "%v", err)
		}
	}
	return nil
}

func header(f *view.Field, r *Record) (view.Value, error) {
	b, ok := r.Header(f.Path.Names[0])
	if !ok {
		return view.Null, nil
	}
	if !utf8.Valid(b) {
		return view.Null, fmt.Errorf("header %s is not UTF-8", f.Path.Names[0])
	}
	if f.Type.Kind() == view.IntKind || f.Type == view.Float {
		return view.ParseNumber(string(b), f.Type)
	}
	return view.ParseText(string(b), f.Type)
}

// require refuses a null in a field that may not be null.
func require(dst []view.Value, fields []view.Field) error {
	for i := range fields {
		if fields[i].NonNull && dst[i].IsNull() {
			return bad(fields[i].Name, "missing or null, and declared %s!", fields[i].Type)
		}
	}
	return nil
}

// framed says whether a value begins as a schema registry's clients frame
// theirs: a zero byte and a schema id.
func framed(b []byte) bool {
	return len(b) > 5 && b[0] == 0 && binary.BigEndian.Uint32(b[1:]) < 1<<24
}
