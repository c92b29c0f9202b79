// Package gateway answers queries over all instances: it splits them into one
// request a partition, sends them to the owners in one call an instance, falls
// back to other copies where owners are away, and merges the answers. It
// knows nothing of GraphQL and nothing of stores; it sees instances through
// read.Instance, the local one as the others.
//
// See DESIGN.md beside this file for the flow, the rules and the file map.
package gateway
