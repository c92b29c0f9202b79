package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// request is a GraphQL request as every transport carries it. Numbers in it
// are json.Number: a 64-bit integer keeps its last digits.
type request struct {
	query         string
	operationName string
	variables     map[string]any
	extensions    map[string]any
}

// maxJSONDepth is how deep arrays and objects of a request may nest.
const maxJSONDepth = 200

var errNoQuery = errors.New("query is missing")

// decodeRequest reads a request from JSON in one pass. The result shares
// nothing with b. Errors name the place and never quote b.
func decodeRequest(b []byte) (*request, error) {
	d := decoder{b: b}
	if !utf8.Valid(b) {
		return nil, errors.New("malformed JSON: not UTF-8")
	}
	q := &request{}
	d.space()
	if d.peek() == '[' {
		return nil, errors.New("need one request: batches are not taken")
	}
	if d.peek() != '{' {
		return nil, d.malformed()
	}
	err := d.members(func(key string) error { return d.part(q, key) })
	if err != nil {
		return nil, err
	}
	if d.space(); d.i < len(d.b) {
		return nil, d.malformed()
	}
	if q.query == "" {
		return nil, errNoQuery
	}
	return q, nil
}

// part reads a request's member; unknown ones are read over.
func (d *decoder) part(q *request, key string) error {
	v, err := d.value()
	if err != nil || v == nil {
		return err
	}
	ok := true
	switch key {
	case "query":
		q.query, ok = v.(string)
	case "operationName":
		q.operationName, ok = v.(string)
	case "variables":
		q.variables, ok = v.(map[string]any)
	case "extensions":
		q.extensions, ok = v.(map[string]any)
	}
	switch {
	case ok:
		return nil
	case key == "query" || key == "operationName":
		return fmt.Errorf("%s must be a text", key)
	}
	return fmt.Errorf("%s must be an object", key)
}

// decodeObject reads an object from JSON, as decodeRequest does; nil for null.
func decodeObject(b []byte) (map[string]any, error) {
	d := decoder{b: b}
	if !utf8.Valid(b) {
		return nil, errors.New("malformed JSON: not UTF-8")
	}
	d.space()
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	if d.space(); d.i < len(d.b) {
		return nil, d.malformed()
	}
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, errors.New("must be an object")
	}
	return m, nil
}

// decoder reads JSON (RFC 8259) that is known to be UTF-8.
type decoder struct {
	b     []byte
	i     int
	depth int
}

func (d *decoder) malformed() error { return fmt.Errorf("malformed JSON at byte %d", d.i) }

func (d *decoder) space() {
	for d.i < len(d.b) {
		switch d.b[d.i] {
		case ' ', '\t', '\n', '\r':
			d.i++
		default:
			return
		}
	}
}

// peek is the next byte, 0 at the end (which is no JSON either).
func (d *decoder) peek() byte {
	if d.i < len(d.b) {
		return d.b[d.i]
	}
	return 0
}

func (d *decoder) value() (any, error) {
	switch c := d.peek(); {
	case c == '"':
		return d.text()
	case c == '{':
		m := map[string]any{}
		err := d.members(func(key string) error {
			v, err := d.value()
			m[key] = v
			return err
		})
		return m, err
	case c == '[':
		return d.list()
	case c == 't':
		return true, d.word("true")
	case c == 'f':
		return false, d.word("false")
	case c == 'n':
		return nil, d.word("null")
	case c == '-' || c >= '0' && c <= '9':
		return d.number()
	}
	return nil, d.malformed()
}

func (d *decoder) word(w string) error {
	if len(d.b)-d.i < len(w) || string(d.b[d.i:d.i+len(w)]) != w {
		return d.malformed()
	}
	d.i += len(w)
	return nil
}

func (d *decoder) enter() error {
	if d.depth++; d.depth > maxJSONDepth {
		return fmt.Errorf("JSON nested deeper than %d", maxJSONDepth)
	}
	d.i++
	d.space()
	return nil
}

// members reads an object, from its brace on; member reads a value.
func (d *decoder) members(member func(key string) error) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer func() { d.depth-- }()
	if d.peek() == '}' {
		d.i++
		return nil
	}
	for {
		if d.peek() != '"' {
			return d.malformed()
		}
		key, err := d.text()
		if err != nil {
			return err
		}
		if d.space(); d.peek() != ':' {
			return d.malformed()
		}
		d.i++
		d.space()
		if err := member(key); err != nil {
			return err
		}
		if more, err := d.more('}'); !more {
			return err
		}
	}
}

func (d *decoder) list() ([]any, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer func() { d.depth-- }()
	l := []any{}
	if d.peek() == ']' {
		d.i++
		return l, nil
	}
	for {
		v, err := d.value()
		if err != nil {
			return nil, err
		}
		l = append(l, v)
		if more, err := d.more(']'); !more {
			return l, err
		}
	}
}

// more reads a comma, and says so, or the end.
func (d *decoder) more(end byte) (bool, error) {
	d.space()
	switch d.peek() {
	case ',':
		d.i++
		d.space()
		return true, nil
	case end:
		d.i++
		return false, nil
	}
	return false, d.malformed()
}

func (d *decoder) number() (json.Number, error) {
	start := d.i
	if d.peek() == '-' {
		d.i++
	}
	switch {
	case d.peek() == '0':
		d.i++
	case !d.digits():
		return "", d.malformed()
	}
	if d.peek() == '.' {
		d.i++
		if !d.digits() {
			return "", d.malformed()
		}
	}
	if c := d.peek(); c == 'e' || c == 'E' {
		d.i++
		if c := d.peek(); c == '+' || c == '-' {
			d.i++
		}
		if !d.digits() {
			return "", d.malformed()
		}
	}
	return json.Number(d.b[start:d.i]), nil
}

func (d *decoder) digits() bool {
	start := d.i
	for c := d.peek(); c >= '0' && c <= '9'; c = d.peek() {
		d.i++
	}
	return d.i > start
}

// text reads a string, from its quote on. Most have no escapes and are copied
// as they stand.
func (d *decoder) text() (string, error) {
	d.i++
	start := d.i
	for d.i < len(d.b) {
		switch c := d.b[d.i]; {
		case c == '"':
			s := string(d.b[start:d.i])
			d.i++
			return s, nil
		case c == '\\':
			return d.escaped(append(make([]byte, 0, 2*(d.i-start)+32), d.b[start:d.i]...))
		case c < ' ':
			return "", d.malformed()
		}
		d.i++
	}
	return "", d.malformed()
}

// escaped reads the rest of a string that has escapes.
func (d *decoder) escaped(s []byte) (string, error) {
	for d.i < len(d.b) {
		c := d.b[d.i]
		switch {
		case c == '"':
			d.i++
			return string(s), nil
		case c < ' ':
			return "", d.malformed()
		case c != '\\':
			s = append(s, c)
			d.i++
			continue
		}
		d.i++
		switch c := d.peek(); c {
		case '"', '\\', '/':
			s = append(s, c)
		case 'b':
			s = append(s, '\b')
		case 'f':
			s = append(s, '\f')
		case 'n':
			s = append(s, '\n')
		case 'r':
			s = append(s, '\r')
		case 't':
			s = append(s, '\t')
		case 'u':
			r, ok := d.unit(d.i + 1)
			if !ok {
				return "", d.malformed()
			}
			s = utf8.AppendRune(s, d.pair(r))
			d.i += 4
		default:
			return "", d.malformed()
		}
		d.i++
	}
	return "", d.malformed()
}

// unit is the UTF-16 code unit whose four hex digits are at i.
func (d *decoder) unit(i int) (rune, bool) {
	if i+4 > len(d.b) {
		return 0, false
	}
	var r rune
	for _, c := range d.b[i : i+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// pair joins a surrogate with the one escaped after it, and goes past that; a
// lone one is U+FFFD. d.i is at the first one's u.
func (d *decoder) pair(r rune) rune {
	if !utf16.IsSurrogate(r) {
		return r
	}
	if d.i+6 < len(d.b) && d.b[d.i+5] == '\\' && d.b[d.i+6] == 'u' {
		if low, ok := d.unit(d.i + 7); ok {
			if joined := utf16.DecodeRune(r, low); joined != utf8.RuneError {
				d.i += 6
				return joined
			}
		}
	}
	return utf8.RuneError
}
