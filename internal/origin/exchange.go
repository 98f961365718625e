package origin

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/reason"
)

// Request is what an exchange sends, and how it waits.
type Request struct {
	Head     []byte // with its empty line
	Expected http1.Expected

	// Inline is a body, in its framing, that is sent with the head.
	Inline []byte
	// Body is one that is sent while the response is read; nil: none. Exactly one of the
	// following is its framing.
	Body    *Cursor
	Chunked bool
	Length  int64
	// Trailer is called after the last byte of a chunked Body, for the trailer section with
	// its empty line.
	Trailer func() []byte
	// Continue: the head has Expect: 100-continue. Body is sent after a 100, or a second.
	Continue bool

	// Interim is called for each interim response but 100; its error ends the exchange.
	Interim func(head []byte, r *http1.Response) error

	ResponseTimeout time.Duration // from the end of the request to the end of the head
	StallTimeout    time.Duration // of the body in either direction
	Limits          http1.Limits  // of the response's head and trailer section
}

// continueWait is how long a body waits for a 100: servers that do not know Expect never
// send one (RFC 9110 section 10.1.1).
const continueWait = time.Second

// Exchange is a request and its response on a Conn, which it owns until it ends.
type Exchange struct {
	// Response and Head, which its spans are in, are valid until the first Read.
	Response http1.Response
	Head     []byte

	c        *Conn
	q        *Request
	ctx      context.Context
	unwatch  func() bool
	body     http1.Body
	sent     bool // the socket has accepted a byte
	received bool
	ended    error // of Read
	over     bool  // the Conn is no longer the exchange's
	headRead bool  // that of the final response; under c.mu
	keep     func(*Conn)

	trailers     []http1.Field
	trailerBytes []byte

	sender sender
}

// sender is what the goroutine that sends a body shares with the one that reads.
type sender struct {
	done     chan struct{} // closed at its end; nil if there is none
	go100    chan struct{} // closed by 100
	once     sync.Once
	begun    atomic.Bool // the body is being sent, or is about to be
	complete atomic.Bool
	reset    atomic.Bool             // a write has met the server's reset
	failure  atomic.Pointer[Failure] // what ended the exchange
}

// Do sends a request and reads the head of its final response. keep is called with the Conn
// if it can be used again, after the response has ended; otherwise it is closed. If ctx is
// done the exchange ends.
func (c *Conn) Do(ctx context.Context, q *Request, keep func(*Conn)) (*Exchange, *Failure) {
	c.requests++
	x := &Exchange{c: c, q: q, ctx: ctx, keep: keep}
	x.unwatch = context.AfterFunc(ctx, c.abort)
	if f := x.start(); f != nil {
		return nil, x.fail(f)
	}
	if f := x.head(); f != nil {
		return nil, x.fail(f)
	}
	return x, nil
}

// fail ends an exchange without a response.
func (x *Exchange) fail(f *Failure) *Failure {
	f.Awaited = x.q.Body != nil && x.sender.begun.Load() && x.q.Body.Unawaited() == 0
	x.end(false)
	if s := x.sender.failure.Load(); s != nil {
		f.Reason, f.Err = s.Reason, s.Err
	}
	if x.ctx.Err() != nil {
		f.Reason, f.Err = reason.ClientGone, x.ctx.Err()
	}
	f.Progress = progress(x.sent, x.received)
	return f
}

// start sends the head with an inline body, and starts the sender of any other.
func (x *Exchange) start() *Failure {
	c, q := x.c, x.q
	c.writeWithin(q.StallTimeout)
	var n int64
	var err error
	if len(q.Inline) > 0 {
		vector := net.Buffers{q.Head, q.Inline}
		n, err = vector.WriteTo(c.nc)
	} else {
		var k int
		k, err = c.nc.Write(q.Head)
		n = int64(k)
	}
	// TLS does not say how much of a record was sent.
	x.sent = n > 0 || err != nil && isTLS(c.nc)
	if err != nil {
		code := EndReason(err, reason.SendTimeout)
		if !x.sent || code == reason.SendTimeout {
			return &Failure{Reason: code, Err: err}
		}
		// The server may have responded before it closed, as with 413 or 408.
		if x.q.Body != nil {
			x.q.Body.Close()
		}
		c.readWithin(q.ResponseTimeout)
		return nil
	}
	if q.Body == nil {
		x.sender.complete.Store(true)
		c.readWithin(q.ResponseTimeout)
		return nil
	}
	c.readWithin(0)
	x.sender.done, x.sender.go100 = make(chan struct{}), make(chan struct{})
	x.sender.begun.Store(!q.Continue)
	go x.send()
	return nil
}

// head reads heads up to that of the final response.
func (x *Exchange) head() *Failure {
	c, progress := x.c, http1.Progress{}
	for {
		b := c.received()
		n, err := x.Response.Parse(b, &x.q.Expected, &progress, &x.q.Limits)
		switch {
		case err != nil:
			return &Failure{Reason: Malformed(err), Err: err}
		case n == 0:
			if err := c.fill(); err != nil {
				return &Failure{Reason: EndReason(err, reason.ResponseTimeout), Err: err}
			}
			x.received = true
			continue
		}
		x.Head = b[:n]
		c.pos += n
		if !x.Response.Interim() {
			break
		}
		if err := x.interim(); err != nil {
			return &Failure{Reason: reason.ClientGone, Err: err}
		}
	}
	x.body = x.Response.Body()
	c.mu.Lock()
	x.headRead = true
	c.mu.Unlock()
	// RFC 9112 section 9.3: a server that does not want the rest of a body says so by its
	// response. One of success may be made of the body while that arrives. RFC 9110 section
	// 10.1.1: a final response instead of a 100 means that the body need not be sent.
	if x.q.Body != nil && !x.sender.complete.Load() && (x.Response.Status >= 300 || !x.sender.begun.Load()) {
		x.stopSending()
	}
	return nil
}

func (x *Exchange) interim() error {
	if x.Response.Status == 100 {
		x.sender.once.Do(func() {
			if x.sender.go100 != nil {
				close(x.sender.go100)
			}
		})
		return nil
	}
	if x.q.Interim == nil {
		return nil
	}
	return x.q.Interim(x.Head, &x.Response)
}

// stopSending ends the sender as soon as it can.
func (x *Exchange) stopSending() {
	x.q.Body.Close()
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	x.c.nc.SetWriteDeadline(past)
}

// Read reads the body. After io.EOF the response was complete; any other error is a
// *Failure, and the body must not end for the client as if it were whole.
func (x *Exchange) Read(p []byte) (int, error) {
	for x.ended == nil {
		if len(p) == 0 {
			return 0, nil
		}
		n, err := x.read(p)
		if err != nil {
			x.finish(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, x.ended
}

// Ready reports whether a part of the body has been received with the head.
func (x *Exchange) Ready() bool { return len(x.c.received()) > 0 }

// read is one step. Its error is io.EOF at the end, or a *Failure.
func (x *Exchange) read(p []byte) (int, error) {
	c := x.c
	switch {
	case x.body.Done():
		return 0, io.EOF
	case x.body.InTrailer():
		return 0, x.trailer()
	}
	if b := c.received(); len(b) > 0 {
		n, used, err := x.body.Decode(p, b)
		c.pos += used
		return n, x.bad(err)
	}
	var k int
	err := x.unstalled(func() (err error) {
		k, err = c.nc.Read(p)
		return err
	})
	n, used, bad := x.body.Decode(p, p[:k])
	if bad != nil {
		return n, x.bad(bad)
	}
	if used < k {
		c.keep(p[used:k])
	}
	if err != nil && k == 0 {
		return 0, x.closed(err)
	}
	return n, nil
}

// unstalled has the connection read within StallTimeout. What the server sends may be made of a body
// that the client has not sent yet: then that has limits of its own.
func (x *Exchange) unstalled(read func() error) error {
	left := x.q.StallTimeout
	for {
		limited := x.c.readWithin(left)
		err := read()
		if !limited || !errors.Is(err, os.ErrDeadlineExceeded) || x.q.Body == nil {
			return err
		}
		if left = x.q.StallTimeout - x.q.Body.Unawaited(); left <= 0 {
			return err
		}
	}
}

func (x *Exchange) bad(err error) error {
	if err == nil {
		return nil
	}
	return &Failure{Reason: Malformed(err), Err: err}
}

// closed says what an error of the connection means for the body.
func (x *Exchange) closed(err error) error {
	if err != io.EOF {
		// Only an orderly end may end a body: not a reset, and with TLS not a FIN without a
		// close_notify, which anyone on the path can send (RFC 9112 section 9.8).
		code := EndReason(err, reason.StallTimeout)
		if code != reason.StallTimeout {
			code = reason.Truncated
		}
		return &Failure{Reason: code, Err: err}
	}
	if err := x.body.Closed(); err != nil {
		code := reason.Truncated
		if err != http1.ErrTruncated {
			code = Malformed(err)
		}
		return &Failure{Reason: code, Err: err}
	}
	// The system reports a reset once. If a write has met it, this read ended as if by a FIN; a reset
	// after a FIN is an EPIPE.
	if x.requestEnded(); x.sender.reset.Load() {
		return &Failure{Reason: reason.Truncated, Err: syscall.ECONNRESET}
	}
	return io.EOF
}

func (x *Exchange) trailer() error {
	var progress http1.Progress
	for {
		b := x.c.received()
		n, fields, err := x.body.Trailer(b, x.trailers, &progress, &x.q.Limits)
		switch {
		case err != nil:
			return x.bad(err)
		case n > 0:
			x.trailers, x.trailerBytes = fields, append([]byte(nil), b[:n]...)
			x.c.pos += n
			return nil
		}
		if err := x.unstalled(x.c.fill); err != nil {
			return x.closed(err)
		}
	}
}

// Trailers returns the trailer fields and what their spans are in, after io.EOF.
func (x *Exchange) Trailers() ([]byte, []http1.Field) { return x.trailerBytes, x.trailers }

// finish ends the exchange with the error of Read.
func (x *Exchange) finish(err error) {
	x.ended = err
	if err != io.EOF {
		f := err.(*Failure)
		f.Progress = progress(true, true)
		if s := x.sender.failure.Load(); s != nil {
			f.Reason, f.Err = s.Reason, s.Err
		}
		if x.ctx.Err() != nil {
			f.Reason, f.Err = reason.ClientGone, x.ctx.Err()
		}
		x.end(false)
		return
	}
	x.end(x.requestEnded() && x.body.Reusable(x.c.received()))
}

// Close ends the exchange. If the response has not ended, the connection closes.
func (x *Exchange) Close() error {
	if x.ended == nil {
		x.ended = &Failure{Reason: reason.Internal, Progress: progress(true, true), Err: net.ErrClosed}
	}
	x.end(false)
	return nil
}

// end gives the connection away, once.
func (x *Exchange) end(again bool) {
	if x.over {
		return
	}
	x.over = true
	if !x.unwatch() {
		again = false // abort runs or has run
	}
	if again {
		x.c.requests = max(x.c.requests, 1)
		x.keep(x.c)
		return
	}
	x.c.Close()
	if x.q.Body != nil {
		x.q.Body.Close()
	}
	if x.sender.done != nil {
		<-x.sender.done // at once: neither the connection nor the cursor waits
	}
	x.c.release()
}

// Tunnel ends HTTP on the connection after a response with FramingTunnel, and returns it
// with what has been received after the head. The context no longer ends it.
func (x *Exchange) Tunnel() (nc net.Conn, received []byte, ok bool) {
	x.over = true
	x.ended = io.EOF
	received = append([]byte(nil), x.c.received()...)
	x.c.release()
	if !x.unwatch() {
		x.c.Close()
		return nil, nil, false
	}
	x.c.nc.SetDeadline(time.Time{})
	return x.c.nc, received, true
}
