package schema

import (
	"fmt"
	"slices"
	"strings"
)

// place is where in a schema a directive is written.
type place uint8

const (
	elsewhere place = iota // arguments, enum values, inputs, scalars, interfaces, unions
	onSource
	onTable
	onView
	onType // a type that is none of the three
	onRoot
	sourceField
	tableField
	viewField
	queryField
	subscriptionField
	mutationField
	typeField
)

var placeNames = map[place]string{
	elsewhere: "an argument, an input, an enum or a scalar", onSource: "a source", onTable: "a table", onView: "a view",
	onType: "a type", onRoot: "a root type", sourceField: "a source's field", tableField: "a table's field",
	viewField: "a view's field", queryField: "a field of Query",
	subscriptionField: "a field of Subscription", mutationField: "a field of Mutation",
	typeField: "a field of a type that is no view",
}

// form is what an argument of a directive takes.
type form uint8

const (
	text form = iota
	textList
	expression
	duration
	number
	boolean
	enum
)

// argument is one argument of a directive.
type argument struct {
	name     string
	form     form
	required bool
	values   []string // of an enum: those that work
	enum     string   // of an enum: its GraphQL type
	planned  []string // of an enum: those that do not work yet
	standard string   // the default, as written
}

// directive is one directive of the language.
type directive struct {
	name    string
	places  []place
	args    []argument
	planned []string // arguments that do not work yet
	help    string
}

// Places that share their directives.
var (
	columns    = []place{viewField}
	rootFields = []place{queryField, subscriptionField}
)

var (
	ofArg      = argument{name: "of", form: expression}
	whereArg   = argument{name: "where", form: expression}
	formatArg  = argument{name: "format", form: enum, enum: "RecordFormat", values: []string{"JSON"}, planned: []string{"AVRO", "PROTOBUF", "STRING", "INT", "LONG", "DOUBLE", "BYTES"}, standard: "JSON"}
	keyFormat  = argument{name: "keyFormat", form: enum, enum: "RecordFormat", values: []string{"STRING", "INT", "LONG"}, planned: []string{"JSON", "AVRO", "PROTOBUF", "DOUBLE", "BYTES"}, standard: "STRING"}
	partitions = argument{name: "partitioner", form: enum, enum: "Partitioner", values: []string{"MURMUR2", "CRC32", "FNV1A"}, standard: "MURMUR2"}
)

// language is every directive that works, in the order in which messages and
// the injected definitions name them.
var language = []directive{
	{name: "source", places: []place{onSource, onType}, help: "The records of a topic.",
		args:    []argument{{name: "topic", required: true}, {name: "time"}, {name: "key", form: textList}, keyFormat, formatArg, partitions},
		planned: []string{"unwrap", "each"}},
	{name: "table", places: []place{onTable, onType}, help: "The latest record of each key of a topic; global: whole on every instance.",
		args:    []argument{{name: "topic", required: true}, {name: "key", form: textList, required: true}, keyFormat, formatArg, partitions, {name: "global", form: boolean, standard: "false"}},
		planned: []string{"unwrap", "windowedKey"}},
	{name: "view", places: []place{onView, onType}, help: "A row per value of the columns that by names, in key order.",
		args:    []argument{{name: "from", form: textList, required: true}, {name: "by", form: textList, required: true}, whereArg},
		planned: []string{"expire"}},
	{name: "window", places: []place{onView}, help: "A row per key and window of event time.",
		args:    []argument{{name: "size", form: duration, required: true}, {name: "grace", form: duration, standard: `"0s"`}, {name: "retain", form: duration, required: true}},
		planned: []string{"advance"}},
	{name: "store", places: []place{onView, onTable}, help: "The name of the store and the scope that reading it needs.",
		args: []argument{{name: "name"}, {name: "scope"}}},
	{name: "field", places: []place{sourceField, tableField}, help: "Where in the record the field comes from: dots, $key, $value, $timestamp, $headers.x.",
		args: []argument{{name: "path", required: true}}},
	{name: "expr", places: []place{viewField, tableField}, help: "A key column from the record; any other from the row, when read.",
		args: []argument{{name: "of", form: expression, required: true}}},
	{name: "count", places: columns, help: "The number of records; with of, of those where it is not null.", args: []argument{ofArg, whereArg}},
	{name: "sum", places: columns, help: "The sum.", args: []argument{ofArg, whereArg}},
	{name: "avg", places: columns, help: "The average.", args: []argument{ofArg, whereArg}},
	{name: "min", places: columns, help: "The least.", args: []argument{ofArg, whereArg}},
	{name: "max", places: columns, help: "The greatest.", args: []argument{ofArg, whereArg}},
	{name: "first", places: columns, help: "The first by event time.", args: []argument{ofArg, whereArg}},
	{name: "last", places: columns, help: "The last by event time.", args: []argument{ofArg, whereArg}},
	{name: "quantile", places: columns, help: "The value below which the share q of all lie, within 1 %.", args: []argument{ofArg, {name: "q", form: number, required: true}, whereArg}},
	{name: "windowStart", places: columns, help: "The window's start."},
	{name: "windowEnd", places: columns, help: "The window's end, exclusive."},
	{name: "windowFinal", places: columns, help: "Whether nothing can change the window any more."},
	{name: "id", places: []place{viewField, tableField}, help: "The row's identity for client caches: key, start, end."},
	{name: "lookup", places: []place{viewField, tableField, queryField, subscriptionField}, help: "The row of a key, or the rows of a list of keys.", args: []argument{{name: "key", form: textList}}},
	{name: "windows", places: []place{viewField, tableField, queryField, subscriptionField}, help: "The windows of a key; merged into one row when no list is returned.", args: []argument{{name: "key", form: textList}}},
	{name: "range", places: rootFields, help: "A page of rows in key order."},
	{name: "top", places: rootFields, help: "The rows with the largest values of a column.", args: []argument{{name: "by", required: true}, whereArg}},
	{name: "size", places: rootFields, help: "The number of keys of a view.", args: []argument{{name: "of", required: true}}},
	{name: "resolver", places: []place{viewField, tableField, queryField, subscriptionField, mutationField, typeField}, help: "Your own Go method."},
}

// plannedDirectives are part of the language's design and do not work yet.
var plannedDirectives = []string{"session", "sessions", "join", "claim", "distinct", "aggregate"}

// plannedOption is a root argument that does not work yet.
const plannedOption = "changes"

// readDirective is for clients' documents: it is public, and nothing in the schema
// carries it.
const readDirective = "read"

// standardDirectives are GraphQL's own; its validation looks after them.
var standardDirectives = []string{"deprecated", "specifiedBy", "oneOf", "include", "skip", "defer"}

func findDirective(name string) *directive {
	for i := range language {
		if language[i].name == name {
			return &language[i]
		}
	}
	return nil
}

// directivesAt names the directives that a place allows; on a type that is a
// source, a table or a view those beside what makes it one.
func directivesAt(p place) string {
	var names []string
	for _, d := range language {
		if slices.Contains(d.places, p) && (p == onType || !slices.Contains(d.places, onType)) {
			names = append(names, "@"+d.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// homes describes the places that the directive is written on.
func (d *directive) homes() string {
	if slices.Contains(d.places, onType) {
		return placeNames[onType]
	}
	var names []string
	for _, p := range d.places {
		names = append(names, placeNames[p])
	}
	return oneOf(names)
}

func (d *directive) arg(name string) *argument {
	for i := range d.args {
		if d.args[i].name == name {
			return &d.args[i]
		}
	}
	return nil
}

func (d *directive) argNames() string {
	if len(d.args) == 0 {
		return "nothing"
	}
	names := make([]string, len(d.args))
	for i, a := range d.args {
		names[i] = a.name
	}
	return strings.Join(names, ", ")
}

// sdl is the GraphQL type of an argument.
func (a *argument) sdl() string {
	t := map[form]string{text: "String", expression: "String", textList: "[String!]", duration: "Duration", number: "Float", boolean: "Boolean", enum: a.enum}[a.form]
	if a.required {
		t += "!"
	}
	if a.standard != "" {
		t += " = " + a.standard
	}
	return t
}

// sdl is the directive's definition.
func (d *directive) sdl() string {
	args := make([]string, len(d.args))
	for i := range d.args {
		args[i] = d.args[i].name + ": " + d.args[i].sdl()
	}
	list := ""
	if len(args) > 0 {
		list = "(" + strings.Join(args, ", ") + ")"
	}
	on := "FIELD_DEFINITION"
	if d.places[0] < sourceField {
		on = "OBJECT"
	}
	return fmt.Sprintf("%q\ndirective @%s%s on %s\n", d.help, d.name, list, on)
}
