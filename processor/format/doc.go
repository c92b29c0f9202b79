// Package format turns the bytes of records into values: a file a format. A
// decoder checks all of a record while it picks out the fields that a schema
// declares; anything that does not fit is an Error naming the field.
//
//	record.go  Record, Error, fields from key, timestamp and headers
//	json.go    JSON values: one pass, nothing through float64
//	scan.go    the JSON scanner
package format
