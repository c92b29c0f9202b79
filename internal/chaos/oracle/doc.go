// Package oracle knows what was written, record by record, when it was sent and
// when it was acknowledged, and says whether an answer can be right. It is a
// plain fold and bounds; no clock, no network.
//
// A key whose records lie in one partition has a total order: its row at a
// count is one row, and every column must have that row's value. A key over
// several partitions has a range: between what was acknowledged before the
// moment that the answer claims and all that was sent.
//
//	event.go    Event: a record
//	ledger.go   Ledger: what was sent and acknowledged
//	fold.go     Totals, and the folds of a key's prefix
//	rows.go     Row, Hour: what an answer holds
//	check.go    one key's row and series
//	many.go     pages, rankings, sizes
package oracle
