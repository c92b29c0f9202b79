// Package bench measures what crosses packages: a GraphQL request from the edge
// to a store and back, beside an empty resolver behind gqlgen's own transport,
// in one run. Compare ratios only.
//
//	go test -bench . ./bench
//
// bench/kafka is a program of its own, for what takes a real Kafka and much data:
// make bench-kafka.
package bench
