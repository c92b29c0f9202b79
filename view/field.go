package view

// Field is a field of a source or of a table's record, and where it is found.
type Field struct {
	Name    string
	Type    Type
	NonNull bool
	Path    Path
}

// Origin is the part of a record that a path begins in.
type Origin uint8

// The origins of a path.
const (
	InValue   Origin = iota // Names lead into the value
	TheValue                // $value
	TheKey                  // $key; Names may lead into it
	TheTime                 // $timestamp
	TheHeader               // $headers.x; Names has the one name, dots and all
)

// Path says where in a record a field comes from.
type Path struct {
	Origin Origin
	Names  []string
}
