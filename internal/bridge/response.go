package bridge

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/tally"
	"github.com/chert-http/chert/internal/view"
)

// Response is the http.ResponseWriter. Bytes flow as follows:
//
//	Write -> stage (StageSize) -> Message.Data (head, framing) -> Link
//
// mu makes misuse harmless: a goroutine that writes after the handler has
// returned finds Done set under it and never a buffer that belongs to another
// request.
type Response struct {
	x *Exchange

	mu     sync.Mutex
	header http.Header // the handler's; nil until requested
	// Progress is nil before the first write and after the end; callers that
	// may be late check Done first.
	*Progress
	wroteHeader bool  // WriteHeader was called, or Write in its place
	Done        bool  // the handler has returned
	broken      bool  // the connection has failed; known at the end
	status      int32 // of what was sent, 0 for nothing; known at the end

	// CloseAfter: the connection is not to be kept.
	CloseAfter atomic.Bool
	FullDuplex atomic.Bool
	// canContinue: a client that waits for 100 (Continue) may still get it.
	canContinue atomic.Bool
	// LateContinue: it may after WriteHeader and Write too, while they hold the head back.
	// Immutable. Over HTTP/1 it may not, as with net/http.
	LateContinue bool
	// ownDeadline: the handler has set a read deadline.
	ownDeadline atomic.Bool
	// taken is the connection after Hijack.
	taken atomic.Pointer[net.Conn]
}

// begin comes before the first use of Progress. mu is held.
func (w *Response) begin() {
	if w.Progress == nil {
		w.Progress = w.x.m.Begin()
		w.Length = -1
	}
}

func (w *Response) hijacked() bool { return w.taken.Load() != nil }

// unusable returns why the handler may not use the connection, or nil. mu is held.
func (w *Response) unusable() error {
	switch {
	case w.hijacked():
		return http.ErrHijacked
	case w.Done:
		return errDone
	}
	return nil
}

// errDone is the error of a response after its handler has returned.
var errDone = errors.New("chert: response used after its handler returned")

// Header implements http.ResponseWriter.
func (w *Response) Header() http.Header {
	w.mu.Lock()
	if w.header == nil {
		w.header = make(http.Header)
	}
	h := w.header
	w.mu.Unlock()
	return h
}

// WriteHeader implements http.ResponseWriter.
func (w *Response) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.hijacked():
		if code == 0 || int(w.status) != code { // that of passOn may have been kept back by what wraps w
			w.complain("http: response.WriteHeader on hijacked connection from %s")
		}
		return
	case w.wroteHeader:
		w.complain("http: superfluous response.WriteHeader call from %s")
		return
	case w.Done:
		return
	case code < 100 || code > 999:
		panic(fmt.Sprintf("invalid WriteHeader code %v", code))
	}
	if code > 199 || code == http.StatusSwitchingProtocols {
		w.head(code)
		return
	}
	if code == http.StatusContinue {
		w.noContinue()
	}
	// An interim response is sent immediately (RFC 9110 section 15.2).
	w.begin()
	if w.Err == nil {
		w.failed(w.x.m.Interim(code, w.header))
	}
}

// head makes the head of a response that has none and may still get one. mu is held.
func (w *Response) head(code int) {
	if code != http.StatusSwitchingProtocols && !w.LateContinue {
		w.noContinue()
	}
	w.begin()
	w.wroteHeader, w.Status = true, code
	w.x.m.Head(code, w.header)
}

// failed records an error of the connection, if it is one.
func (w *Response) failed(err error) {
	if err != nil {
		w.fail(err)
	}
}

// fail is failed for an error. It is apart so that failed is inlined.
func (w *Response) fail(err error) {
	if w.Err == nil {
		w.late(err)
	}
	w.Err = err
	w.CloseAfter.Store(true)
	w.x.gone()
}

// late counts the first error of the connection, if that is a limit of time.
func (w *Response) late(err error) {
	if err != ErrLate && errors.Is(err, os.ErrDeadlineExceeded) {
		w.x.overdue(w.x.writeBy, tally.LateWrite)
	}
}

// noContinue withdraws the 100 (Continue), which is too late now. mu is held.
func (w *Response) noContinue() {
	if w.canContinue.Load() { // a store costs more
		w.canContinue.Store(false)
	}
}

// sendContinue answers a client that waits before it sends its body.
func (w *Response) sendContinue() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.canContinue.Swap(false) || w.unusable() != nil {
		return
	}
	// RFC 9110 section 7.8: the 100 that a body waits for comes before a 101,
	// which the message still holds.
	held := w.wroteHeader && (w.Status == http.StatusSwitchingProtocols || w.LateContinue && !w.HeadOut)
	if !w.wroteHeader || held && w.Err == nil {
		w.begin()
		w.failed(w.x.m.Interim(http.StatusContinue, nil))
	}
}

// Write implements io.Writer.
func (w *Response) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.beginWrite(len(p)); err != nil || len(p) == 0 {
		return 0, err
	}
	return w.stage(p)
}

// WriteString implements io.StringWriter.
func (w *Response) WriteString(s string) (int, error) {
	// No callee writes to p or keeps it.
	return w.Write(view.Bytes(s))
}

// beginWrite checks that n bytes may be written now.
func (w *Response) beginWrite(n int) error {
	if err := w.unusable(); err != nil {
		if n > 0 && err == http.ErrHijacked {
			w.complain("http: response.Write on hijacked connection from %s")
		}
		return err
	}
	if !w.wroteHeader {
		w.head(http.StatusOK)
	} else if !w.LateContinue {
		w.noContinue()
	}
	if n == 0 {
		return nil
	}
	if !BodyAllowed(w.Status) {
		return http.ErrBodyNotAllowed
	}
	w.Written += int64(n)
	if w.Length != -1 && w.Written > w.Length {
		return http.ErrContentLength
	}
	return w.Err
}

// stage holds small writes back; a large one is passed on unsplit, as one chunk.
func (w *Response) stage(p []byte) (n int, err error) {
	for room := StageSize - len(w.Staged); len(p) > room; room = StageSize {
		k := len(p)
		if len(w.Staged) == 0 {
			err = w.emit(p)
		} else {
			k = room
			w.Staged = append(w.Staged, p[:k]...)
			err = w.flushStage()
		}
		if err != nil {
			return n, err
		}
		n += k
		p = p[k:]
	}
	w.Staged = append(w.Staged, p...)
	return n + len(p), nil
}

// flushStage sends what is held back, and the head.
func (w *Response) flushStage() error {
	err := w.emit(w.Staged)
	w.Staged = w.Staged[:0]
	return err
}

// emit sends p, which may be empty, as the next piece of the body, after the head if that
// was not sent yet.
func (w *Response) emit(p []byte) error {
	if !w.HeadOut {
		if w.HeadOut = true; w.LateContinue {
			w.noContinue() // no Read may wait for mu, which a Write may hold while it waits for the client
		}
		w.failed(w.x.m.Complete(p))
	}
	if len(p) > 0 && !w.x.IsHEAD && w.Err == nil {
		w.Given += int64(len(p))
		w.failed(w.x.m.Data(p))
	}
	return w.Err
}

// flush sends what was written so far.
func (w *Response) flush() error {
	if w.Progress == nil {
		return nil
	}
	if w.Err == nil {
		w.failed(w.x.m.Flush())
	}
	return w.Err
}

// Flush implements http.Flusher.
func (w *Response) Flush() { w.FlushError() }

// FlushError is what http.ResponseController calls.
func (w *Response) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.unusable(); err != nil {
		return err
	}
	if !w.wroteHeader {
		w.head(http.StatusOK)
	}
	w.flushStage()
	return w.flush()
}

// SetReadDeadline, SetWriteDeadline and EnableFullDuplex are what
// http.ResponseController calls. They do not lock mu: a Write that waits holds
// it, and a deadline must be able to end that wait.
func (w *Response) SetReadDeadline(deadline time.Time) error {
	w.ownDeadline.Store(true)
	return w.control(func() {
		w.x.seldom().readBy = deadline
		w.x.peer().SetReadDeadline(deadline)
	}, func(nc net.Conn) error { return nc.SetReadDeadline(deadline) })
}

func (w *Response) SetWriteDeadline(deadline time.Time) error {
	return w.control(func() {
		r := w.x.seldom()
		r.writeBy, r.ownWrite = deadline, true
		w.x.peer().SetWriteDeadline(deadline)
	}, func(nc net.Conn) error { return nc.SetWriteDeadline(deadline) })
}

func (w *Response) EnableFullDuplex() error {
	return w.control(func() { w.FullDuplex.Store(true) }, func(net.Conn) error { return nil })
}

// control calls f while the connection is the handler's, and hijacked after
// Hijack.
func (w *Response) control(f func(), hijacked func(net.Conn) error) error {
	if nc := w.taken.Load(); nc != nil {
		if *nc == nil { // a stream that was taken over
			return errDone
		}
		return hijacked(*nc)
	}
	if !w.x.use(f) {
		return errDone
	}
	return nil
}

// CloseNotify implements http.CloseNotifier, which frameworks still use.
func (w *Response) CloseNotify() <-chan bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.Done:
		panic("net/http: CloseNotify called after ServeHTTP finished")
	case w.hijacked():
		return make(chan bool) // the client is no longer watched
	}
	w.begin()
	if w.notify == nil {
		ch := make(chan bool, 1)
		w.notify = ch
		(*reqContext)(w.x).AfterFunc(func() {
			if w.x.is(left) {
				ch <- true
			}
		})
	}
	return w.notify
}

// finish sends the rest after the handler has returned, and returns the Outcome
// for the watcher.
func (w *Response) finish() (conn.Next, Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hijacked() {
		return conn.Detached, Outcome{}
	}
	if !w.wroteHeader {
		w.implicitHeader()
	}
	w.Done = true
	w.flushStage()
	short := w.Length != -1 && w.Length != w.Written && !w.x.IsHEAD && BodyAllowed(w.Status)
	before := w.Err
	next := w.x.m.Finish(w.header, short)
	if w.broken = w.Err != nil; w.broken && before == nil {
		w.late(w.Err)
	}
	w.status = int32(w.Status)
	o := w.end()
	o.d.Complete = !w.broken && !short
	return next, o
}

// missing reports whether the response was 404 or 405.
func (w *Response) missing() bool {
	return w.status == http.StatusNotFound || w.status == http.StatusMethodNotAllowed
}

// implicitHeader sends the status of a handler that wrote nothing: 200, or the
// refusal of a body that it could not read.
func (w *Response) implicitHeader() {
	status := http.StatusOK
	if w.x.Body != nil {
		if bad := w.x.Body.refusal(); bad != 0 {
			w.CloseAfter.Store(true)
			status = bad
		}
	}
	w.head(status)
}

// abort ends the response of a handler that panicked. What was already flushed or gathered
// is sent, so that the client sees the partial response.
func (w *Response) abort() (next conn.Next, o Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hijacked() {
		return conn.Detached, o
	}
	w.Done = true
	w.CloseAfter.Store(true)
	if w.Progress != nil && w.HeadOut {
		// Otherwise there is at most the beginning of a head, which no client
		// could use.
		w.status = int32(w.Status)
		w.flush()
	}
	return conn.Close, w.end()
}

// complain logs a handler's mistake with its source location.
func (w *Response) complain(format string) {
	pc := make([]uintptr, 16)
	frames := runtime.CallersFrames(pc[:runtime.Callers(3, pc)])
	var at runtime.Frame
	for {
		f, more := frames.Next()
		at = f
		if !more || !strings.HasPrefix(f.Function, "net/http.") &&
			!strings.Contains(f.Function, "chert/internal/bridge.") {
			break
		}
	}
	w.x.c.Logf(format, fmt.Sprintf("%s (%s:%d)", at.Function, path.Base(at.File), at.Line))
}

// BodyAllowed reports whether a response with this status may have content (RFC
// 9110 section 6.4.1).
func BodyAllowed(status int) bool { return status >= 200 && status != 204 && status != 304 }
