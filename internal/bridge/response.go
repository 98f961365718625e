package bridge

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/http1"
)

const (
	// stageSize is how much body is held back before the head must go: a
	// handler that ends before gets a Content-Length. net/http's value, so
	// that the same handlers get the same framing.
	stageSize = 2 << 10
	// wireSize is how much is gathered before it is written.
	wireSize = 4 << 10
)

// response is the http.ResponseWriter. Bytes take this way:
//
//	Write -> stage (stageSize) -> emit (head, chunk framing) -> wire (wireSize) -> Transport
//
// mu makes misuse harmless: a goroutine that writes after the handler has
// returned finds handlerDone under it and never a buffer that is somebody
// else's by now.
type response struct {
	x *exchange

	mu     sync.Mutex
	header http.Header // the handler's; nil until asked for
	// writing is how far the response has come: nil before anything was
	// written, and after the end; who may come then looks at handlerDone first.
	*writing
	wroteHeader bool // WriteHeader was called, or Write in its place
	handlerDone bool
	hijacked    bool
	limitHit    bool // http.MaxBytesReader asked to close
	broken      bool // the connection has failed; known at the end
	missing     bool // the status is 404 or 405; known at the end

	closeAfter      atomic.Bool
	fullDuplex      atomic.Bool
	expectsContinue bool
	// canContinue: the client waits for 100 (Continue) and may still get it.
	canContinue atomic.Bool
	// ownDeadline: the handler has set a read deadline.
	ownDeadline atomic.Bool
	// taken is the connection after Hijack.
	taken atomic.Pointer[net.Conn]
}

// writing is a response under way and its buffers. It is pooled.
type writing struct {
	progress
	wireBuf  [wireSize]byte
	stageBuf [stageSize]byte
}

type progress struct {
	// out is a head, then what is gathered before it is written: in wireBuf,
	// but a head that is larger moves away.
	out    []byte
	staged []byte // body held back, in stageBuf
	// head says what is in out between WriteHeader and sendHead.
	head     encodedHead
	status   int
	length   int64 // declared Content-Length, -1 for none
	written  int64
	headOut  bool // the head is in wire or beyond
	chunking bool
	trailers []string
	err      error     // of the connection; sticky
	notify   chan bool // for CloseNotify
}

var writings = sync.Pool{New: func() any { return new(writing) }}

// begin comes before the first use of writing. mu is held.
func (w *response) begin() {
	if w.writing == nil {
		w.writing = writings.Get().(*writing)
		w.out, w.staged = w.wireBuf[:0], w.stageBuf[:0]
		w.length = -1
	}
}

// end is behind the last use of writing. mu is held.
func (w *response) end() {
	if w.writing != nil {
		w.progress = progress{}
		writings.Put(w.writing)
		w.writing = nil
	}
}

// usable reports whether the connection is the handler's. mu is held.
func (w *response) usable() bool { return !w.handlerDone && !w.hijacked }

// errDone is what a response gives after its handler has returned.
var errDone = errors.New("chert: response used after its handler returned")

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header {
	w.mu.Lock()
	if w.header == nil {
		w.header = make(http.Header)
	}
	h := w.header
	w.mu.Unlock()
	return h
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(code)
}

func (w *response) writeHeader(code int) {
	switch {
	case w.hijacked:
		w.complain("http: response.WriteHeader on hijacked connection from %s")
		return
	case w.wroteHeader:
		w.complain("http: superfluous response.WriteHeader call from %s")
		return
	case w.handlerDone:
		return
	case code < 100 || code > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %v", code))
	}
	if code < 101 || code > 199 {
		w.canContinue.Store(false)
	}
	if code <= 199 && code != http.StatusSwitchingProtocols {
		w.informational(code)
		return
	}
	w.begin()
	w.wroteHeader, w.status = true, code
	w.encodeHead()
}

// informational sends an interim answer at once (RFC 9110 section 15.2).
func (w *response) informational(code int) {
	if w.x.minor == 0 {
		// A server MUST NOT send a 1xx response to an HTTP/1.0 client.
		return
	}
	w.begin()
	w.out = http1.AppendStatusLine(w.out, 1, code)
	w.out = appendHeader(w.out, w.header, excludeNoBody)
	w.out = append(w.out, "\r\n"...)
	w.flushWire(nil)
}

// sendContinue answers the client that waits before it sends its body.
func (w *response) sendContinue() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.canContinue.Swap(false) || !w.usable() {
		return
	}
	const proceed = "HTTP/1.1 100 Continue\r\n\r\n"
	switch {
	case !w.wroteHeader:
		w.begin()
		w.out = append(w.out, proceed...)
		w.flushWire(nil)
	case w.status == http.StatusSwitchingProtocols && w.err == nil:
		// RFC 9110 section 7.8: the 100 that a body waits for comes before the
		// 101, which stands in the buffer.
		if w.err = w.x.c.t.Write2([]byte(proceed), nil); w.err != nil {
			w.closeAfter.Store(true)
			w.x.gone()
		}
	}
}

// Write implements io.Writer.
func (w *response) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.beginWrite(len(p)); err != nil || len(p) == 0 {
		return 0, err
	}
	return w.stage(p)
}

// WriteString implements io.StringWriter.
func (w *response) WriteString(s string) (int, error) {
	// Nothing below writes to p or keeps it.
	return w.Write(bytesOf(s))
}

// beginWrite checks that n bytes may be written now.
func (w *response) beginWrite(n int) error {
	switch {
	case w.hijacked:
		if n > 0 {
			w.complain("http: response.Write on hijacked connection from %s")
		}
		return http.ErrHijacked
	case w.handlerDone:
		return errDone
	}
	w.canContinue.Store(false)
	if !w.wroteHeader {
		w.writeHeader(http.StatusOK)
	}
	if n == 0 {
		return nil
	}
	if !http1.BodyAllowed(w.status) {
		return http.ErrBodyNotAllowed
	}
	w.written += int64(n)
	if w.length != -1 && w.written > w.length {
		return http.ErrContentLength
	}
	return w.err
}

// stage holds small writes back; a large one goes on whole, as one chunk.
func (w *response) stage(p []byte) (n int, err error) {
	for room := stageSize - len(w.staged); len(p) > room; room = stageSize {
		k := len(p)
		if len(w.staged) == 0 {
			err = w.emit(p)
		} else {
			k = room
			w.staged = append(w.staged, p[:k]...)
			err = w.flushStage()
		}
		if err != nil {
			return n, err
		}
		n += k
		p = p[k:]
	}
	w.staged = append(w.staged, p...)
	return n + len(p), nil
}

func (w *response) flushStage() error {
	if len(w.staged) == 0 {
		return w.err
	}
	err := w.emit(w.staged)
	w.staged = w.staged[:0]
	return err
}

// emit sends p as the next piece of body, behind the head if that is due.
func (w *response) emit(p []byte) error {
	w.sendHead(p)
	if w.x.isHEAD {
		return w.err
	}
	if !w.chunking {
		return w.toWire(p)
	}
	if len(w.out) > wireSize-32 {
		w.flushWire(nil)
	}
	w.out = http1.AppendChunkSize(w.out, len(p))
	w.toWire(p)
	w.out = append(w.out, "\r\n"...)
	return w.err
}

// toWire gathers p, or writes it with what was gathered when it is large.
func (w *response) toWire(p []byte) error {
	// Two bytes of room stay for the CRLF of a chunk.
	if len(w.out)+len(p) <= wireSize-2 {
		w.out = append(w.out, p...)
		return w.err
	}
	return w.flushWire(p)
}

// flushWire writes what was gathered and then p.
func (w *response) flushWire(p []byte) error {
	if w.writing == nil {
		return nil
	}
	have := w.out
	w.out = w.out[:0]
	if w.err != nil || len(have)+len(p) == 0 {
		return w.err
	}
	if w.err = w.x.c.t.Write2(have, p); w.err != nil {
		w.closeAfter.Store(true)
		w.x.gone()
	}
	return w.err
}

// lastWire writes what was gathered as the last of the response.
func (w *response) lastWire() {
	if w.err != nil || len(w.out) == 0 {
		return
	}
	t := w.x.c.t
	if !w.x.bodyDone.Load() {
		// Somebody may be reading the body still, and what is at hand is of it.
		w.err = t.Write2(w.out, nil)
		return
	}
	w.err = t.WriteLast(w.out)
}

// Flush implements http.Flusher.
func (w *response) Flush() { w.FlushError() }

// FlushError is what http.ResponseController calls.
func (w *response) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.usable() {
		return errDone
	}
	if !w.wroteHeader {
		w.writeHeader(http.StatusOK)
	}
	w.flushStage()
	w.sendHead(nil)
	return w.flushWire(nil)
}

// SetReadDeadline, SetWriteDeadline and EnableFullDuplex are what
// http.ResponseController calls. They do not take mu: a Write that waits holds
// it, and a deadline is there to end that wait.
func (w *response) SetReadDeadline(deadline time.Time) error {
	w.ownDeadline.Store(true)
	return w.control(func(t conn.Transport) {
		w.x.readBy = &deadline
		t.SetReadDeadline(deadline)
	}, func(nc net.Conn) error { return nc.SetReadDeadline(deadline) })
}

func (w *response) SetWriteDeadline(deadline time.Time) error {
	return w.control(func(t conn.Transport) { t.SetWriteDeadline(deadline) },
		func(nc net.Conn) error { return nc.SetWriteDeadline(deadline) })
}

func (w *response) EnableFullDuplex() error {
	return w.control(func(conn.Transport) { w.fullDuplex.Store(true) }, func(net.Conn) error { return nil })
}

// control does f while the connection is the handler's, and hijacked when it
// is the hijacker's.
func (w *response) control(f func(t conn.Transport), hijacked func(net.Conn) error) error {
	if nc := w.taken.Load(); nc != nil {
		return hijacked(*nc)
	}
	w.x.deadlines.Store(true)
	if !w.x.use(f) {
		return errDone
	}
	return nil
}

// tooLarge gives the connection up because its request's body is.
func (w *response) tooLarge() {
	w.closeAfter.Store(true)
	w.limitHit = true
	if !w.wroteHeader {
		if w.header == nil {
			w.header = make(http.Header)
		}
		w.header.Set("Connection", "close")
	}
}

// CloseNotify implements http.CloseNotifier, which frameworks still ask for.
func (w *response) CloseNotify() <-chan bool {
	w.mu.Lock()
	if w.handlerDone {
		w.mu.Unlock()
		panic("net/http: CloseNotify called after ServeHTTP finished")
	}
	if w.hijacked {
		w.mu.Unlock()
		return make(chan bool) // nobody watches the client any more
	}
	w.begin()
	first := w.notify == nil
	if first {
		w.notify = make(chan bool, 1)
	}
	ch := w.notify
	w.mu.Unlock()
	if first {
		w.x.ctx.AfterFunc(func() {
			if w.x.left.Load() {
				ch <- true
			}
		})
	}
	return ch
}
