// Package gen generates a project's Go code from its schema: gqlgen's executor
// and models for the public schema, and beside them the resolvers of every
// field that reads a view (views_gen.go). It works in a temporary folder, builds
// the result there, and only then puts it in place: a schema or a resolver that
// does not build changes nothing. It never imports generated code.
//
//	gen.go       Generate: load, generate, build, swap
//	plugin.go    the gqlgen plugin: what is a resolver, what types mean
//	write.go     views_gen.go: makers, resolvers, complexity
//	body.go      the body of one resolver
//	custom.go    fields with @resolver: found, or started for the user
package gen
