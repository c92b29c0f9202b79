// Package schema is the schema language: it reads an annotated GraphQL file,
// checks it and compiles it to the Topology that the workers run and the API
// reads.
//
// It never reads a topic, a clock or a configuration, and knows nothing of
// generated code. Every mistake of a file is reported in one pass, as
// file:line:column: what is wrong, what is allowed.
//
//	load.go         Load, Schema: from text to a checked schema
//	mistake.go      Mistake, Mistakes: what is wrong, where
//	language.go     the directives and their arguments: one table of what there is
//	arguments.go    directives and arguments of a file against that table
//	compile.go      the passes over the types of a file, in their order
//	types.go        definitions and type references: known, unique, where they belong
//	source.go       @source: a topic's records
//	path.go         @field: where in a record a field comes from
//	table.go        @table: the latest record of each key
//	rows.go         @view: key, window, store
//	column.go       the roles of columns; @expr and the window's bounds
//	aggregate.go    what each aggregate takes and gives
//	read.go         the fields that read views: @lookup, @windows, @range, @top, @size
//	readargs.go     the arguments of such fields
//	shape.go        the forms in which they return: rows, lists, connections, wrappers
//	place.go        which task keeps which view: subtopologies and repartitions
//	fingerprint.go  hashes of what rows and records mean
//	topology.go     Topology: the result
//	describe.go     a topology as text
//	inject.go       what every schema is given: scalars, types, directives
//	public.go       the schema as clients see it
//	print.go        a schema as text
//	expr.go         the expression language: parse, scope, result
//	exprcheck.go    expressions to typed nodes
//	exprops.go      operators
//	exprcompare.go  comparisons
//	exprnum.go      exact arithmetic
//	exprfunc.go     functions
package schema
