// Command kafka measures a worker on a real broker with 3,000,000 departures:
// how fast it takes them in, exactly once, beside a loop that only fetches and
// decodes; how fast it restores, beside a loop that only fetches the same
// changelogs; what commits, checkpoints and idling cost; what a million keys
// take. It prints a table of figures and of ratios within the run. Figures are
// of one machine at one time; ratios are what to compare.
//
// The worker runs in this process, the broker in another: processor time is this
// process's alone.
//
//	main.go      flags, phases
//	cluster.go   the broker and its topics
//	data.go      the departures, and loading them
//	worker.go    a worker, and waiting for it
//	bare.go      the loops that only fetch, or only fetch and decode
//	ingest.go restore.go commit.go idle.go reads.go   the phases
//	measure.go   processor time, memory, profiles
//	report.go    the table
package main
