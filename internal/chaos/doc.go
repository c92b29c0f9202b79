// Package chaos runs instances as processes over real brokers, breaks them while
// records come in and many ask, and follows every answer with the oracle. What
// is broken, and when, follows from a seed.
//
// Each instance has ways of its own to every broker and to the other instances:
// proxies in this process, so that each can be cut. Faults hit one instance or
// one broker at a time, and the cluster gets time to be whole between them: what
// is promised of reads holds while one copy of each task is in reach.
//
// The command is internal/chaos/cmd; make chaos runs it.
//
//	config.go     Config
//	run.go        Run: one run from start to verdict
//	plan.go       Plan: the faults that follow from a seed
//	faults.go     what each fault does
//	brokers.go    Kafka's processes; admin.go its leaders
//	instance.go   an instance's process; cluster.go all of them, and whole or not
//	network.go    the proxies
//	feed.go       the records; data.go where they come from
//	client.go     readers: one client; reads.go what they ask; ask.go one request
//	demand.go     @read and tokens; secure.go TLS and SASL
//	watch.go      subscriptions; stream.go their two transports
//	final.go      the comparison at the end
//	report.go     counts, closing line; trail.go what leads to the cause
package chaos
