package view

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shopspring/decimal"
)

// Bounds of a Decimal: beyond them arithmetic would cost memory by the exponent.
const (
	maxDecimalDigits   = 400
	maxDecimalExponent = 400
)

// ParseNumber reads a JSON number as a value of the type, exactly: nothing
// passes through a float64 on its way to an integer or a Decimal.
func ParseNumber(text string, t Type) (Value, error) {
	switch t {
	case Int, Long:
		n, err := parseInteger(text)
		if err != nil {
			return Null, fmt.Errorf("%s is no %s: %w", clip(text), t, err)
		}
		return Convert(OfInt(n), t)
	case Float:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return Null, fmt.Errorf("%s is out of a Float's range", clip(text))
		}
		return OfFloat(f), nil
	case Decimal:
		d, err := parseDecimal(text)
		if err != nil {
			return Null, fmt.Errorf("%s is no Decimal: %w", clip(text), err)
		}
		return OfDecimal(d), nil
	case DateTime:
		return parseEpoch(text)
	case Duration:
		n, err := parseInteger(text)
		if err != nil {
			return Null, fmt.Errorf("%s is no Duration in milliseconds: %w", clip(text), err)
		}
		return OfDuration(n), nil
	case ID:
		if isInteger(text) {
			return OfString(text), nil
		}
	}
	return Null, fmt.Errorf("number %s where %s is due", clip(text), t.An())
}

// ParseText reads a text as a value of the type: digits for a Long or a
// Decimal, RFC 3339 or digits of epoch milliseconds for a DateTime, "90s",
// "1h30m" or "7d" for a Duration.
func ParseText(s string, t Type) (Value, error) {
	switch t {
	case String, ID:
		if !utf8.ValidString(s) {
			return Null, errors.New("text is not UTF-8")
		}
		return OfString(s), nil
	case Long, Decimal:
		if isNumber(s) {
			return ParseNumber(s, t)
		}
	case DateTime:
		if ms, err := parseRFC3339(s); err == nil {
			return OfTime(ms), nil
		}
		if isInteger(s) {
			return parseEpoch(s)
		}
		return Null, fmt.Errorf("%s is no DateTime (RFC 3339 or epoch milliseconds)", clip(strconv.Quote(s)))
	case Duration:
		ms, err := ParseDuration(s)
		if err != nil {
			return Null, err
		}
		return OfDuration(ms), nil
	}
	return Null, fmt.Errorf("text %s where %s is due", clip(strconv.Quote(s)), t.An())
}

// ParseBool makes a Boolean of the type Boolean, an error for any other type.
func ParseBool(b bool, t Type) (Value, error) {
	if t != Boolean {
		return Null, fmt.Errorf("%t where %s is due", b, t.An())
	}
	return OfBool(b), nil
}

// ParseDuration reads "500ms", "90s", "1h30m", "7d", "2w" as milliseconds. It
// takes whole, positive or zero amounts only, largest unit first.
func ParseDuration(s string) (int64, error) {
	bad := fmt.Errorf("%s is no Duration: write it as \"90s\", \"15m\", \"1h30m\" or \"7d\"", clip(strconv.Quote(s)))
	if s == "" {
		return 0, bad
	}
	total, last := int64(0), int64(math.MaxInt64)
	for rest := s; rest != ""; {
		i := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		if i <= 0 || i > 15 {
			return 0, bad
		}
		n, _ := strconv.ParseInt(rest[:i], 10, 64)
		rest = rest[i:]
		j := strings.IndexFunc(rest, func(r rune) bool { return r >= '0' && r <= '9' })
		if j < 0 {
			j = len(rest)
		}
		unit, ok := durationUnits[rest[:j]]
		rest = rest[j:]
		if !ok || unit >= last || n > maxDuration/unit {
			return 0, bad
		}
		if total += n * unit; total > maxDuration {
			return 0, bad
		}
		last = unit
	}
	return total, nil
}

// maxDuration leaves room for sums of a few.
const maxDuration = math.MaxInt64 / 4

var durationUnits = map[string]int64{"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}

// FormatDuration writes milliseconds the way ParseDuration reads them.
func FormatDuration(ms int64) string {
	if ms == 0 {
		return "0s"
	}
	var b strings.Builder
	rest := uint64(ms)
	if ms < 0 {
		b.WriteByte('-')
		rest = -rest
	}
	for _, name := range []string{"d", "h", "m", "s", "ms"} {
		unit := uint64(durationUnits[name])
		if n := rest / unit; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, name)
			rest %= unit
		}
	}
	return b.String()
}

// AppendJSON writes the value as JSON: a Long as a number, a Decimal as a
// string, a DateTime as RFC 3339 in UTC.
func (v Value) AppendJSON(b []byte) []byte {
	switch v.kind {
	case BoolKind:
		return strconv.AppendBool(b, v.n != 0)
	case IntKind:
		return strconv.AppendInt(b, v.n, 10)
	case FloatKind:
		return appendFloat(b, v.Float())
	case StringKind:
		return AppendJSONString(b, v.s)
	case TimeKind:
		b = append(b, '"')
		b = AppendTime(b, v.n)
		return append(b, '"')
	case DurationKind:
		b = append(b, '"')
		b = append(b, FormatDuration(v.n)...)
		return append(b, '"')
	case DecimalKind:
		b = append(b, '"')
		b = append(b, v.d.String()...)
		return append(b, '"')
	}
	return append(b, "null"...)
}

// AppendTime writes epoch milliseconds as RFC 3339 in UTC, without a fraction
// where there is none.
func AppendTime(b []byte, ms int64) []byte {
	t := time.UnixMilli(ms).UTC()
	if ms%1000 == 0 {
		return t.AppendFormat(b, "2006-01-02T15:04:05Z")
	}
	return t.AppendFormat(b, "2006-01-02T15:04:05.000Z")
}

func appendFloat(b []byte, f float64) []byte {
	abs := math.Abs(f)
	if abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

const hexDigits = "0123456789abcdef"

// AppendJSONString writes s as a JSON string. Control characters and the line
// separators U+2028 and U+2029 are escaped, so that it stays one line anywhere.
func AppendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			if r != '\u2028' && r != '\u2029' && (r != utf8.RuneError || size > 1) {
				i += size
				continue
			}
			b = append(b, s[start:i]...)
			b = append(b, `\u`...)
			b = append(b, hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		} else {
			b = append(b, s[start:i]...)
			b = appendEscape(b, c)
		}
		i += size
		start = i
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// parseInteger reads any integral JSON number: 7, 1.0, 1e3, never 1.5.
func parseInteger(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	} else if isInteger(text) {
		return 0, errors.New("beyond 64 bits")
	}
	d, err := parseDecimal(text)
	if err != nil {
		return 0, err
	}
	if !d.IsInteger() {
		return 0, errors.New("not integral")
	}
	if b := d.BigInt(); b.IsInt64() {
		return b.Int64(), nil
	}
	return 0, errors.New("beyond 64 bits")
}

func parseDecimal(text string) (decimal.Decimal, error) {
	if len(text) > maxDecimalDigits {
		return decimal.Zero, fmt.Errorf("over %d digits", maxDecimalDigits)
	}
	if !isNumber(text) {
		return decimal.Zero, errors.New("not a number")
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if e, err := strconv.Atoi(text[i+1:]); err != nil || e > maxDecimalExponent || e < -maxDecimalExponent {
			return decimal.Zero, fmt.Errorf("exponent beyond %d", maxDecimalExponent)
		}
	}
	d, err := decimal.NewFromString(text)
	if err != nil {
		return decimal.Zero, errors.New("not a number")
	}
	return d, nil
}

func parseEpoch(text string) (Value, error) {
	n, err := parseInteger(text)
	if err != nil {
		d, derr := parseDecimal(text)
		if derr != nil {
			return Null, fmt.Errorf("%s is no DateTime: %w", clip(text), err)
		}
		f := d.Floor() // finer than a millisecond: floored
		if !f.BigInt().IsInt64() {
			return Null, fmt.Errorf("%s is no DateTime: beyond 64 bits", clip(text))
		}
		n = f.IntPart()
	}
	if err := checkTime(n); err != nil {
		return Null, fmt.Errorf("%s is no DateTime: %w", clip(text), err)
	}
	return OfTime(n), nil
}

// The moments that RFC 3339 can write, in UTC: years 0 to 9999. No other is
// let in, so that arithmetic on times never wraps around.
const (
	MinTime = -62_167_219_200_000
	MaxTime = 253_402_300_799_999
)

func checkTime(ms int64) error {
	if ms < MinTime || ms > MaxTime {
		return errors.New("outside the years 0 to 9999")
	}
	return nil
}

func parseRFC3339(s string) (int64, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, err
	}
	ms := floorMilli(t)
	return ms, checkTime(ms)
}

// floorMilli floors to milliseconds; UnixMilli does so for any sign.
func floorMilli(t time.Time) int64 {
	return t.Unix()*1000 + int64(t.Nanosecond())/1_000_000
}

// isInteger: an optional sign and digits.
func isInteger(s string) bool {
	s = strings.TrimPrefix(s, "-")
	if s == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// isNumber: what JSON calls a number, leading zeros allowed.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	s, ok := cutDigits(s)
	if ok && strings.HasPrefix(s, ".") {
		s, ok = cutDigits(s[1:])
	}
	if ok && (strings.HasPrefix(s, "e") || strings.HasPrefix(s, "E")) {
		s = s[1:]
		if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-") {
			s = s[1:]
		}
		s, ok = cutDigits(s)
	}
	return ok && s == ""
}

// cutDigits cuts off the digits that s begins with; false when there are none.
func cutDigits(s string) (rest string, ok bool) {
	rest = strings.TrimLeft(s, "0123456789")
	return rest, len(rest) < len(s)
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
