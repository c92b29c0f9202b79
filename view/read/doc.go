// Package read is the contract of a read: what can be asked of the views, of
// one instance, and what comes back. It has no behaviour beyond what keeps the
// two sides honest.
//
// A caller asks a Query of Views and gets a Result. Views (the gateway) splits
// it into Requests, one a partition, asks an Instance each and merges the
// Answers. A missing key is an answer; everything else that keeps an answer
// from being whole is an Error with a Code, and never looks like an empty one.
//
//	query.go     Query, Result, Row: what a resolver asks, whole
//	instance.go  Request, Answer, Instance: one instance's share
//	watch.go     Interest, Event: what changed
//	routes.go    Routes: who holds what
//	token.go     Freshness and tokens
//	error.go     Error and its codes
package read
