package bridge

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/tally"
)

// Body is a request's body. Its methods are safe for concurrent use, also after
// the handler has returned; then they touch neither the connection nor the
// exchange, which may belong to another request by now. So a Body is never
// reused.
type Body struct {
	x      *Exchange // immutable; not to be used once closed is set
	final  bool      // immutable: a read that timed out must not be tried again
	last   bool      // immutable: nothing can follow the body on this connection, nor a trailer
	awaits bool      // immutable: the client waits for 100 (Continue); x is not reused then
	// Left is how many bytes are still to be read, or fewer if the Message does not know; its
	// ReadBody counts them.
	Left int64

	mu     sync.Mutex
	closed bool
	// over: the handler has returned, and only the server may read.
	over   bool
	sawEOF bool
	// reading: a Read is in ReadBody, so that the exchange is still this body's. Only for one
	// that is the last, and guarded by readingMu, which is taken after mu.
	reading   bool
	readingMu sync.Mutex
	err       error // sticky: the framing is lost
	timedOut  bool
	// hurry: the deadline is chert's own, see limitReads; it does not mean that
	// the client is slow.
	hurry atomic.Bool
}

// SetBody gives x a body, which must be zero. final means that a read
// that timed out must not be tried again, last that neither another request nor
// a trailer can follow the body, and expectsContinue that the client waits for
// 100 (Continue).
func (x *Exchange) SetBody(b *Body, final, last, expectsContinue bool) {
	x.facts.Store(unread)
	b.x, b.final, b.last, b.awaits = x, final, last, expectsContinue
	x.Body, x.Req.Body = b, b
	if expectsContinue {
		x.Res.canContinue.Store(true)
	}
}

// Awaited reports whether the client may or may not send its body, because it
// expects 100 (Continue) and the body has not been read.
func (x *Exchange) Awaited() bool { return x.Body != nil && x.Body.awaits && x.is(unread) }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	// Before mu is taken: a Write that sends the head holds the response's lock
	// and then wants this one.
	if b.awaits && b.x.Res.canContinue.Load() {
		b.x.Res.sendContinue()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.over {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.read(p)
	if b.hurry.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		err = http.ErrBodyReadAfterClose // interrupt waits for mu
	}
	return n, err
}

// read is Read with b.mu held.
func (b *Body) read(p []byte) (n int, err error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case b.sawEOF:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	}
	b.setReading(true)
	n, err = b.x.m.ReadBody(p)
	b.setReading(false)
	if err == http.ErrBodyReadAfterClose {
		return n, err // by another goroutine, see Close
	} else if err == io.EOF {
		b.sawEOF = true
		b.x.facts.And(^unread)
		if b.x.cares.Load() != nil {
			b.x.watchPeer()
		}
	} else if err != nil {
		late := err != ErrLate && errors.Is(err, os.ErrDeadlineExceeded)
		own := late && b.hurry.Load()
		b.timedOut = b.timedOut || late && !own
		if late && !own {
			b.x.overdue(b.x.readDeadline, tally.LateRead)
		}
		// As with net/http: the deadline of a body with a length may be moved
		// and the read tried again; everything else is final.
		if !late || b.final {
			b.err = err
		}
		// Where others share the connection it goes on, and so may the handler.
		if !malformed(err) && !own && !(late && b.x.Shared) {
			b.x.gone()
		}
	}
	return n, err
}

// Errors of Message.ReadBody for malformed input, after which the client may
// still read a response; http.ErrLineTooLong is another.
var (
	ErrFraming = errors.New("http: malformed chunked encoding")
	ErrTrailer = errors.New("http: malformed trailer after chunked body")
)

func malformed(err error) bool {
	return err == ErrFraming || err == http.ErrLineTooLong || err == ErrTrailer
}

// A BodyDropper is a Message that is told that the handler has closed the body, the last
// of its connection or stream, before its end. A ReadBody that waits returns
// http.ErrBodyReadAfterClose then.
type BodyDropper interface{ DropBody() }

func (b *Body) setReading(v bool) {
	if b.last {
		b.readingMu.Lock()
		b.reading = v
		b.readingMu.Unlock()
	}
}

// endRead ends a Read of another goroutine, if the Message can: the handler may close the
// body in order to end it, as with net/http over HTTP/2.
func (b *Body) endRead() {
	b.readingMu.Lock()
	defer b.readingMu.Unlock()
	if b.reading {
		if d, ok := b.x.m.(BodyDropper); ok {
			d.DropBody()
		}
	}
}

// Close implements io.Closer. It reads the rest if that is small, so that the
// connection can be kept; otherwise the body stays Unfinished.
func (b *Body) Close() error {
	if b.last {
		b.endRead()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	// A client that has not got its 100 by now gets none, and may not send the body.
	unasked := b.awaits && b.x.Res.canContinue.Swap(false)
	if b.sawEOF || b.err != nil {
		return b.err
	}
	if b.last { // nothing is gained by reading
		if d, ok := b.x.m.(BodyDropper); ok && !b.over {
			d.DropBody()
		}
		return nil
	}
	// If the connection is not kept, the handler's Close reads nevertheless, as with
	// net/http: the client may send everything before it reads the response.
	closes := b.over && b.x.Res.CloseAfter.Load()
	if unasked || b.Left > MaxDrain || closes || b.timedOut {
		return nil
	}
	_, err := b.drain(MaxDrain)
	return err
}

// drain reads the rest, up to limit bytes and for Config.DrainFor: a client that
// sends the rest of an unwanted body slowly must not hold the connection.
func (b *Body) drain(limit int64) (int64, error) {
	b.hurry.Store(true)
	defer b.hurry.Store(false)
	defer b.x.limitReads(time.Now().Add(b.x.c.DrainFor))()
	return io.Copy(io.Discard, io.LimitReader(lockedBody{b}, limit))
}

// DrainBeforeHead reads the rest of the body before the answer's head is
// sent: many clients send everything before they read anything, and would wait
// for this server while it waits for them. It reports whether the connection
// can be kept, and whether there was more than is worth reading. aside calls what may
// wait for the client.
func (b *Body) DrainBeforeHead(aside func(f func())) (keep, tooBig bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.sawEOF:
		b.closed = true
		return true, false
	case b.closed || b.err != nil || b.timedOut:
		return false, false
	case b.Left >= MaxDrain:
		return false, true
	}
	var n int64
	var err error
	aside(func() { n, err = b.drain(MaxDrain + 1) })
	if n > MaxDrain {
		return false, true
	}
	b.closed = true
	return err == nil && b.sawEOF, false
}

// Unfinished reports whether bytes of the body may be left on the connection,
// so that no request can follow.
func (b *Body) Unfinished() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.sawEOF
}

// interrupt ends a Read that a goroutine of the handler still executes, and
// makes later ones fail.
func (b *Body) interrupt() {
	if b.mu.TryLock() {
		b.over = true
		b.mu.Unlock()
		return
	}
	b.hurry.Store(true)
	restore := b.x.limitReads(conn.LongAgo)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	b.hurry.Store(false)
	if errors.Is(b.err, os.ErrDeadlineExceeded) {
		b.err = nil
	}
	restore()
}

// lockedBody is the body as a Reader for a caller that holds its lock.
type lockedBody struct{ b *Body }

func (l lockedBody) Read(p []byte) (int, error) { return l.b.read(p) }

// refusal returns the status for a body that did not arrive in time or is
// malformed, 0 for any other. It is known only after the handler has read the
// body.
func (b *Body) refusal() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.timedOut && !b.x.Res.ownDeadline.Load():
		return http.StatusRequestTimeout
	case malformed(b.err):
		return http.StatusBadRequest
	}
	return 0
}
