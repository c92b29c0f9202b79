// Package processor is the worker: it runs the tasks of a topology on one
// instance, keeps their stores exactly once, and answers reads of them. It knows
// nothing of GraphQL or of other instances' stores; a request that is not for
// what is held here is refused, never passed on.
//
// Each task has a loop, one goroutine, that alone changes its state. Records go
// into pending rows; a commit is one Kafka transaction that carries the changed
// rows, the commit record and the input's offset; only then a snapshot with them
// is published. Reads take snapshots and wait for nobody.
//
//	worker.go        Worker: what runs, assignments applied
//	config.go        Config
//	topics.go        topics needed, created, checked; RefusedError
//	membership.go    the group: what members tell, what the leader plans
//	assign.go        the plan, pure; standby.go its copies; memberdata.go its wire form
//	held.go          the copies that are here; warmup.go asking for what has warmed up
//	task.go          a task and its roles; state.go its states
//	copy.go          what a task keeps open through all of them
//	aim.go           where to go on in the changelogs
//	follow.go        restoring and following; lane.go one changelog of it
//	start.go         an owner's beginning; restore.go what it compares
//	loop.go          chunks, ticks, the end
//	source.go        records of a source topic; forward.go on to repartition topics
//	repartition.go   records of a repartition topic; envelope.go their form
//	marks.go         marks and trimming; streamtime.go what marks say
//	aggregate.go     pending rows
//	commit.go        transactions, fence, doubt; commitrecord.go the record
//	stuck.go         inputs that a transaction holds up
//	letters.go       bad records
//	expire.go        tombstones of expired windows
//	rank.go          rankings kept for @top
//	global.go        global tables
//	serve.go         reads: finding the snapshot; query.go, top.go answering
//	ends.go          ends of the sources, for the lag of copies
//	hub.go           watches
//	status.go        Status; metrics.go, collect.go metrics
//
// sim_test.go and its neighbours run clusters in virtual time against a plain
// fold: go test -run 'Simulation|CrashPoints' -seeds 100.
package processor
