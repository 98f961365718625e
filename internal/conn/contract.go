package conn

import (
	"io/fs"
	"net"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/sys"
)

// Verdict is what a Proto wants done with its connection.
type Verdict uint8

const (
	// More: keep the connection and feed what comes.
	More Verdict = iota
	// Run: a request is complete enough; call Serve where it may block.
	Run
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
	// may block as long as it likes.
	Serve() Verdict
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
	// SendFile sends up to n bytes of f from its current offset without
	// copying them to user space. ok is false when that cannot be done here;
	// nothing has been sent then.
	SendFile(f File, n int64) (sent int64, ok bool, err error)
	// CanRelay reports whether SendRelay works here.
	CanRelay() bool
	// SendRelay sends what r holds, which is not nothing.
	SendRelay(r *Relay) (sent int, err error)
	// SetReadDeadline and SetWriteDeadline bound the calls that wait, now
	// and later, until the end of Serve. Zero is no deadline.
	SetReadDeadline(t time.Time)
	SetWriteDeadline(t time.Time)
	// WatchPeer makes sure that PeerGone will be called. Serve calls it when
	// somebody begins to care and the request's bytes are all read. Any
	// goroutine may call it, but not after Serve has returned.
	WatchPeer()
	// Hijack gives the connection away with the bytes that were received and
	// not consumed. Serve must then return Detached.
	Hijack() (net.Conn, []byte, error)
	// LocalAddr and RemoteAddr may be called by any goroutine during Serve.
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
	// NetConn stands for the connection in hooks. It is the same at each call.
	NetConn() net.Conn
}

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
}

// LingerFor bounds the time between FIN and close, DrainNew the time that a
// connection which has not sent anything is given when the server shuts down
// (net/http's value): its request may be on the way.
const (
	LingerFor = 2 * time.Second
	DrainNew  = 5 * time.Second
)
