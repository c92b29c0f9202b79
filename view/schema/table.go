package schema

import (
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/streamgauge/streamgauge/view"
)

// addTable compiles a global table: its key column comes from the record's
// key, the others from the value.
func (c *compiler) addTable(def *ast.Definition) {
	d := def.Directives.ForName("table")
	r := c.newRow(def, d)
	v := r.view
	v.Table, v.Global = true, true
	v.Topic = stringOf(d, "topic")
	v.KeyFormat, v.Partitioner = keyFormatOf(d), partitionerOf(d)
	r.table = &Table{View: v, Topic: v.Topic}
	c.checkTopic(d)
	c.checkGlobal(d)
	key := c.tableKey(r)
	for _, f := range def.Fields {
		c.addTableField(r, f, f.Name == key)
	}
	if key != "" && v.Column(key) < 0 {
		c.mistakes.add(argAt(d, "key"), "key: %s has no field %q that a key can be; fields: %s", def.Name, key, r.scope().names())
		r.broken = true
	}
	c.finishRow(r)
	c.topology.Tables = append(c.topology.Tables, r.table)
}

func (c *compiler) checkGlobal(d *ast.Directive) {
	a := d.Arguments.ForName("global")
	if a == nil {
		c.mistakes.add(directiveAt(d), "a @table that is not global is not supported yet; allowed: global: true")
	} else if a.Value.Kind == ast.BooleanValue && a.Value.Raw != "true" {
		c.mistakes.add(a.Value.Position, "a @table that is not global is not supported yet; allowed: global: true")
	}
}

// tableKey is the name of the key column, "" where there is none to go by.
func (c *compiler) tableKey(r *rowDef) string {
	list, given := listOf(r.dir, "key")
	if !given {
		r.broken = true
		return ""
	}
	if len(list) != 1 {
		c.mistakes.add(argAt(r.dir, "key"), "key of @table must be one field; keys of several are not supported yet")
		r.broken = true
		return ""
	}
	return list[0].Raw
}

func (c *compiler) addTableField(r *rowDef, f *ast.FieldDefinition, isKey bool) {
	role := c.roleOf(r, f)
	if role == nil {
		return
	}
	if isKey && role.dir != nil && role.dir.Name != "field" {
		c.mistakes.add(directiveAt(role.dir), "%s is the key, it cannot have @%s too", f.Name, role.dir.Name)
		r.broken = true
		return
	}
	if role.dir != nil && role.dir.Name != "field" {
		c.addColumn(r, role)
		return
	}
	field, ok := c.recordField(f, r.view.KeyFormat)
	if !ok {
		r.breakColumn(f.Name)
		return
	}
	col := view.Column{Name: f.Name, Type: field.Type, NonNull: field.NonNull, Role: view.FieldRole}
	if isKey {
		col.Role = view.KeyRole
		c.checkKeyName(f)
		c.tableKeyField(r, f, role.dir, &field)
	}
	r.meaning[f.Name] = pathText(field.Path)
	r.view.Columns = append(r.view.Columns, col)
	r.table.Fields = append(r.table.Fields, field)
	r.table.Column = append(r.table.Column, len(r.view.Columns)-1)
	if isKey {
		r.view.Keys = []int{len(r.view.Columns) - 1}
	}
}

// tableKeyField wants the key column from $key, where a deletion has it too.
func (c *compiler) tableKeyField(r *rowDef, f *ast.FieldDefinition, d *ast.Directive, field *Field) {
	if v := textOf(d, "path"); v != nil && v.Raw[0] != '$' {
		c.mistakes.add(valueAt(v), "%s is the key, it comes from $key; allowed: no @field, or path: \"$key\"", f.Name)
	}
	field.Path = Path{Origin: TheKey}
	if !f.Type.NonNull {
		c.mistakes.add(typeAt(f.Type), "%s is the key, it must be %s!", f.Name, f.Type)
	}
	if err := keyHolds(r.view.KeyFormat, field.Type); err != nil && textOf(d, "path") == nil {
		c.mistakes.add(typeAt(f.Type), "%s", err)
	}
}
