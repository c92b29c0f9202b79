package format

import (
	"errors"
	"fmt"

	"github.com/streamgauge/streamgauge/view"
)

// JSON decodes JSON values: an object's members by name, dots leading deeper.
// It is for one goroutine.
type JSON struct {
	fields    []view.Field
	keyFormat view.KeyFormat
	root      node
	scan      scanner
	dst       []view.Value
}

// node is a place in the value: the fields that are wanted there, and the
// members wanted below it.
type node struct {
	fields  []int
	names   []string
	members []*node
}

func (n *node) child(name []byte) *node {
	for i, s := range n.names {
		if s == string(name) {
			return n.members[i]
		}
	}
	return nil
}

func (n *node) grow(names []string, field int) {
	if len(names) == 0 {
		n.fields = append(n.fields, field)
		return
	}
	c := n.child([]byte(names[0]))
	if c == nil {
		c = &node{}
		n.names, n.members = append(n.names, names[0]), append(n.members, c)
	}
	c.grow(names[1:], field)
}

// NewJSON makes a decoder of these fields.
func NewJSON(fields []view.Field, keyFormat view.KeyFormat) *JSON {
	d := &JSON{fields: fields, keyFormat: keyFormat}
	for i := range fields {
		switch p := fields[i].Path; p.Origin {
		case view.InValue:
			d.root.grow(p.Names, i)
		case view.TheValue:
			d.root.fields = append(d.root.fields, i)
		}
	}
	return d
}

// Decode reads a record into dst, a value a field, null where there is none.
// The values share nothing with the record.
func (d *JSON) Decode(dst []view.Value, r *Record) error {
	clear(dst)
	d.dst = dst
	d.scan.b, d.scan.i, d.scan.depth = r.Value, 0, 0
	if framed(r.Value) {
		return bad("", "not JSON: begins like the framing of a schema registry (a zero byte and a schema id)")
	}
	if err := d.value(&d.root); err != nil {
		var own *Error
		if errors.As(err, &own) {
			return err
		}
		return bad("", "%v", err)
	}
	if d.scan.peek(); d.scan.i < len(r.Value) {
		return bad("", "%v after the value", d.scan.fail())
	}
	if err := outside(dst, d.fields, d.keyFormat, r); err != nil {
		return err
	}
	return require(dst, d.fields)
}

// value reads the value that the scanner stands on into what n wants of it.
func (d *JSON) value(n *node) error {
	c := d.scan.peek()
	if c == '{' && len(n.members) > 0 {
		return d.object(n)
	}
	from := d.scan.i
	for _, i := range n.fields {
		d.scan.i = from
		v, err := d.scalar(c, &d.fields[i])
		if err != nil {
			return err
		}
		d.dst[i] = v
	}
	if len(n.fields) > 0 {
		return nil
	}
	if err := d.scan.skip(); err != nil {
		return err
	}
	if n == &d.root && c != '{' {
		return bad("", "not a JSON object")
	}
	return nil
}

func (d *JSON) object(n *node) error {
	return d.scan.members(func(name []byte) error {
		if c := n.child(name); c != nil {
			d.blank(c) // of a name that occurs twice the last counts
			return d.value(c)
		}
		return d.scan.skip()
	})
}

// blank takes back what was read below n.
func (d *JSON) blank(n *node) {
	for _, i := range n.fields {
		d.dst[i] = view.Null
	}
	for _, m := range n.members {
		d.blank(m)
	}
}

func (d *JSON) scalar(c byte, f *view.Field) (view.Value, error) {
	var v view.Value
	var err error
	switch {
	case c == '"':
		text, serr := d.scan.text()
		if serr != nil {
			return v, serr
		}
		if d.scan.lone { // U+FFFD in its place would make equal keys of different ones
			return v, bad(f.Name, "not valid Unicode: half of a surrogate pair")
		}
		v, err = ofText(string(text), f.Type)
	case c == 't' || c == 'f' || c == 'n':
		w, serr := d.scan.word()
		if serr != nil || w == 'n' {
			return v, serr
		}
		v, err = view.ParseBool(w == 't', f.Type)
	case c == '{' || c == '[':
		kind := map[byte]string{'{': "an object", '[': "a list"}[c]
		if serr := d.scan.skip(); serr != nil {
			return v, serr
		}
		return v, bad(f.Name, "%s where %s is due", kind, f.Type.An())
	default:
		text, serr := d.scan.number()
		if serr != nil {
			return v, serr
		}
		v, err = view.ParseNumber(string(text), f.Type)
	}
	if err != nil {
		return view.Null, bad(f.Name, "%v", err)
	}
	return v, nil
}

// ofText reads a JSON text. Of the numbers a Long and a Decimal alone may be
// written as one, for their digits would not survive in a float64; to others it
// says what to do.
func ofText(text string, t view.Type) (view.Value, error) {
	v, err := view.ParseText(text, t)
	if err != nil && (t == view.Int || t == view.Float) {
		if _, nerr := view.ParseNumber(text, view.Decimal); nerr == nil {
			return v, fmt.Errorf("%w: the number must stand without quotes, or the field be declared Long or Decimal", err)
		}
	}
	return v, err
}
