package wrap

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// ErrDone is what a Writer returns to goroutines that use it after its handler
// has returned.
var ErrDone = errors.New("middleware: response used after its handler returned")

// A Hook receives what a handler writes and decides what is sent, by
// Writer.PassHead and Writer.Next. Its methods are called one at a time, even
// if several goroutines write. Hijack calls Flush, with Hijacked true already, if
// the response has begun; after it only End is called, and nothing after End.
type Hook interface {
	// WriteHeader receives a final status, once, before any Write. It may hold
	// the head back.
	WriteHeader(status int)
	// Write receives the body, in pieces.
	Write(p []byte) (int, error)
	// Flush must pass on everything that is buffered.
	Flush() error
	// ReadFrom reports false if the body must come by Write instead. Otherwise
	// it may go to Next directly: everything buffered has been passed on. n is
	// the length of what comes, -1 if unknown.
	ReadFrom(n int64) bool
	// End completes the response when the handler has returned. After a panic,
	// returned is false: nothing more may be sent. Pooled objects are released
	// now.
	End(returned bool)
}

// A Writer wraps another response writer. It passes on Flush, Hijack, ReadFrom,
// WriteString, wire.FileSender, CloseNotify and, by Unwrap, everything that
// http.ResponseController can do.
//
// Hijack, Flush and CloseNotify exist also if the other writer does not have
// them; Hijack and FlushError then return http.ErrNotSupported. It is a
// wire.FileSender only if the other is, since the next best way to send a file
// depends on that; so handlers must be given the result of Init.
//
// It serves one handler and is not reused for another request: a goroutine that
// retains it must not reach another client's response. A goroutine that
// outlives the handler may use it at any time: with a hook it gets ErrDone
// after End, without one it reaches Next, which has rules of its own.
type Writer struct {
	next http.ResponseWriter
	hook Hook // nil: everything goes to next
	file fileWriter
	user atomic.Pointer[string]
	log  atomic.Value // of NoteLog
	more atomic.Value // of NoteMore

	// Without a hook, status and bytes of body in one word: a request then
	// costs one more atomic operation, not two.
	state atomic.Uint64

	mu       sync.Mutex // held while the hook is called; not used without one
	hijacked atomic.Bool
	began    bool // with a hook: there is a final status; under mu
	passed   bool // with a hook: PassHead was called; under mu
	done     bool // with a hook: End was called; under mu

	// With a hook that holds the head back, under mu: kept is the header that the
	// head is made of; after Recall, later are the changes since, nil for a field
	// that was removed.
	kept, later http.Header

	// Claimable enables Claim: the status is recorded before anything is passed
	// on, and Written is not counted. Set before Init.
	Claimable bool
}

// A state has the final status, 0 before there is one, above the count of bytes
// written.
const (
	statusShift = 54
	claimed     = 1<<10 - 1 // the status that Claim sets, so that no other response begins
)

// fileWriter is a Writer that wraps a wire.FileSender.
type fileWriter struct{ *Writer }

// Init makes w wrap next and returns the writer to give to the handler. It does
// not allocate. hook may be nil.
func (w *Writer) Init(next http.ResponseWriter, hook Hook) http.ResponseWriter {
	w.next, w.hook = next, hook
	if _, ok := next.(wire.FileSender); ok {
		w.file.Writer = w
		return w.file
	}
	return w
}

// Serve calls next with the writer that Init makes of w, to and hook, and then End.
func (w *Writer) Serve(next http.Handler, to http.ResponseWriter, r *http.Request, hook Hook) {
	returned := false
	defer func() { w.End(returned) }()
	next.ServeHTTP(w.Init(to, hook), r)
	returned = true
}

// End notifies the hook that the handler has returned or panicked, and makes
// all later calls fail. It waits for a call in progress.
func (w *Writer) End(returned bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done {
		w.done = true
		w.hook.End(returned)
	}
}

// Claim reports whether no response has begun. Afterwards w begins none, and
// the caller may respond by Next. w must be Claimable and have no hook.
func (w *Writer) Claim() bool { return w.state.CompareAndSwap(0, claimed<<statusShift) }

// PassHead begins the response. Only the hook calls it, instead of
// Next().WriteHeader, and once: it may have held the head back. If so, it calls
// Recall before.
func (w *Writer) PassHead(status int) {
	w.passed = true
	w.next.WriteHeader(status)
	if w.later == nil {
		return
	}
	h := w.next.Header()
	for name, values := range w.later {
		if values == nil {
			delete(h, name)
		} else {
			h[name] = values
		}
	}
	w.later = nil
}

// Recall makes the header again what it was when the handler began the
// response, until PassHead: later changes are for trailers only. It precedes
// what the hook itself reads and changes. It has no effect if the head is not
// held back, and when it is repeated.
func (w *Writer) Recall() {
	h, kept := w.next.Header(), w.kept
	w.kept = nil
	if kept == nil || maps.EqualFunc(h, kept, slices.Equal) {
		return
	}
	w.later = make(http.Header)
	for name, values := range h {
		switch before, ok := kept[name]; {
		case !ok:
			w.later[name] = values
			delete(h, name)
		case !slices.Equal(values, before):
			w.later[name] = values
			h[name] = before
		}
	}
	for name, before := range kept {
		if _, ok := h[name]; !ok {
			w.later[name] = nil
			h[name] = before
		}
	}
}

// keep precedes the handler's next step. mu is held, and there is a hook.
func (w *Writer) keep() {
	if w.began && !w.passed && w.kept == nil && !w.Hijacked() {
		w.kept = w.next.Header().Clone()
	}
}

// Next returns the wrapped writer.
func (w *Writer) Next() http.ResponseWriter { return w.next }

// Hook returns the hook that Init was given, by which middleware inside recognizes others.
func (w *Writer) Hook() Hook { return w.hook }

// Status returns that of the final response, 0 before there is one. w must have
// no hook.
func (w *Writer) Status() int { return int(w.state.Load() >> statusShift) }

// Written returns how many bytes of body the handler has written; for HEAD too,
// where none are sent. w must have no hook.
func (w *Writer) Written() int64 { return int64(w.state.Load() & (1<<statusShift - 1)) }

// Hijacked reports whether the handler has taken over the connection.
func (w *Writer) Hijacked() bool { return w.hijacked.Load() }

// NoteUser is called by filter.Call.SetUser. Writers with a hook, or for Claim,
// are no logs.
func (w *Writer) NoteUser(name *string) {
	if w.hook == nil && !w.Claimable {
		w.user.Store(name)
	}
}

// User returns the name given to NoteUser.
func (w *Writer) User() string {
	if name := w.user.Load(); name != nil {
		return *name
	}
	return ""
}

// NoteLog sets what Log returns, and reports whether w belongs to a log. All values
// must have one type.
func (w *Writer) NoteLog(log any) bool {
	if w.hook != nil || w.Claimable {
		return false
	}
	w.log.Store(log)
	return true
}

// Log returns what was given to NoteLog, nil for nothing.
func (w *Writer) Log() any { return w.log.Load() }

// NoteMore sets what More returns, and reports whether w belongs to a log. All values must
// have one type.
func (w *Writer) NoteMore(more any) bool {
	if w.hook != nil || w.Claimable {
		return false
	}
	w.more.Store(more)
	return true
}

// More returns what was given to NoteMore, nil for nothing.
func (w *Writer) More() any { return w.more.Load() }

// Unwrap is for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.next }

// Header implements http.ResponseWriter.
func (w *Writer) Header() http.Header { return w.next.Header() }

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(status int) {
	// RFC 9110 section 15.2: 1xx is not final, except for 101, after which the
	// protocol is another. Invalid and repeated statuses are left for next to
	// report, unless it would take one for the first.
	final := (status == http.StatusSwitchingProtocols || status >= 200) && status <= 999 && !w.Hijacked()
	if w.hook != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case w.done:
		case final && !w.began:
			w.began = true
			w.hook.WriteHeader(status)
			w.keep()
		case w.began && !w.passed && !w.Hijacked(): // next does not have the first one yet
		default:
			w.next.WriteHeader(status)
		}
		return
	}
	if final {
		w.state.CompareAndSwap(0, uint64(status)<<statusShift)
	}
	if w.Status() != claimed {
		w.next.WriteHeader(status)
	}
}

// enter precedes what goes to next, if there is no hook.
func (w *Writer) enter() error {
	if w.Claimable {
		if w.Status() == 0 && !w.Hijacked() {
			w.state.CompareAndSwap(0, http.StatusOK<<statusShift)
		}
		if w.Status() == claimed {
			return ErrDone
		}
	}
	return nil
}

// count follows n bytes of body that went to next, if there is no hook.
func (w *Writer) count(n int64) {
	if w.Claimable || w.Hijacked() {
		return
	}
	if w.state.Load() == 0 && w.state.CompareAndSwap(0, http.StatusOK<<statusShift+uint64(n)) {
		return
	}
	w.state.Add(uint64(n))
}

// begin precedes calls of the hook, or of next after Hijack. mu is held.
func (w *Writer) begin() (hooked bool, err error) {
	if w.done {
		return false, ErrDone
	}
	if w.Hijacked() {
		return false, nil
	}
	if !w.began {
		w.began = true
		w.hook.WriteHeader(http.StatusOK)
	}
	return true, nil
}

// Write implements http.ResponseWriter.
func (w *Writer) Write(p []byte) (n int, err error) {
	if w.hook != nil {
		return w.writeHooked(p)
	}
	if err := w.enter(); err != nil {
		return 0, err
	}
	n, err = w.next.Write(p)
	w.count(int64(n))
	return n, err
}

func (w *Writer) writeHooked(p []byte) (n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	hooked, err := w.begin()
	switch {
	case err != nil:
		return 0, err
	case hooked:
		defer w.keep()
		return w.hook.Write(p)
	}
	return w.next.Write(p)
}

// WriteString implements io.StringWriter.
func (w *Writer) WriteString(s string) (n int, err error) {
	if w.hook != nil {
		return w.writeHooked([]byte(s))
	}
	if err := w.enter(); err != nil {
		return 0, err
	}
	n, err = io.WriteString(w.next, s)
	w.count(int64(n))
	return n, err
}

// through reports whether n bytes, -1 if unknown, may go to next directly.
// There is a hook.
func (w *Writer) through(n int64) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	hooked, err := w.begin()
	return err == nil && (!hooked || w.hook.ReadFrom(n)), err
}

// ReadFrom implements io.ReaderFrom. The lock is not held during it: the source
// may be slow.
func (w *Writer) ReadFrom(src io.Reader) (n int64, err error) {
	to, ok := w.next.(io.ReaderFrom)
	if w.hook != nil {
		through, err := w.through(lengthOf(src))
		if err != nil {
			return 0, err
		}
		if ok && through {
			return to.ReadFrom(src)
		}
		return io.Copy(writeOnly{w}, src)
	}
	if !ok || w.Status() == claimed {
		// Write counts, and begins when the source has returned something: it
		// may fail before.
		return io.Copy(writeOnly{w}, src)
	}
	returned := false
	defer func() {
		// A source that panics may have returned data before, which next has.
		if n > 0 || !returned {
			w.enter()
			w.count(n)
		}
	}()
	n, err = to.ReadFrom(src)
	returned = true
	return n, err
}

// lengthOf returns the length that io.CopyN and http.ServeContent state.
func lengthOf(src io.Reader) int64 {
	if l, ok := src.(*io.LimitedReader); ok {
		return l.N
	}
	return -1
}

// writeOnly hides ReadFrom from io.Copy.
type writeOnly struct{ io.Writer }

// Flush implements http.Flusher.
func (w *Writer) Flush() { w.FlushError() }

// FlushError is Flush for http.ResponseController.
func (w *Writer) FlushError() error {
	if w.hook == nil {
		if err := w.enter(); err != nil {
			return err
		}
		w.count(0)
		return http.NewResponseController(w.next).Flush()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	hooked, err := w.begin()
	if hooked {
		err = w.hook.Flush()
	}
	if err != nil {
		return err
	}
	return http.NewResponseController(w.next).Flush()
}

// Hijack implements http.Hijacker. Like servers, it sends first what was written.
func (w *Writer) Hijack() (c net.Conn, rw *bufio.ReadWriter, err error) {
	if w.hook != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.done {
			return nil, nil, ErrDone
		}
		if w.began && !w.Hijacked() {
			w.hijacked.Store(true)
			defer func() { w.hijacked.Store(err == nil) }()
			if err = w.hook.Flush(); err != nil {
				return nil, nil, err
			}
		}
	}
	c, rw, err = http.NewResponseController(w.next).Hijack()
	if err == nil {
		w.hijacked.Store(true)
	}
	return c, rw, err
}

// CloseNotify implements http.CloseNotifier, which gin asks every writer for.
func (w *Writer) CloseNotify() <-chan bool { return CloseNotify(w.next) }

// SendFile implements wire.FileSender.
func (w fileWriter) SendFile(f direct.File) error {
	if w.hook != nil {
		through, err := w.through(f.Len)
		if err != nil {
			return err
		}
		if !through {
			return f.CopyTo(w.Writer)
		}
		return w.next.(wire.FileSender).SendFile(f)
	}
	if err := w.enter(); err != nil {
		return err
	}
	w.count(0)
	err := w.next.(wire.FileSender).SendFile(f)
	if err == nil {
		w.count(f.Len)
	}
	return err
}
