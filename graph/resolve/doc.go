// Package resolve is what generated resolvers call: it turns a field's
// arguments into a read.Query, asks the views, and turns rows into the types of
// the schema. It knows no schema; generated code hands it what it must know.
//
//	scalar.go   Long, DateTime, Decimal, Duration, Fill on the wire
//	value.go    Go values of arguments and fields from and to view.Value
//	read.go     Lookup, Windows, Page, Top, Size
//	nested.go   reads below a row, for all rows of a list at once
//	watch.go    the same as subscriptions
//	batch.go    the reads of one operation travel together, and demand the same
//	fresh.go    Freshness in data and in extensions
package resolve
