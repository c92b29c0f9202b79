// Package server is the edge: GraphQL over HTTP, websockets and event streams,
// around any gqlgen executable schema, with who may ask, how much, and what
// they are told when it goes wrong. It knows no view; resolvers do.
//
// It executes operations itself instead of through gqlgen's handler, whose
// transports hold connections for stalled clients and echo what they could not
// read, and whose pipeline costs more than a local read does.
//
//	config.go     Config, New; server.go the routes, Serve and draining
//	limits.go     Limits and their defaults
//	http.go       /graphql: method, origin, who asks, how often
//	post.go get.go stream.go   the transports: POST, GET, server-sent events
//	socket.go socketops.go     graphql-transport-ws
//	decode.go     a request from JSON; negotiate.go the media types
//	document.go   parsed and validated documents, cached
//	shape.go      what a document asks for, counted before it is validated
//	execute.go    operation contexts, execution, responses
//	present.go    errors and their codes; refuse.go refusals of requests
//	rate.go address.go         request rates, client addresses
//	health.go metrics.go       for those who watch us
package server
