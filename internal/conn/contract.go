package conn

import (
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/loop"
	"github.com/chert-http/chert/internal/sys"
)

// Verdict is what a Proto wants done with its connection.
type Verdict uint8

const (
	// More: keep the connection and feed what comes.
	More Verdict = iota
	// Run: a request is complete enough; call Serve where it may block.
	Run
	// RunWhole is Run for a request that is whole in what Feed has consumed:
	// those bytes stay where they are until Serve has returned, if Quick says
	// so or there was an earlier Serve. Serve must read nothing then, nor call
	// Hijack.
	RunWhole
	// Close: write the reply, if any, and close.
	Close
	// Linger: write the reply, if any, send FIN, and close when the peer has
	// closed or a short time has passed. For when the peer may still be
	// sending: closing over unread bytes sends a reset, and a reset can
	// destroy an answer that the peer has not read yet (RFC 9112 section 9.6).
	Linger
	// Reset: drop what is unsent and send RST, for a peer that takes nothing.
	Reset
	// Detached: the connection was hijacked; forget it.
	Detached
	// Stalled: TryWrite or TrySendFile has not taken all, and Serve is to be
	// called again when the socket takes more. Nothing of the request may be
	// looked at any more. No goroutine waits meanwhile.
	Stalled
)

// A Proto is the protocol spoken on one connection. The connection's owner
// calls it, so its methods never run at the same time; PeerGone is the
// exception.
type Proto interface {
	// Feed is given all unread bytes and says how many it has consumed. The
	// rest comes again, with what has arrived since; b must not be kept. eof
	// says that no more will come. It must not block.
	Feed(b []byte, eof bool) (n int, v Verdict, reply []byte)
	// Serve answers the request that Feed announced, using the Transport. It
	// may block as long as it likes. It may return Run, to be called again
	// where Quick says then, or Stalled.
	Serve() Verdict
	// Quick says of the request that Feed announced whether its Serve is
	// likely to be quick, so that it may run on the loop.
	Quick() bool
	// Late says that Serve has cost a loop its driver by taking long, while it
	// goes on. The loop calls it.
	Late()
	// Refuse says that the request which Feed announced is not to be served:
	// Serve answers that the server is busy. Quick says true then.
	Refuse()
	// Expired says that the time for a request head, or for the next request,
	// is over. partial tells the two apart.
	Expired(partial bool) (v Verdict, reply []byte)
	// PeerGone says, while Serve runs, that the peer is gone: by a reset, or
	// by closing its side with all it sent already read from the socket. Any
	// goroutine may call it.
	PeerGone(reset bool)
	// Closed is called once, after the connection's end or its hijacking.
	Closed()
}

// Transport is what Serve may use. All methods are for the goroutine that runs
// Serve, or others it synchronises with, except that one may write while
// another reads, and the deadlines may be set by any.
type Transport interface {
	// Buffered returns bytes that were received and not consumed; valid until
	// the next call of another method. Discard consumes n of them.
	Buffered() []byte
	Discard(n int)
	// Fill waits for at least one byte more to be Buffered.
	Fill() error
	// Read is io.Reader's; Buffered bytes come first.
	Read(p []byte) (int, error)
	// Write2 writes a and then b whole.
	Write2(a, b []byte) error
	// WriteLast writes the last of an answer. It may keep a copy for a moment,
	// to write it together with the next one; then an error shows later.
	WriteLast(p []byte) error
	// TryWrite writes what the socket takes of a and then b, and reports how
	// much that is. more says that other bytes follow at once; without it, and
	// without b, it is WriteLast. Where nothing tells when the socket takes
	// more, it writes all. After less than all, Serve should return Stalled.
	TryWrite(a, b []byte, more bool) (n int, err error)
	// TrySendFile is TryWrite for n bytes of a regular file from the given
	// offset, and may stop early in favour of other connections. A file that
	// ends before is io.ErrUnexpectedEOF. ok is false when it cannot be done
	// here; nothing has been sent then.
	TrySendFile(f *os.File, offset, n int64) (sent int64, ok bool, err error)
	// SendFile sends up to n bytes of f without copying them to user space: from
	// the given offset, or with -1 from its current one, which moves then. ok
	// is false when that cannot be done here; nothing has been sent then.
	SendFile(f File, offset, n int64) (sent int64, ok bool, err error)
	// Unread ends what RunWhole began: Serve may read and hijack from now on.
	// b, the end of what Feed has consumed, is to be read again.
	Unread(b []byte)
	// CanRelay reports whether SendRelay works here.
	CanRelay() bool
	// SendRelay sends what r holds, which is not nothing.
	SendRelay(r *Relay) (sent int, err error)
	// SetReadDeadline and SetWriteDeadline bound the calls that wait, now
	// and later, until the end of Serve. Zero is no deadline.
	SetReadDeadline(t time.Time)
	SetWriteDeadline(t time.Time)
	// Outcome says how Serve has run so far. It is for Serve's own goroutine,
	// and not for use after Hijack.
	Outcome() Outcome
	// WatchPeer makes sure that PeerGone will be called. Serve calls it when
	// somebody begins to care and the request's bytes are all read. Any
	// goroutine may call it, but not after Serve has returned.
	WatchPeer()
	// Hijack gives the connection away with the bytes that were received and
	// not consumed. Serve must then return Detached.
	Hijack() (net.Conn, []byte, error)
	// Now is the time, of sys.Nanotime, or a little before it if that can be
	// told without asking the clock.
	Now() int64
	// Peer is the remote address as Request.RemoteAddr has it.
	Peer() string
	// LocalAddr and RemoteAddr may be called by any goroutine during Serve.
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
	// NetConn stands for the connection in hooks. It is the same at each call.
	NetConn() net.Conn
}

// Outcome is how a Serve has run.
type Outcome uint8

const (
	// RanPooled: on a goroutine of its own, without waiting for the peer.
	RanPooled Outcome = iota
	// RanInline: on the loop, which it still holds.
	RanInline
	// Waited: it had to wait for the peer at least once. How long it took is
	// the peer's doing.
	Waited
	// Overstayed: it ran on the loop, and for so long that it lost it.
	Overstayed
)

// File is what SendFile needs of a file. io.Copy hands out an *os.File in a
// wrapper without WriteTo, so the type itself must not be asked for.
type File interface {
	fs.File
	SyscallConn() (syscall.RawConn, error)
}

// Relay carries the bytes of another socket past user space.
type Relay = sys.Relay

// Limits are the times a connection may take, in nanoseconds; 0 is no limit.
// It is shared by connections and immutable.
type Limits struct {
	Header int64 // from a request's first byte to the end of its head
	First  int64 // from accept to the end of the first head
	Idle   int64 // between requests
	// ReadStall and WriteStall bound a wait of Serve for the peer.
	ReadStall, WriteStall int64
	// Slice bounds how long pipelined requests of one connection are served on
	// the loop in one go, 200 us if 0.
	Slice int64
	// Slots bound how many Serves run at the same time; nil for no bound.
	Slots *Slots
}

// Slots are loop's.
type Slots = loop.Slots

// What Slots.Enter returns.
const (
	Entered = loop.Entered
	Queued  = loop.Queued
	Refused = loop.Refused
)

// LingerFor bounds the time between FIN and close, DrainNew the time that a
// connection which has not sent anything is given when the server shuts down
// (net/http's value): its request may be on the way.
const (
	LingerFor = 2 * time.Second
	DrainNew  = 5 * time.Second
)
