// Package proxy is a TCP proxy that breaks what passes through it on demand, so
// that tests can cut, reset or slow down the way between two processes. It runs
// on the loopback and knows nothing of what it carries.
//
// A rule holds for all connections or for those of one origin; who is at the
// other end of a connection, a function given at the start tells. Rules change
// at any time, for connections that are open, too.
package proxy
