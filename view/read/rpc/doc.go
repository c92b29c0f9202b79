// Package rpc is the read contract over gRPC: a Service answers for a local
// read.Instance, a Client is a remote one. Messages are MessagePack arrays of
// our own (codec.go), each with a format version in front, so that instances of
// neighbouring releases understand or refuse each other, and rows cross without
// another copy of their form. Peers may know each other by certificate.
//
//	service.go  the server's methods: Read, Watch
//	routes.go   Routes: the table of who holds what, and each newer one
//	hello.go    Hello: who answers at an address
//	status.go   Status: what an instance tells of itself, for people
//	client.go   Client
//	codec.go    the form of requests, answers and watches
//	tls.go      Identity: mutual TLS; files.go reads certificates again
package rpc
