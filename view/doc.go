// Package view is the vocabulary of materialized views: values, ordered keys,
// partitions, rows, mergeable aggregates and windows.
//
// It is pure: no I/O, no clock, no goroutine. Everything that decides what a
// number in an answer is worth lives here, and can be tested by table and by
// fuzzing.
//
//	value.go       Value and Type: what a column holds, exact integers and decimals
//	parse.go       values from texts and JSON numbers, values to JSON
//	field.go       Field, Path: what a record's field is and where it is found
//	view.go        View, Column: a view as declared, compiled
//	key.go         ordered tuples: the bytes of a row's key
//	partition.go   which partition a key's bytes belong to
//	cell.go        Cell: the mergeable state of one aggregate column
//	accumulate.go  a record into the cells of a row
//	row.go         rows as MessagePack maps by column name
//	finish.go      state to the columns of an answer
//	window.go      windows, calendar steps, zones, fills
package view
