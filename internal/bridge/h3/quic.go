package h3

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"github.com/chert-http/chert/internal/http3"
)

// Conn is a QUIC connection. Its methods, and those of its streams, are safe for concurrent use,
// but one goroutine at a time reads from a stream, and one writes to it.
type Conn interface {
	// Accept and AcceptUni wait for the client's next stream. They fail when the connection has
	// ended.
	Accept() (Stream, error)
	AcceptUni() (ReceiveStream, error)
	// OpenUni opens a stream to the client. It does not wait: the error is ErrNoStream if the client permits no more.
	OpenUni() (SendStream, error)
	// Close ends the connection and all its streams.
	Close(code http3.ErrCode, reason string)
	TLS() *tls.ConnectionState
	LocalAddr() net.Addr
	RemoteAddr() net.Addr
	// RTT is the round trip time as it is known.
	RTT() time.Duration
	// Sent is how many packets have been sent.
	Sent() uint64
}

// ErrReset is the error of Read on a unidirectional stream that the client has reset, and of TryWrite, also of
// nothing, on one that the client wants no more of.
var ErrReset = errors.New("h3: the client has reset the stream")

// ErrNoStream is the error of OpenUni if the client permits no more streams.
var ErrNoStream = errors.New("h3: the client permits no more streams")

// ReceiveStream is what the client sends on a stream. Errors of Read are those of a deadline
// (os.ErrDeadlineExceeded), io.EOF, also with the last bytes, or final.
type ReceiveStream interface {
	Read(p []byte) (int, error)
	SetReadDeadline(t time.Time) error
	// Stop asks the client to send no more, and discards what it does. After io.EOF it does nothing.
	Stop(code http3.ErrCode)
	// Release lets the client open another stream in place of this one, when it has ended.
	Release()
}

// SendStream is what is sent to the client on a stream.
type SendStream interface {
	// Write waits until all but some of p, less than a packet, has been sent. After an error of a
	// deadline n bytes have been.
	Write(p []byte) (n int, err error)
	// TryWrite is Write that does not wait: it keeps all of p, or nothing if the client's window
	// has no room. It does not see whether the network has.
	TryWrite(p []byte) (ok bool, err error)
	SetWriteDeadline(t time.Time) error
	SetPriority(urgency int8, incremental bool)
	// End sends the end of the stream.
	End() error
	// Reset sends nothing more. After End it does nothing.
	Reset(code http3.ErrCode)
	// Context ends when the client has gone, or wants no more; also after End and Reset.
	Context() context.Context
}

// Stream is a stream in both directions.
type Stream interface {
	ID() uint64
	ReceiveStream
	SendStream
}
