package poll

import (
	"errors"
	"net"

	"github.com/chert-http/chert/internal/sys"
)

// Key identifies a watched descriptor to its owner. It is part of every event,
// so that an event of a descriptor that has since been closed and reused can be
// distinguished from a fresh one. The all-ones key is the poller's own.
type Key uint64

const wakeKey = ^Key(0)

// Ready is the set of operations on a descriptor that are worth trying.
type Ready uint8

const (
	// Readable: Read will return bytes, an end of stream or an error.
	Readable Ready = 1 << iota
	// Writable: Write will accept bytes or return an error.
	Writable
	// PeerClosed: the peer will send no more; unread bytes may precede the end.
	PeerClosed
	// Hangup: the connection is dead in both directions.
	Hangup
)

// Event is one descriptor that has become ready.
type Event struct {
	Key   Key
	Ready Ready
}

// A Poller is the contract between a loop and the kernel. It is written as
// operations so that a readiness system (epoll, kqueue) and a completion system
// (io_uring) can both implement it:
//
//   - An operation (Accept, Read, Write) is tried immediately and returns its
//     result or EAGAIN. EAGAIN is a promise: one Event for that direction
//     follows from Wait, after which the operation is tried again. A readiness
//     system makes the system call in the operation; a completion system
//     submits it at EAGAIN and hands out the finished result at the next try.
//   - A Read that fills less than its buffer has drained the descriptor, unless
//     an event reported PeerClosed: later bytes cause a new Event. A Read that
//     fills its buffer may have left some unread, for which there is no Event.
//   - Events may be spurious: the operation then returns EAGAIN again.
//   - Add is called once in a descriptor's life; there is nothing to rearm.
//
// Wait, Share and Waits are called by the goroutine that drives the loop. Read, Write2, WriteMore,
// Remove and Wake may be called by any goroutine, but each direction of a descriptor by one at
// a time: its owner (see internal/conn). Only the loop closes descriptors.
type Poller interface {
	// Add watches fd until it is closed or removed.
	Add(fd int, key Key) error
	// Remove stops watching fd; events already fetched may still refer to it.
	Remove(fd int)
	// Wait fills events and returns how many. It returns immediately if some
	// are ready or until is Now; otherwise it waits until there are some, Wake
	// is called, or the clock of sys.Nanotime passes until. It may return 0
	// early. Other goroutines get the processor at least every millisecond, and
	// while it waits, except for waits that are expected to be short.
	Wait(events []Event, until int64) (int, error)
	// Share sets whether goroutines that the loop has started are at work. They
	// then need the processor more often.
	Share(others bool)
	// Waits is how often Wait has asked the kernel for events.
	Waits() uint64
	// Wake makes the current Wait, or the next one, return. After Close it does nothing.
	Wake()
	// Close releases the poller, once. The descriptors it watched stay open.
	Close() error

	Ops
}

// Ops are the operations on descriptors, each but Conn that of internal/sys with the same name.
type Ops interface {
	Accept(fd int) (nfd int, peer string, e sys.Errno)
	// Pending reports whether a connection waits to be accepted.
	Pending(fd int) bool
	// Connect begins to connect a new socket. After Add there is an Event with Writable, or
	// Hangup, when that has ended, and SocketError says how.
	Connect(to *sys.Remote) (fd int, e sys.Errno)
	SocketError(fd int) sys.Errno
	Read(fd int, p []byte) (int, sys.Errno)
	Peek(fd int) (int, sys.Errno)
	Write2(fd int, a, b []byte) (int, sys.Errno)
	// WriteMore writes p, which other bytes will follow immediately.
	WriteMore(fd int, p []byte) (int, sys.Errno)
	Sendfile(fd, file int, offset int64, n int) (int, sys.Errno)
	// Queued is how many written bytes the peer has not accepted.
	Queued(fd int) int
	CloseWrite(fd int)
	CloseBoth(fd int)
	SetReset(fd int)
	CloseFD(fd int)
	// Conn returns a duplicate of a connection's descriptor as package net's.
	Conn(fd int) (net.Conn, error)
	// Reserve opens a descriptor to close at EMFILE.
	Reserve() (int, error)
}

// Arguments of Wait.
const (
	Now   int64 = 0
	Never int64 = 1<<63 - 1
)

// ErrUnsupported is returned by New on systems without a poller.
var ErrUnsupported = errors.New("poll: no poller on this system")
