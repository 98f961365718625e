package origin

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/reason"
)

func isTLS(nc net.Conn) bool {
	_, ok := nc.(*tls.Conn)
	return ok
}

// errShort and errLong are bodies that are not as long as their head says. A server must not
// have accepted them; what is sent after would be taken for something else.
var (
	errShort = errors.New("origin: the request's body is shorter than its Content-Length")
	errLong  = errors.New("origin: the request's body is longer than its Content-Length")
)

// send sends the body, on a goroutine of its own.
func (x *Exchange) send() {
	s := &x.sender
	defer close(s.done)
	if x.q.Continue && !x.await() {
		return
	}
	s.begun.Store(true)
	code, err := x.copy()
	switch {
	case err == nil:
		s.complete.Store(true)
		x.awaitHead()
	case x.q.Body.shut.Load():
		// The exchange has ended, or the server wants no more.
	case code == reason.ClientGone || code == reason.Internal || code == reason.SendTimeout:
		s.failure.Store(&Failure{Reason: code, Err: err})
		x.c.abort()
	default:
		// The server reads no more. What it has said of that may still arrive.
		s.reset.Store(errors.Is(err, syscall.ECONNRESET))
		x.awaitHead()
	}
}

// awaitHead limits the time for the head of the response, unless that has come.
func (x *Exchange) awaitHead() {
	c := x.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.aborted && !x.headRead {
		c.nc.SetReadDeadline(in(x.q.ResponseTimeout))
	}
}

// await waits for a 100.
func (x *Exchange) await() bool {
	t := time.NewTimer(continueWait)
	defer t.Stop()
	select {
	case <-x.sender.go100:
		return true
	case <-t.C:
		return true
	case <-x.q.Body.done:
		return false
	}
}

// copy sends all of the body in its framing. code says what err means.
func (x *Exchange) copy() (code reason.Code, err error) {
	var size [20]byte
	left := x.q.Length
	for {
		b, err := x.q.Body.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return reason.ClientGone, err
		}
		v := net.Buffers{b}
		if x.q.Chunked {
			v = net.Buffers{http1.AppendChunkSize(size[:0], len(b)), b, crlf}
		} else if left -= int64(len(b)); left < 0 {
			return reason.Internal, errLong
		}
		if code, err := x.write(v); err != nil {
			return code, err
		}
	}
	switch {
	case !x.q.Chunked && left > 0:
		return reason.Internal, errShort
	case !x.q.Chunked:
		return 0, nil
	}
	trailer := crlf
	if x.q.Trailer != nil {
		trailer = x.q.Trailer()
	}
	return x.write(net.Buffers{lastChunk, trailer})
}

var crlf, lastChunk = []byte("\r\n"), []byte("0\r\n")

func (x *Exchange) write(v net.Buffers) (reason.Code, error) {
	x.c.writeWithin(x.q.StallTimeout)
	if _, err := v.WriteTo(x.c.nc); err != nil {
		return EndReason(err, reason.SendTimeout), err
	}
	return 0, nil
}

// requestEnded waits, for a moment, for the sender of a request whose response has ended:
// it may not yet have noticed that it has sent all.
func (x *Exchange) requestEnded() bool {
	if x.sender.done == nil {
		return x.sender.complete.Load()
	}
	t := time.NewTimer(50 * time.Millisecond)
	defer t.Stop()
	select {
	case <-x.sender.done:
	case <-t.C:
	}
	return x.sender.complete.Load()
}
