package view

import "fmt"

// Bounds are a row's window: the zero Bounds of a row that has none.
type Bounds struct {
	Start, End int64 // ms, end exclusive
	Final      bool  // nothing can change the row any more
}

// Finish computes a row's columns from its key and its cells: one value a
// column, in the order of the view's columns. dst is reused when it has room.
func (v *View) Finish(dst, keys []Value, cells []Cell, w Bounds) ([]Value, error) {
	dst = append(dst[:0], make([]Value, len(v.Columns))...)
	v.frame(dst, keys, w)
	for i := range v.Columns {
		if c := &v.Columns[i]; c.Role == AggRole {
			val, err := c.Agg.Value(&cells[i], c.Type)
			if err != nil {
				return nil, fmt.Errorf("column %s.%s: %w", v.Name, c.Name, err)
			}
			dst[i] = val
		}
	}
	return dst, v.express(dst)
}

// FinishFields is Finish for a table's row, whose values DecodeFields left in
// dst.
func (v *View) FinishFields(dst, keys []Value) error {
	v.frame(dst, keys, Bounds{})
	return v.express(dst)
}

// Blank is a row that nothing fell into: its key and bounds, and null wherever
// a column may be null.
func (v *View) Blank(keys []Value, w Bounds) ([]Value, error) {
	cells := make([]Cell, len(v.Columns))
	dst, err := v.Finish(nil, keys, cells, w)
	if err != nil {
		return nil, err
	}
	for i := range v.Columns {
		if c := &v.Columns[i]; !c.NonNull && (c.Role == AggRole || c.Role == ExprRole) {
			dst[i] = Null
		}
	}
	return dst, nil
}

// frame fills in what does not come from the row: keys, bounds, identity.
func (v *View) frame(dst, keys []Value, w Bounds) {
	for k, i := range v.Keys {
		dst[i] = keys[k]
	}
	for i := range v.Columns {
		switch v.Columns[i].Role {
		case StartRole:
			dst[i] = OfTime(w.Start)
		case EndRole:
			dst[i] = OfTime(w.End)
		case FinalRole:
			dst[i] = OfBool(w.Final)
		case IDRole:
			dst[i] = OfString(Identity(keys, v.Window != nil, w.Start, w.End))
		}
	}
}

func (v *View) express(dst []Value) error {
	for i := range v.Columns {
		c := &v.Columns[i]
		if c.Role != ExprRole {
			continue
		}
		val, err := c.Expr(dst)
		if err == nil {
			val, err = Convert(val, c.Type)
		}
		if err != nil {
			return fmt.Errorf("column %s.%s: %w", v.Name, c.Name, err)
		}
		dst[i] = val
	}
	return nil
}
