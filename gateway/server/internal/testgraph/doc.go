// Package testgraph is a small generated schema that the tests of
// gateway/server run behind its transports: lists, errors of every kind, and
// subscriptions that end, never end, or are large.
package testgraph

//go:generate go run github.com/99designs/gqlgen generate
