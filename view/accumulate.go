package view

import "fmt"

// Accumulate takes one record into a row's cells. It is all or nothing: a
// record that does not fit one column changes none. scratch has a place a
// column and is reused.
func (v *View) Accumulate(cells []Cell, fields []Value, at Place, scratch []Value) error {
	for i := range v.Columns {
		c := &v.Columns[i]
		if c.Role != AggRole {
			continue
		}
		val, err := c.Agg.input(fields)
		if err == nil {
			err = c.Agg.fits(&cells[i], val)
		}
		if err != nil {
			return fmt.Errorf("column %s.%s: %w", v.Name, c.Name, err)
		}
		scratch[i] = val
	}
	for i := range v.Columns {
		if c := &v.Columns[i]; c.Role == AggRole {
			if err := c.Agg.Add(&cells[i], scratch[i], at); err != nil {
				return fmt.Errorf("column %s.%s: %w", v.Name, c.Name, err)
			}
		}
	}
	return nil
}

// input is the value that a record brings to the aggregate; null: none. A
// count of records sees true.
func (a *Agg) input(fields []Value) (Value, error) {
	if a.Where != nil {
		ok, err := a.Where(fields)
		if err != nil || !ok.Bool() {
			return Null, err
		}
	}
	if a.Of == nil {
		return OfBool(true), nil
	}
	return a.Of(fields)
}

// fits says in advance whether Add would refuse the value.
func (a *Agg) fits(c *Cell, v Value) error {
	if v.IsNull() || c.N == 0 {
		return nil
	}
	if a.Fn == Sum || a.Fn == Avg {
		_, err := Plus(c.V, v)
		return err
	}
	return nil
}
