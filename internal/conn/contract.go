package conn

import (
	"io/fs"
	"net"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/peer"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// A Session is the protocol spoken on a Link. The Link's owner calls it, so its
// methods never run at the same time; PeerGone and Late are the exceptions. None
// of them may block, except user code under Enter, and Serve.
type Session interface {
	// Data consumes what it can of the Link's Buffered bytes, starts runs of user
	// code and sends responses, and returns what is to happen next. It is called
	// when there are more bytes than at its last return, when the peer has ended
	// its stream (eof), and, after Requeue, Wait or a stalled queue, with the
	// Buffered bytes, which may be none.
	Data(eof bool) Next
	// Serve is the run that Data has started with Go, on the goroutine that owns
	// the Link from now on. It returns what Data would.
	Serve() Next
	// Writable is called on a shared Link when the queue has fallen below its
	// low-water mark after Queue has reported that it is full.
	Writable() Next
	// Expired is called when the deadline of SetDeadline has passed.
	Expired() Next
	// Drain is called, perhaps repeatedly, while the Session waits for the peer,
	// also after Pause, when the server is shutting down, keep-alives were disabled, or another
	// connection needs this one's goroutine. Close takes effect only if the peer
	// has sent nothing that Data has not received; HalfClose at once. A request that is incomplete
	// then has DrainNew to arrive, counted from since, a time of sys.Nanotime.
	Drain(since int64) Next
	// Since returns when the Session's current wait for the peer began, to about
	// a millisecond; now is the current time. Both are times of sys.Nanotime. It
	// is called only during such a wait, which is for the beginning of a request
	// if nothing is Buffered, otherwise for the rest of one. On a shared Link it is
	// safe for concurrent use, and a negative value means that the Session does not
	// wait: Runs are in progress, or responses.
	Since(now int64) int64
	// Late is called when user code under Enter was found to have held a loop for
	// at least held. If the code has just cost the loop its driver, it is called
	// while the code runs, on any goroutine, and held is loop.Overstay. Otherwise
	// Leave calls it, and held is less. In both cases Leave returns after it.
	Late(held time.Duration)
	// PeerGone is called while user code owns the Link, when the peer has
	// disconnected: by a reset, or by closing its side when all its data has been
	// read from the socket. Any goroutine may call it.
	PeerGone(reset bool)
	// Closed is called once, after the connection has ended or been hijacked.
	Closed(hijacked bool)
}

// Next is what a Session requests for its Link.
type Next uint8

const (
	// More: call Data when more has arrived.
	More Next = iota
	// Requeue: call Data again after other connections have had their turn.
	Requeue
	// Wait: call Data when the slot that AcquireSlot waits for has been given.
	Wait
	// Pause, on a shared Link: read no more, and call Data when the queue is below its
	// low-water mark, after Writable. For a peer that sends and does not read.
	Pause
	// Await, of a Conn on its loop: read no more, and call Data after Resume. For a peer whose
	// bytes go to another connection, which has no room for them.
	Await
	// Close: close when all that was queued has been sent.
	Close
	// Linger: when all that was queued has been sent, send FIN, and close when
	// the peer has closed or a short time has passed. For a peer that may still
	// be sending: closing with unread bytes sends a reset, and a reset can
	// destroy a response that the peer has not read yet (RFC 9112 section 9.6).
	Linger
	// HalfClose, of Drain: send FIN, so that the peer does not begin another request, and
	// close. What was on its way then is discarded, as after Linger.
	HalfClose
	// Reset: drop what is unsent and send RST, for a peer that accepts nothing.
	Reset
	// Elsewhere: Go has passed the Link to another goroutine; the caller must no
	// longer use it.
	Elsewhere
	// Detached: Hijack has passed the connection to user code.
	Detached
	// Lost: StartHere has cost the caller its loop, and with it the Link, which must
	// not be touched any more.
	Lost
)

// A Run is one execution of user code, concurrent with others on the same Link,
// while the Link's owner continues to read.
type Run interface {
	// Run runs the user code. It may block, and uses only Queue and Post of the
	// Link.
	Run()
	// Done is called by the Link's owner after Run has returned, unless the
	// connection has ended.
	Done() Next
}

// A Leaver is a Run that is told when its Run has returned beside the loop, on the
// goroutine that has run it and before Done: the connection may have ended.
type Leaver interface{ Left() }

// Left calls r's Left if it has one. For Links.
func Left(r Run) {
	if l, ok := r.(Leaver); ok {
		l.Left()
	}
}

// A Link is one connection, as bytes in both directions. It knows no protocol.
// Unless stated otherwise, methods may be called by the Link's owner (the
// goroutine that calls the Session, or runs its Serve) and by goroutines that
// the owner synchronises with. One goroutine may read while another writes.
type Link interface {
	// Buffered returns the bytes that were received and not consumed; they are
	// valid until the next call of another reading method. Discard consumes n of
	// them.
	Buffered() []byte
	Discard(n int)
	// Fill waits for at least one byte more to be Buffered.
	Fill() error
	// Read is io.Reader's; Buffered bytes come first.
	Read(p []byte) (int, error)
	// Unread makes p, the end of what Read has just returned, Buffered again. p
	// is copied.
	Unread(p []byte)

	// Send sends w, or queues what the socket does not accept. It never waits on
	// a loop. An error means that the connection has failed. w itself is not
	// kept.
	Send(w *Write) error
	// Write sends a and then b. It returns when all has been sent or queued, and
	// waits while the queue is above its high-water mark.
	Write(a, b []byte) error
	// Sent waits, as Write does, until nothing is queued.
	Sent() error
	// Queue is Offer of p with a limit of 128 KiB.
	Queue(p []byte) (full bool, err error)
	// Offer is Send of a and then b for goroutines that are not the owner, on a shared Link;
	// both are copied. It never waits. If more than half of limit is queued, in memory, and
	// it would be more than limit bytes with these, Offer accepts nothing and returns
	// ErrFull. A limit is 64 KiB at least, so that there is room when Writable is called; a
	// negative one means none. full reports that more than half of limit is queued, in which
	// case Session.Writable is called later. It fails once the Session has requested the
	// connection's end. The bytes of different calls of Send, Write and Offer are never
	// interleaved.
	Offer(a, b []byte, limit int) (full bool, err error)
	// Share enables Queue and Offer. It is called before any other goroutine uses it.
	Share()
	// Stalled reports whether bytes wait for the peer to accept them, or for
	// their turn.
	Stalled() bool
	// Unsent reports on the bytes that were passed to Send, Write and the like:
	// how many wait for the peer, or for their turn, and how many were lost, in
	// total, and will never be sent. waiting may be too low, but is 0 only if
	// none wait.
	Unsent() (waiting, lost int64)
	// Follow notifies f when none of the bytes passed so far wait any longer.
	// That may be immediately, on the caller's goroutine.
	Follow(f Follower)
	// SendFile sends up to n bytes of f without copying them to user space, and
	// waits as Write does: from the given offset, or with -1 from its current
	// one, which then moves. ok is false if this Link cannot do that; nothing
	// has been sent then.
	SendFile(f File, offset, n int64) (sent int64, ok bool, err error)
	// CanRelay reports whether SendRelay works here.
	CanRelay() bool
	// SendRelay sends what r holds, which must not be empty, and waits as Write does.
	SendRelay(r *Relay) (sent int, err error)

	// Skip says that nothing more of what the peer sends is of use. It is read and discarded
	// from now on while Send waits, since the peer may read only when it has sent
	// everything. The owner calls it, reads no more, and returns Close, Linger or Reset.
	Skip()

	// Enter begins user code that has the Link to itself, on the caller's goroutine,
	// which may be a loop's: then the code costs that loop its driver if it waits or
	// takes long. It reports false if the connection is being closed; Leave must not
	// be called then. Leave ends the user code, and clears the deadlines it has set.
	// On a loop Enter is called within Data, a Run's Done or a function passed to
	// Post, and nowhere else.
	Enter() bool
	Leave()
	// Abandon ends what Enter began for a goroutine that is about to end itself
	// (runtime.Goexit), and closes the connection.
	Abandon()
	// OnLoop reports whether the caller is driving an event loop. Go then passes
	// the Link to Session.Serve on a pooled goroutine and reports true; the
	// caller must return Elsewhere. Otherwise Go reports false: the caller's
	// goroutine may block.
	OnLoop() bool
	Go() bool
	// Inline reports, during Enter, whether the loop is still held.
	Inline() bool
	// Yield is called before user code waits for something other than the peer: a
	// loop that it runs on continues without it.
	Yield()
	// Waited reports whether the user code of the last Enter waited for the
	// peer, or may have: its duration then depends on the peer.
	Waited() bool
	// Start runs r concurrently with others, on a goroutine.
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
	// AcquireSlot acquires a slot of s for the Link. After Queued the Session
	// returns Wait.
	AcquireSlot(s *Semaphore) Admission
	// WithdrawSlot cancels a Queued AcquireSlot; no slot is given afterwards.
	WithdrawSlot(s *Semaphore)

	// SetDeadline sets when Session.Expired is called, of sys.Nanotime, and
	// replaces an earlier deadline; 0 means none.
	SetDeadline(ns int64)
	// SetReadDeadline and SetWriteDeadline bound the calls that wait, current
	// and future, until Leave. Zero means no deadline. Safe for concurrent use.
	SetReadDeadline(t time.Time)
	SetWriteDeadline(t time.Time)
	// WatchPeer ensures that PeerGone will be called, once all the peer's bytes
	// have been read, and reports whether the peer has already disconnected. Any
	// goroutine may call it between Enter and Leave. Nothing may be read from
	// then on until Leave.
	WatchPeer() (gone bool)
	// Hijack returns the connection for user code to own, with the bytes that
	// were received and not consumed. The Session's methods must then return
	// Detached. It waits for what is queued: a caller that holds a lock which
	// PeerGone takes calls Sent before.
	Hijack() (net.Conn, []byte, error)
	// Switch replaces the Session, which must then return Requeue. The new one
	// receives the bytes that were not consumed; on a Link of a loop, its first
	// call of Data is on the loop.
	Switch(s Session)
	// SetLayer puts a Layer between the socket and the Session. Bytes that are
	// Buffered go through it first. What was sent before does not go through it:
	// SetLayer waits for it as Write does, or, on a loop, returns an error if the
	// peer has not accepted all of that yet.
	SetLayer(l Layer) error

	// Tally returns where the Link is counted. Its owner is driving the Shard's loop,
	// as package tally has it, while OnLoop is true and no user code runs. Safe for
	// concurrent use.
	Tally() *tally.Shard
	// Now returns the time of sys.Nanotime, or slightly before it if that saves
	// reading the clock. Not between Enter and Leave.
	Now() int64
	// Peer returns the remote address as text. Safe for concurrent use.
	Peer() peer.Peer
	// LocalAddr and RemoteAddr are safe for concurrent use.
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
	// NetConn returns the net.Conn that represents the connection in hooks. Each call returns an
	// equal value.
	NetConn() net.Conn
}

// What is sent, and who is notified of it; see package outbox.
type (
	Write    = outbox.Write
	Holder   = outbox.Holder
	Follower = outbox.Follower
)

// ErrFull is returned by Link.Queue and Link.Offer when they have accepted nothing.
var ErrFull = outbox.ErrFull

// A Layer transforms all bytes of a connection: TLS. Open is called by one
// goroutine at a time, and so are Seal and Close; Open may run concurrently with
// Seal.
type Layer interface {
	// Open appends the plaintext of the complete records at the start of src to
	// dst, which has room for len(src) bytes, and returns how many bytes of src it
	// has used, which it may have changed. io.EOF means that the peer will send no more; any error is final.
	Open(dst, src []byte) (out []byte, n int, err error)
	// First returns how many bytes of src the Session is to see alone, before what follows
	// them is opened: an error of that may be final for what is sent too, and a response to
	// these would be lost. 0 means all, or that nothing is complete.
	First(src []byte) int
	// Pending reports whether Open has left something for the peer that the next
	// Seal or Close appends first: an answer of the layer's own, an alert.
	Pending() bool
	// Seal appends records with the plaintext p to dst. p is at most MaxPlain
	// bytes, and may be empty. If nothing can be sent any more, because of an error
	// of Open, it appends nothing but what is Pending.
	Seal(dst, p []byte) []byte
	// Close appends what notifies the peer that no more is sent.
	Close(dst []byte) []byte
	// Idle says that all that was opened has been consumed and more is not
	// expected soon: a time to give up buffers. It is called as Open is.
	Idle()
	// Conn makes the layer a net.Conn over nc, for Hijack. raw was read from nc
	// and not yet opened. What is Pending goes first.
	Conn(nc net.Conn, raw []byte) net.Conn
}

// MaxPlain is the most that is passed to Layer.Seal, in bytes: a TLS record's. No
// record that a Layer opens is longer than MaxSealed.
const (
	MaxPlain  = 16 << 10
	MaxSealed = 20 << 10
)

// File is what SendFile needs of a file. io.Copy passes an *os.File in a
// wrapper without WriteTo, so the type itself must not be required.
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

// Limits bound waits for the peer, in nanoseconds; 0 means no limit. It is
// shared by connections and immutable.
type Limits struct{ ReadStall, WriteStall int64 }

// Command is what a server posts to its connections on loops, by
// loop.Broadcast.
type Command uint8

const (
	// Drain ends the connection after the current request, if there is one.
	Drain Command = iota
	// CloseIdle is Drain for connections that user code does not own; the others
	// continue.
	CloseIdle
	// Kill ends the connection at once.
	Kill
)

// LingerFor bounds the time between FIN and close, LingerBytes what is read and discarded in
// that time: a client that goes on after that does not wait for its answer, and is no longer
// read, so that it cannot go on either. LingerShared is LingerBytes of a shared Link, whose
// client need not send all it has before it reads, as many clients of HTTP/1 do. DrainNew is
// the time that a connection without a complete request gets when the server shuts down, or
// other connections wait for what it holds (net/http's value): a request may be in transit.
const (
	LingerFor    = 2 * time.Second
	LingerBytes  = 16 << 20
	LingerShared = 1 << 20
	DrainNew     = 5 * time.Second
)

// LingerLimit is LingerBytes or LingerShared.
func LingerLimit(shared bool) int {
	if shared {
		return LingerShared
	}
	return LingerBytes
}

// SpareHead is loop.Spare's result for a connection that has held part of a request
// since the given time: it is spare after DrainNew, and after all idle ones.
func SpareHead(since, now int64) (int64, bool) {
	const afterIdle = 1 << 62
	return since + afterIdle, now-since >= int64(DrainNew)
}
