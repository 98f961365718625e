// Package buf provides byte buffers from pools by size class.
//
// # Ownership
//
// A buffer has one owner at a time: the caller of Get, until it hands the buffer
// on. Only the owner may touch B, and it must call Release exactly once. A buffer
// may be released by a different goroutine from the one that got it, if something
// orders the two (a mailbox, a channel, a lock).
//
// Released memory is not cleared. The bytes beyond len(B) of a fresh buffer are
// those of an earlier owner, perhaps of another client: never reslice B upward
// except over bytes that were just read into it.
//
// A buffer that is never released is not leaked, since the garbage collector
// reclaims it, but it stays counted in Live; tests compare Live before and after.
//
// # Cost
//
// Get and Release allocate nothing in steady state. The pools are sync.Pools:
// one list per processor, emptied over two collections, so an idle server
// returns its buffers to the system without a timer of its own.
package buf

// This package knows no connection, no loop and no codec, and it imports the
// standard library only. The loop and everything above it may import it
// (loop, conn, tlsio, stream, bridge, the root); codecs may not: they receive
// byte slices.
