package conn

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/sys"
)

// A Session is the protocol spoken on a Link. The Link's owner calls it, so its
// methods never run at the same time; PeerGone and Late are the exceptions. None
// of them may wait, but user code under Enter may, and so may Serve.
type Session interface {
	// Data consumes what it can of the Link's Buffered bytes, starts runs of user
	// code and sends answers, and says what is to happen next. It is called when
	// there are more bytes than at its last return, when the peer has sent all it
	// will (eof), and, after Requeue, Wait or a stalled queue, with the bytes at
	// hand, which may be none.
	Data(eof bool) Next
	// Serve is the run that Data has handed to Go, on the goroutine that owns the
	// Link from now on. It says what Data would.
	Serve() Next
	// Writable is called on a shared Link when the queue has fallen below its
	// low-water mark after Queue has said that it is full.
	Writable() Next
	// Expired is called when the time of SetDeadline has come.
	Expired() Next
	// Drain is called, perhaps repeatedly, when the server is shutting down or
	// others need the connection's place, since a time of sys.Nanotime, and all
	// that the peer has sent has been given to Data.
	Drain(since int64) Next
	// Since is since when the peer has been waited for, of sys.Nanotime like now,
	// about. It is called while it is: with nothing Buffered for a request to
	// begin, else for the rest of one. On a shared Link a negative value says that it
	// is not: Runs are under way, or answers.
	Since(now int64) int64
	// Late is called when user code under Enter has been seen to hold a loop for
	// some time, at least held: while it goes on, if it has just cost the loop its
	// driver, and held is loop.Overstay or more; else by Leave. Any goroutine may
	// call it; Leave returns after it.
	Late(held time.Duration)
	// PeerGone is called while user code owns the Link, when the peer is gone: by
	// a reset, or by closing its side with all it sent already read from the
	// socket. Any goroutine may call it.
	PeerGone(reset bool)
	// Closed is called once, after the connection's end, or its hijacking.
	Closed(hijacked bool)
}

// Next is what a Session wants done with its Link.
type Next uint8

const (
	// More: call Data when more has come.
	More Next = iota
	// Requeue: call Data again after other connections have had their turn.
	Requeue
	// Wait: call Data when the slot that AcquireSlot waits for has been given.
	Wait
	// Pause, on a shared Link: read no more, and call Data when the queue is below its
	// low-water mark, after Writable. For a peer that sends and does not read.
	Pause
	// Close: close when all that was queued has been sent.
	Close
	// Linger: then send FIN, and close when the peer has closed or a short time
	// has passed. For a peer that may still be sending: closing over unread bytes
	// sends a reset, and a reset can destroy an answer that the peer has not read
	// yet (RFC 9112 section 9.6).
	Linger
	// Reset: drop what is unsent and send RST, for a peer that takes nothing.
	Reset
	// Elsewhere: Go has given the Link to another goroutine; the caller must not
	// touch it any more.
	Elsewhere
	// Detached: Hijack has given the connection away.
	Detached
	// Lost: StartHere has cost the caller its loop, and with it the Link, which must
	// not be touched any more.
	Lost
)

// A Run is one execution of user code beside others on the same Link, while the
// Link's owner goes on reading.
type Run interface {
	// Run runs the user code. It may block, and reaches the Link only by Queue
	// and Post.
	Run()
	// Done is called by the Link's owner after Run has returned, unless the
	// connection has ended.
	Done() Next
}

// A Link is the bytes of one connection, in both directions. It knows no
// protocol. Methods are for the Link's owner (the goroutine that calls the
// Session, or runs its Serve) and for goroutines that the owner synchronises
// with, unless they say otherwise. One goroutine may read while another writes.
type Link interface {
	// Buffered returns the bytes that were received and not consumed; valid until
	// the next call of another reading method. Discard consumes n of them.
	Buffered() []byte
	Discard(n int)
	// Fill waits for at least one byte more to be Buffered.
	Fill() error
	// Read is io.Reader's; Buffered bytes come first.
	Read(p []byte) (int, error)
	// Unread makes p, the end of what Read has just given, Buffered again. p is
	// copied.
	Unread(p []byte)

	// Send sends w, or queues what the socket does not take. It never waits on a
	// loop. An error is the connection's end. w itself is not kept.
	Send(w *Write) error
	// Write sends a and then b. It returns when all has been sent or queued, and
	// waits while the queue is above its high-water mark.
	Write(a, b []byte) error
	// Queue is Send for goroutines that are not the owner, on a shared Link; p is
	// copied. It never waits, and reports that the queue is above its high-water
	// mark, in which case Session.Writable is called later; until the queue is
	// below the mark, Queue takes nothing and gives ErrFull. It fails once the
	// Session has said that the connection is to end. What Send, Write and Queue
	// are given is never mixed.
	Queue(p []byte) (full bool, err error)
	// Share makes Queue usable. It is called before any other goroutine uses it.
	Share()
	// Stalled reports whether bytes wait for the peer to take them, or for their
	// turn.
	Stalled() bool
	// Unsent tells what has become of the bytes that were given to Send, Write and
	// the like: how many wait for the peer, or for their turn, and how many were
	// lost, for they will never be sent.
	Unsent() (waiting, lost int64)
	// Follow has f told when nothing waits any more of what was given so far. It
	// may be at once, by the caller.
	Follow(f Follower)
	// SendFile sends up to n bytes of f without copying them to user space, and
	// waits as Write does: from the given offset, or with -1 from its current
	// one, which moves then. ok is false when that cannot be done here; nothing
	// has been sent then.
	SendFile(f File, offset, n int64) (sent int64, ok bool, err error)
	// CanRelay reports whether SendRelay works here.
	CanRelay() bool
	// SendRelay sends what r holds, which is not nothing, and waits as Write does.
	SendRelay(r *Relay) (sent int, err error)

	// Enter begins user code that has the Link to itself, on the caller's
	// goroutine, which may be a loop's: then it costs that loop its driver if it
	// waits or takes long. It reports false if the connection is being closed;
	// Leave must not be called then. Leave ends it, and the deadlines it has set. On
	// a loop it is called within Data, a Run's Done or what Post was given, and
	// nowhere else.
	Enter() bool
	Leave()
	// Abandon ends what Enter began for a goroutine that is about to end itself
	// (runtime.Goexit), and closes the connection.
	Abandon()
	// OnLoop reports whether the caller is driving an event loop. Go then hands
	// the Link to Session.Serve on a pooled goroutine and reports true; the
	// caller must return Elsewhere. It reports false where the caller's goroutine
	// may block anyway.
	OnLoop() bool
	Go() bool
	// Inline reports, during Enter, whether the loop is still held.
	Inline() bool
	// Yield comes before a wait of user code that is not for the peer: a loop that it
	// runs on goes on without it.
	Yield()
	// Waited reports whether the user code of the last Enter had to wait for the
	// peer, or may have had to: how long it took is the peer's doing then.
	Waited() bool
	// Start runs r beside others, on a goroutine.
	Start(r Run)
	// StartHere runs r beside others on the goroutine that drives the loop, within
	// Data, a Run's Done or what Post was given: OnLoop says that there is one. When
	// it returns true the loop is still the caller's, who calls Done. Otherwise r has
	// waited or has taken long, and the loop has gone on without it, with another Data
	// for the bytes at hand; Done is called as after Start, and the caller returns Lost.
	// h is r's own, and not to be moved.
	StartHere(r Run, h *Here) (kept bool)
	// Post calls f on the owner's side, one call after another with the
	// Session's methods, unless the connection ends before. Safe for concurrent
	// use.
	Post(f func() Next)
	// AcquireSlot takes a slot of s for the Link. After Queued the Session
	// returns Wait.
	AcquireSlot(s *Semaphore) Admission
	// WithdrawSlot ends a Queued AcquireSlot; the slot is not given any more.
	WithdrawSlot(s *Semaphore)

	// SetDeadline makes Session.Expired called at a time of sys.Nanotime, unless
	// another deadline is set before; 0 is none.
	SetDeadline(ns int64)
	// SetReadDeadline and SetWriteDeadline bound the calls that wait, now and
	// later, until Leave. Zero is no deadline. Safe for concurrent use.
	SetReadDeadline(t time.Time)
	SetWriteDeadline(t time.Time)
	// WatchPeer makes sure that PeerGone will be called, once the peer's bytes
	// are all read, and reports whether the peer is gone already. Any goroutine
	// may call it between Enter and Leave. Nothing may be read from then on until
	// Leave.
	WatchPeer() (gone bool)
	// Hijack gives the connection away, with the bytes that were received and not
	// consumed. The Session's methods must then return Detached.
	Hijack() (net.Conn, []byte, error)
	// Switch replaces the Session, which returns Requeue. The bytes that were not
	// consumed are the new one's.
	Switch(s Session)
	// SetLayer puts a Layer between the socket and the Session. Bytes that are
	// Buffered go through it first. What was sent before goes out without it; it is
	// an error if the peer has not taken that yet.
	SetLayer(l Layer) error

	// Now is the time of sys.Nanotime, or a little before it if that can be told
	// without asking the clock. Not between Enter and Leave.
	Now() int64
	// Peer is the remote address as Request.RemoteAddr has it.
	Peer() string
	// LocalAddr and RemoteAddr are safe for concurrent use.
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
	// NetConn stands for the connection in hooks. It is equal at each call.
	NetConn() net.Conn
}

// ErrFull is what Link.Queue gives when it has taken nothing.
var ErrFull = errors.New("conn: the queue is full")

// Write is something to be sent: A, then B, then Len bytes of File.
type Write struct {
	A, B        []byte
	File        *os.File // a regular file; nil with Len 0
	Offset, Len int64
	// Holder owns A, B and File, and may own this Write, until it is released. Without one, bytes that
	// have to wait are copied, and there must be no File.
	Holder Holder
	// Cork: another answer is likely to follow at once. On a loop these bytes may
	// wait for it, until Data returns or the loop is lost.
	Cork bool
	// Deadline is when to give up on a peer that does not take the bytes, of
	// sys.Nanotime; 0 is none. Limits.WriteStall holds too.
	Deadline int64
}

// A Holder owns what is being sent.
type Holder interface {
	// Check is called before sending goes on that had to wait for the peer. An
	// error ends the connection.
	Check() error
	// Release is called once, when all has been sent or the connection has
	// failed, by any goroutine and without a lock of the Link.
	Release()
}

// A Follower is told how the sending of what was given to a Link has ended.
type Follower interface {
	// Sent is called once, with how many of the bytes until then, counted from the
	// connection's beginning, have not been sent and will not be. Any goroutine
	// calls it, without a lock of the Link's; it must not wait, nor use the Link.
	Sent(lost int64)
}

// A Layer transforms all bytes of a connection: TLS. Its methods are called by
// one goroutine at a time, Open beside Seal.
type Layer interface {
	// Open appends the plaintext of the whole records at the start of src to
	// dst, and says how many bytes of src it has used. io.EOF says that the peer
	// will send no more.
	Open(dst, src []byte) (out []byte, n int, err error)
	// Seal appends records with the plaintext p to dst. p is at most MaxPlain
	// bytes.
	Seal(dst, p []byte) []byte
	// Close appends what tells the peer that no more is sent.
	Close(dst []byte) []byte
	// Conn makes the layer a net.Conn over nc, for Hijack. raw was read from nc
	// and not yet opened.
	Conn(nc net.Conn, raw []byte) net.Conn
}

// MaxPlain is the most that Layer.Seal is given, in bytes: a TLS record's.
const MaxPlain = 16 << 10

// File is what SendFile needs of a file. io.Copy hands out an *os.File in a
// wrapper without WriteTo, so the type itself must not be asked for.
type File interface {
	fs.File
	SyscallConn() (syscall.RawConn, error)
}

// A Semaphore bounds how many handlers run; see package loop.
type (
	Semaphore = loop.Semaphore
	Admission = loop.Admission
)

// What AcquireSlot returns.
const (
	Admitted = loop.Admitted
	Queued   = loop.Queued
	Refused  = loop.Refused
)

// Relay carries the bytes of another socket past user space.
type Relay = sys.Relay

// Limits bound waits for the peer, in nanoseconds; 0 is no limit. It is shared
// by connections and immutable.
type Limits struct{ ReadStall, WriteStall int64 }

// Command is what a server posts to its connections on loops, by
// loop.Broadcast.
type Command uint8

const (
	// Drain ends the connection after the request at hand, if there is one.
	Drain Command = iota
	// CloseIdle is Drain for connections that user code does not own; the others
	// go on.
	CloseIdle
	// Kill ends the connection at once.
	Kill
)

// LingerFor bounds the time between FIN and close, DrainNew the time that a
// connection of which no request has come whole is given when the server shuts
// down, or others wait for what it holds (net/http's value): a request may be on
// the way.
const (
	LingerFor = 2 * time.Second
	DrainNew  = 5 * time.Second
)

// SpareHead is loop.Spare's answer for a connection that holds a part of a request
// since a time before now: it is spare after DrainNew, and after all that are idle.
func SpareHead(since, now int64) (int64, bool) {
	const afterIdle = 1 << 62
	return since + afterIdle, now-since >= int64(DrainNew)
}
