// Package broker is the worker's Kafka client: fetch loops, an idempotent
// producer, transactions that carry a group's offsets, group membership with an
// assignor of one's own, and what administration an application needs. It knows
// nothing of tasks, stores or schemas.
//
// SASL's exchange and the pool of connections are kafka-go's Transport.
// Everything above is here, because what matters is wrong or missing there: the
// requests are written and read in the API versions named in exchange.go, all
// within what Kafka 4.x accepts, and record batches by this package's codec.
//
// # Rules
//
//   - Constructors start nothing. Fetcher, Producer and Member run in Run(ctx) and
//     return after their goroutines; Client.Close ends every connection.
//   - Every request has a deadline. A call whose context has none is bounded by
//     three request timeouts, except Transaction.Init, which waits for its context.
//   - A request that ends unanswered is told apart from one never sent. Only what
//     is safe to repeat is repeated; a transaction is in doubt instead.
//   - Offsets and positions are next-to-read, ends exclusive. A batch counts up to
//     its last offset, not its last record: brokers keep the last offsets of a log
//     in some batch, if an empty one, so a position reaches the end of any log.
//   - Nothing shared by clients can change, so that they work in synctest bubbles.
//
// # Files
//
//	client.go       Config, Client, Ping
//	secure.go       TLS; what a failed connection means, and what to do
//	sasl.go         the SASL mechanisms, with secrets that may change
//	access.go       what Kafka's ACLs allow, asked beforehand
//	exchange.go     API versions; one request on a pooled connection; resets
//	retry.go        what is repeated, how often; complaints.go what is told, how often
//	wire.go         primitive types of the protocol, plain and flexible
//	errors.go       Error, sentinels, Retriable; codes.go lists Kafka's codes
//	metadata.go     cluster metadata, leaders
//	coordinator.go  coordinators of groups and transactions
//	topics.go       create, delete, configurations, delete records
//	offsets.go      ends of partitions, offsets of groups
//	opentxn.go      transactions that hold a partition up
//	groups.go       describe and delete groups
//	record.go       a record and its headers
//	batch.go        record batch layout and builder
//	decode.go       record batch decoder
//	codec.go        compressions
//	chunk.go        one partition's answer; aborted transactions
//	fetcher.go      partitions being fetched: routing, delivery, trouble
//	node.go         the two fetch loops of a leader; the fetch request
//	produce.go      the produce request; producer ids
//	queued.go       batches that wait, and whose they are
//	producer.go     the shared idempotent producer
//	txn.go          Transaction; txnrun.go the steps of one commit
//	member.go       group membership: states, heartbeats; join.go joining
//	subscription.go member metadata and assignments on the wire
package broker
