// Package buf lends byte buffers from pools by size class.
//
// # Ownership
//
// A buffer has one owner at a time: whoever called Get, or whoever it was
// handed to. The owner alone may touch B and must call Release exactly once.
// A buffer may be released by another goroutine than the one that took it, if
// something orders the two (a mailbox, a channel, a lock).
//
// Released memory goes back uncleared. The bytes beyond len(B) of a fresh
// buffer are those of an earlier owner, perhaps of another client: never
// reslice B upward except over bytes that were just read into it.
//
// A buffer that is never released is not lost for ever, the collector takes
// it, but it stays in Live; tests compare Live before and after.
//
// # Cost
//
// Get and Release allocate nothing in steady state. The pools are sync.Pools:
// one list per processor, emptied over two collections, so an idle server
// gives its buffers back to the system without a timer of ours.
//
// # Order
//
// This package knows no connection, no loop and no codec, and it imports the
// standard library only. The loop and everything above it may import it
// (loop, conn, tlsio, stream, bridge, the root); codecs may not: they are
// handed bytes.
package buf
