// Package rpc is the read contract over gRPC: a Server answers for a local
// read.Instance, a Client is a remote one. Messages are MessagePack arrays of
// our own (codec.go), each with a format version in front, so that instances of
// neighbouring releases understand or refuse each other, and rows cross without
// another copy of their form.
package rpc
