package conn

import (
	"io/fs"
	"net"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/link"
	"github.com/chert-http/chert/internal/outbox"
	"github.com/chert-http/chert/internal/peer"
	"github.com/chert-http/chert/internal/sys"
	"github.com/chert-http/chert/internal/tally"
)

// The contract that all connections keep; see package link.
type (
	Session = link.Session
	Next    = link.Next
	Quiet   = link.Quiet
	Posts   = link.Posts
)

// What a Session requests.
const (
	More      = link.More
	Requeue   = link.Requeue
	Wait      = link.Wait
	Pause     = link.Pause
	Await     = link.Await
	Close     = link.Close
	Linger    = link.Linger
	HalfClose = link.HalfClose
	Reset     = link.Reset
	Elsewhere = link.Elsewhere
	Detached  = link.Detached
	Lost      = link.Lost
)

// UserCode is what a Link runs, alone (Link.Do) or beside others (Link.Start).
type UserCode interface {
	Run()
	// Ended is called if Run has not returned, on the same goroutine and with all that Run
	// may use. A panic ends there.
	Ended(e exec.End)
}

// A Run is one execution of user code, concurrent with others on the same Link,
// while the Link's owner continues to read.
type Run interface {
	// UserCode may block, and uses only Out and Post of the Link.
	UserCode
	// Done is called by the Link's owner after Run has returned, unless the
	// connection has ended.
	Done() Next
}

// A Leaver is a Run that is told when its Run has returned beside the loop, on the
// goroutine that has run it and before Done: the connection may have ended.
type Leaver interface{ Left() }

// Beside is the body of a goroutine that runs r for l, beside its owner.
func Beside(l Link, r Run) {
	defer left(l, r) // also after runtime.Goexit
	exec.Call(r.Run, r.Ended)
}

// left ends a Run beside the owner of l.
func left(l Link, r Run) {
	if r, ok := r.(Leaver); ok {
		r.Left()
	}
	l.Post(r.Done)
}

// A Link is one connection, as bytes in both directions. It knows no protocol. Package link
// says which goroutines may call its methods.
type Link interface {
	link.Link

	// Send sends w, or queues what the socket does not accept. On a loop it does not wait
	// unless w says so. An error means that the connection has failed, or that a wait was
	// ended by a deadline. w itself is not kept.
	Send(w *Write) error
	// Out returns what has still to be sent, nil while nothing has had to wait: how much
	// that is (Unsent, Blocked), and whom to notify (Follow).
	Out() *outbox.Box
	// Share makes Out a Box to which other goroutines add (Offer), and which they use no
	// earlier. Session.Writable is called when there is room again. The bytes of different
	// calls of Send and Offer are never interleaved. Offer fails once the Session
	// has requested the connection's end.
	Share()

	// Do runs u on the caller's goroutine, which may be a loop's: then u costs that loop its
	// driver if it waits or takes long. ran is false if the connection is being closed.
	// waited reports whether u has waited for the peer, or may have: its duration then
	// depends on the peer. The deadlines that u has set end with it. If u ends its
	// goroutine (runtime.Goexit), the connection is closed. On a loop Do is called within
	// Data, a Run's Done or a function passed to Post, and nowhere else.
	Do(u UserCode) (ran, waited bool)
	// Lent returns what user code in Do has of the Link.
	Lent() Lent
	// Start runs r concurrently with others: on a goroutine if h is nil, and otherwise on
	// the caller's, within Data, a Run's Done or a function passed to Post. Then kept says
	// that the caller still drives its loop, if it did, and must call Done. If not, r has
	// waited or has taken long, and another goroutine drives the loop and calls Data with
	// the Buffered bytes; Done is called as without h, and the caller returns Lost. h
	// belongs to r and must not be moved.
	Start(r Run, h *Here) (kept bool)
	// Switch replaces the Session, which must then return Requeue. The new one
	// receives the bytes that were not consumed; on a Link of a loop, its first
	// call of Data is on the loop.
	Switch(s Session)

	// Tally returns where the Link is counted. Its owner is driving the Shard's loop,
	// as package tally has it, while OnLoop is true and no user code runs. Safe for
	// concurrent use.
	Tally() *tally.Shard
	// Peer returns the client's address, also after the end. Safe for concurrent use.
	Peer() peer.Peer
	// NetConn returns the net.Conn that represents the connection in hooks. Each call returns an
	// equal value. Its addresses are those of the connection, also after its end.
	NetConn() net.Conn
}

// Lent is what a Link lends to user code in Do: what may wait, and what may end the Link as it
// is. Methods are for the goroutine of Do and those that it synchronises with, unless stated
// otherwise, and Unread and SetLayer for the owner without a Do too. One goroutine may read while
// another sends.
type Lent interface {
	// Fill waits for at least one byte more to be Buffered.
	Fill() error
	// Read is io.Reader's; Buffered bytes come first.
	Read(p []byte) (int, error)
	// Unread makes p, the end of what Read has just returned, Buffered again. p
	// is copied.
	Unread(p []byte)
	// Yield is called before user code waits for something other than the peer: a
	// loop that it runs on continues without it.
	Yield()
	// SetReadDeadline and SetWriteDeadline bound the calls that wait, current
	// and future, of one Do. Zero means no deadline. Safe for concurrent use.
	SetReadDeadline(t time.Time)
	SetWriteDeadline(t time.Time)
	// WatchPeer ensures that PeerGone will be called, once all the peer's bytes
	// have been read, and reports whether the peer has already disconnected. Any
	// goroutine may call it during Do. Nothing may be read from then on until that
	// returns.
	WatchPeer() (gone bool)
	// Hijack returns the connection for user code to own, with the bytes that
	// were received and not consumed. The Session's methods must then return
	// Detached. It waits for what is queued: a caller that holds a lock which
	// PeerGone takes waits before, by Send.
	Hijack() (net.Conn, []byte, error)
	// SetLayer puts a Layer between the socket and the Session. Bytes that are
	// Buffered go through it first. What was sent before does not go through it:
	// SetLayer waits for it, or, on a loop, returns an error if the peer has not accepted
	// all of that yet.
	SetLayer(l Layer) error

	// The following may be able to send without copying to user space.

	// SendFile sends up to n bytes of f and waits for the peer: from the given offset, or
	// with -1 from its current one, which then moves. ok is false if this Link cannot do
	// that; nothing has been sent then.
	SendFile(f File, offset, n int64) (sent int64, ok bool, err error)
	// CanRelay reports whether SendRelay works here.
	CanRelay() bool
	// SendRelay sends what r holds, which must not be empty, and waits for the peer.
	SendRelay(r *Relay) (sent int, err error)
}

// What is sent, and who is notified of it; see package outbox.
type (
	Write        = outbox.Write
	Holder       = outbox.Holder
	Follower     = outbox.Follower
	FollowerFunc = outbox.FollowerFunc
)

// How long a Write waits.
const (
	ForRoom = outbox.ForRoom
	ForAll  = outbox.ForAll
)

// ErrFull is returned by Offer when it has accepted nothing.
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
// record that a Layer opens is longer than 20 KiB.
const MaxPlain = 16 << 10

// File is what SendFile needs of a file. io.Copy passes an *os.File in a
// wrapper without WriteTo, so the type itself must not be required.
type File interface {
	fs.File
	SyscallConn() (syscall.RawConn, error)
}

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
