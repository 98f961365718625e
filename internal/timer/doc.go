// Package timer is a hierarchical timing wheel: the deadlines of one loop.
//
// Arm, re-arm and stop take constant time, whatever the number of timers. A
// server re-arms a deadline for nearly every request and lets almost none of
// them expire, which is the case a wheel is best at and a heap is worst at.
// The scheme is number 7 of G. Varghese and T. Lauck, "Hashed and hierarchical
// timing wheels: data structures for the efficient implementation of a timer
// facility", Proc. 11th ACM Symposium on Operating Systems Principles, 1987.
//
// The package does no I/O and reads no clock: its owner tells it the time. It
// must not know what a timer is for; Node.Key leads the owner back to that.
// A Wheel and its nodes belong to one goroutine at a time and nothing in here
// is locked.
//
// It imports the standard library only. The loop may import it, and what is
// above the loop.
package timer
