// Package timer implements a hierarchical timing wheel: the deadlines of one loop.
//
// Arming, re-arming and stopping a timer take constant time, whatever the number
// of timers. A server re-arms a deadline for nearly every request and lets almost
// none of them expire, which is the best case of a wheel and the worst of a heap.
// The scheme is number 7 of G. Varghese and T. Lauck, "Hashed and hierarchical
// timing wheels: data structures for the efficient implementation of a timer
// facility", Proc. 11th ACM Symposium on Operating Systems Principles, 1987.
//
// A Wheel and its nodes belong to one goroutine at a time and nothing in here
// is locked.
package timer

// The package does no I/O and reads no clock: its owner passes the time. It must
// not know what a timer is for: its ID tells the owner.
//
// It imports the standard library only. The loop may import it, and the packages
// above the loop.
