package origin

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/reason"
	"github.com/chert-http/chert/internal/retry"
	"github.com/chert-http/chert/internal/sys"
)

// Address splits the address of a server for package net: "unix:/run/app.sock" is network
// "unix", anything else "tcp".
func Address(addr string) (network, address string) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return "unix", path
	}
	return "tcp", addr
}

// Dialer makes connections to one server. It is immutable, and safe for concurrent use.
type Dialer struct {
	Addr    string        // as for Address
	TLS     *tls.Config   // nil: none. It must have a ServerName
	Timeout time.Duration // of connect and handshake together; 0: none
}

// Socket connects and makes the handshake. If ctx is done, the client is gone.
func (d *Dialer) Socket(ctx context.Context) (net.Conn, *Failure) {
	return d.socket(ctx, func(nc net.Conn) net.Conn { return nc })
}

// socket is Socket with below as what TLS reads from.
func (d *Dialer) socket(ctx context.Context, below func(net.Conn) net.Conn) (net.Conn, *Failure) {
	limited, cancel := ctx, func() {}
	if d.Timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, d.Timeout)
	}
	defer cancel()
	network, address := Address(d.Addr)
	var dialer net.Dialer
	nc, err := dialer.DialContext(limited, network, address)
	if err != nil {
		return nil, failed(ctx, DialReason(err), err)
	}
	if d.TLS == nil {
		return nc, nil
	}
	secure := tls.Client(below(nc), d.TLS)
	if err := secure.HandshakeContext(limited); err != nil {
		nc.Close()
		return nil, failed(ctx, TLSReason(err), err)
	}
	return secure, nil
}

func failed(ctx context.Context, code reason.Code, err error) *Failure {
	if errors.Is(ctx.Err(), context.Canceled) {
		code = reason.ClientGone
	}
	return &Failure{Reason: code, Err: err}
}

// unended is a socket below TLS whose end is an error. crypto/tls takes one between two records for an
// orderly end, and a body that ends with its connection for whole, though anyone on the path can make
// it (RFC 9112 section 9.8).
type unended struct{ net.Conn }

var errUnended = errors.New("origin: the connection ended without a close_notify")

// Read implements net.Conn.
func (u unended) Read(p []byte) (int, error) {
	n, err := u.Conn.Read(p)
	if err == io.EOF {
		err = errUnended
	}
	return n, err
}

// Dial is Socket for an HTTP/1 connection.
func (d *Dialer) Dial(ctx context.Context) (*Conn, *Failure) {
	nc, f := d.socket(ctx, func(nc net.Conn) net.Conn { return unended{nc} })
	if f != nil {
		return nil, f
	}
	return NewConn(nc), nil
}

// Conn is a connection to a server of HTTP/1. It carries one exchange at a time.
type Conn struct {
	nc  net.Conn
	raw syscall.RawConn // of the socket; nil if there is none to look at

	// Those of the exchange, or of the pool.
	buf      *[]byte // of buffers; nil while the connection is idle
	pos, end int     // what has been received and not used is (*buf)[pos:end]
	requests int
	idle     int64 // since when, as the pool's clock has it

	mu      sync.Mutex
	aborted bool // deadlines stay in the past
}

// NewConn returns a Conn that owns nc.
func NewConn(nc net.Conn) *Conn {
	c := &Conn{nc: nc}
	socket := nc
	if t, ok := nc.(*tls.Conn); ok {
		socket = t.NetConn()
	}
	if u, ok := socket.(unended); ok {
		socket = u.Conn
	}
	if s, ok := socket.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn()
	}
	return c
}

// Close closes the connection, whatever it is used for.
func (c *Conn) Close() { c.nc.Close() }

// Reused reports whether the connection has carried a request before the present one.
func (c *Conn) Reused() bool { return c.requests > 1 }

// quiet reports whether the server has neither closed an idle connection nor sent anything
// on it. Both mean that no request may follow: bytes without a request are not a response.
// What the system cannot tell passes for quiet.
func (c *Conn) quiet() (quiet, ended bool) {
	if isTLS(c.nc) { // which may have read further records with the last one of the response
		c.nc.SetReadDeadline(past) // only they are looked at
		n, err := c.nc.Read(make([]byte, 1))
		c.nc.SetReadDeadline(time.Time{})
		if n > 0 || !isTimeout(err) {
			return false, n == 0
		}
	}
	if c.raw == nil {
		return true, false
	}
	n, e := 0, syscall.EAGAIN
	err := c.raw.Read(func(fd uintptr) bool {
		n, e = sys.Peek(int(fd))
		return true
	})
	switch {
	case err != nil:
		return false, true
	case sys.Again(e), e == syscall.EINVAL: // the latter where sys has no Peek
		return true, false
	}
	return false, e != 0 || n == 0
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// abort makes all reads and writes fail, those under way too. Any goroutine may call it.
func (c *Conn) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aborted = true
	c.nc.SetDeadline(past)
}

// readWithin limits reads from now on; 0 is no limit. It reports false if they all fail.
func (c *Conn) readWithin(d time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.aborted {
		c.nc.SetReadDeadline(in(d))
	}
	return !c.aborted
}

func (c *Conn) writeWithin(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.aborted {
		c.nc.SetWriteDeadline(in(d))
	}
}

func in(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(d)
}

// bufferSize suffices for nearly all heads.
const bufferSize = 8 << 10

var buffers = sync.Pool{New: func() any {
	b := make([]byte, bufferSize)
	return &b
}}

// fill reads more behind what is in the buffer.
func (c *Conn) fill() error {
	if c.buf == nil {
		c.buf = buffers.Get().(*[]byte)
	}
	if c.pos > 0 && c.pos == c.end {
		c.pos, c.end = 0, 0
	}
	b := *c.buf
	if c.end == len(b) {
		if c.pos > 0 {
			c.end = copy(b, b[c.pos:c.end])
			c.pos = 0
		} else {
			larger := make([]byte, 2*len(b))
			copy(larger, b)
			b = larger
			*c.buf = b
		}
	}
	n, err := c.nc.Read(b[c.end:])
	c.end += n
	if n > 0 {
		return nil // an error comes again
	}
	return err
}

func (c *Conn) received() []byte {
	if c.buf == nil {
		return nil
	}
	return (*c.buf)[c.pos:c.end]
}

// keep puts b, which is not in the buffer, where received finds it. Nothing else is there.
func (c *Conn) keep(b []byte) {
	if c.buf == nil {
		c.buf = buffers.Get().(*[]byte)
	}
	if len(b) > len(*c.buf) {
		*c.buf = make([]byte, len(b))
	}
	c.pos, c.end = 0, copy(*c.buf, b)
}

// release gives the buffer back.
func (c *Conn) release() {
	if c.buf != nil && len(*c.buf) == bufferSize {
		buffers.Put(c.buf)
	}
	c.buf, c.pos, c.end = nil, 0, 0
}

// progress returns how far an exchange has come.
func progress(sent, received bool) retry.Progress {
	switch {
	case received:
		return retry.Received
	case sent:
		return retry.Sent
	}
	return retry.Unsent
}
