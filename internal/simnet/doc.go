// Package simnet is a network in memory, for tests that run clusters in the
// virtual time of a testing/synctest bubble: byte streams with a latency that a
// seed decides, and hosts that can be killed or frozen.
//
// A host stands for a process. What a dead host sends reaches nobody, and what a
// frozen one does has no effect until it thaws, while its code runs on: the
// nearest that one process can come to kill -9 and to SIGSTOP of another.
//
// Nothing here waits but on channels and timers, so a bubble's time can advance;
// no lock is held across a wait. Everything belongs to the bubble that made it.
package simnet
