package wrap

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// ErrDone is what a Writer returns to goroutines that use it after its handler has
// returned.
var ErrDone = errors.New("middleware: response used after its handler returned")

// A Hook is told what a handler does to its answer and decides what comes of
// it. It passes on to Writer.Next. Its methods are called one at a time, whatever
// goroutine writes, not after Hijack but for End, and not after that.
type Hook interface {
	// WriteHeader has a final status, once, before any Write.
	WriteHeader(status int)
	// Write has the body, in pieces.
	Write(p []byte) (int, error)
	// Flush must pass on all that is held.
	Flush() error
	// ReadFrom reports false if the body is to come by Write instead.
	// Otherwise it may go to Next as it is: all that is held has been passed on.
	// n is the length of what comes, -1 if unknown.
	ReadFrom(n int64) bool
	// End completes the answer when the handler has returned. After a panic,
	// returned is false: nothing more is to be sent. What is pooled goes back now.
	End(returned bool)
}

// A Writer stands around another response writer. It passes on Flush, Hijack,
// ReadFrom, WriteString, wire.FileSender, CloseNotify and, by Unwrap, all that
// http.ResponseController can do.
//
// Hijack, Flush and CloseNotify are there also if the other writer has none;
// Hijack and FlushError then give http.ErrNotSupported. It is not a
// wire.FileSender unless the other is, since the next best way to send a file
// depends on that; so give handlers what Init returns.
//
// It is one handler's and is not used again for another request: a goroutine that
// kept it must not reach another client's answer. A goroutine that outlives the
// handler may use it at any time: with a hook it gets ErrDone after End, without
// one it reaches Next, which has its own rules for that.
type Writer struct {
	next http.ResponseWriter
	hook Hook // nil: all goes to next
	file fileWriter
	user atomic.Pointer[string]

	// Without a hook, status and bytes of body, in one word: a request then costs
	// one atomic operation more, not two.
	state atomic.Uint64

	mu       sync.Mutex // held while the hook is called; not used without one
	hijacked atomic.Bool
	began    bool // with a hook: there is a final status; under mu
	done     bool // with a hook: End was called; under mu

	// Claimable is for Claim: the status is known before anything is passed on,
	// and Written is not. Set before Init.
	Claimable bool
}

// A state is a final status, 0 before there is one, above the bytes written.
const (
	statusShift = 54
	claimed     = 1<<10 - 1 // the status that Claim leaves, so that no other begins
)

// fileWriter is a Writer around a wire.FileSender.
type fileWriter struct{ *Writer }

// Init makes w stand around next and returns what a handler is to be given. It
// does not allocate. hook may be nil.
func (w *Writer) Init(next http.ResponseWriter, hook Hook) http.ResponseWriter {
	w.next, w.hook = next, hook
	if _, ok := next.(wire.FileSender); ok {
		w.file.Writer = w
		return w.file
	}
	return w
}

// End tells the hook that the handler has returned, or has panicked, and makes
// all later calls fail. It waits for one that is under way.
func (w *Writer) End(returned bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done {
		w.done = true
		w.hook.End(returned)
	}
}

// Claim reports whether no answer has begun. None will then by w, which is for
// answering instead of it by Next. w must be Claimable and have no hook.
func (w *Writer) Claim() bool { return w.state.CompareAndSwap(0, claimed<<statusShift) }

// Next is the writer that w stands around.
func (w *Writer) Next() http.ResponseWriter { return w.next }

// Status is that of the final answer, 0 before there is one. w has no hook.
func (w *Writer) Status() int { return int(w.state.Load() >> statusShift) }

// Written is how many bytes of body the handler has written; for HEAD too,
// where none is sent. w has no hook.
func (w *Writer) Written() int64 { return int64(w.state.Load() & (1<<statusShift - 1)) }

// Hijacked reports whether the connection is the handler's.
func (w *Writer) Hijacked() bool { return w.hijacked.Load() }

// NoteUser is for WithUser. What has a hook, or is for Claim, is no log.
func (w *Writer) NoteUser(name *string) {
	if w.hook == nil && !w.Claimable {
		w.user.Store(name)
	}
}

// User is what was noted.
func (w *Writer) User() string {
	if name := w.user.Load(); name != nil {
		return *name
	}
	return ""
}

// Unwrap is for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.next }

// Header implements http.ResponseWriter.
func (w *Writer) Header() http.Header { return w.next.Header() }

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(status int) {
	// RFC 9110 section 15.2: 1xx is not final, but for 101, after which the
	// protocol is another. What is no status, or comes twice, is next's to
	// complain of.
	final := (status == http.StatusSwitchingProtocols || status >= 200) && status <= 999 && !w.Hijacked()
	if w.hook != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case w.done:
		case final && !w.began:
			w.began = true
			w.hook.WriteHeader(status)
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

// enter comes before what goes to next, if there is no hook.
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

// count comes after n bytes of body have gone to next, if there is no hook.
func (w *Writer) count(n int64) {
	if w.Claimable || w.Hijacked() {
		return
	}
	if w.state.Load() == 0 && w.state.CompareAndSwap(0, http.StatusOK<<statusShift+uint64(n)) {
		return
	}
	w.state.Add(uint64(n))
}

// begin comes before what is the hook's, or next's after Hijack. mu is held.
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

// through reports whether n bytes, -1 if unknown, may go to next as they are.
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
		// Write counts, and begins when the source has given something: it may
		// fail before.
		return io.Copy(writeOnly{w}, src)
	}
	n, err = to.ReadFrom(src)
	if n > 0 {
		w.enter()
		w.count(n)
	}
	return n, err
}

// lengthOf is what io.CopyN and http.ServeContent say of their length.
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

// Hijack implements http.Hijacker.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.hook != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.done {
			return nil, nil, ErrDone
		}
	}
	c, rw, err := http.NewResponseController(w.next).Hijack()
	if err == nil {
		w.hijacked.Store(true)
	}
	return c, rw, err
}

// CloseNotify implements http.CloseNotifier, which gin asks every writer for.
func (w *Writer) CloseNotify() <-chan bool { return CloseNotify(w.next) }

// CloseNotify is what w knows of its client's end: nothing, if it is no
// http.CloseNotifier.
func CloseNotify(w http.ResponseWriter) <-chan bool {
	//lint:ignore SA1019 frameworks still use it
	if n, ok := w.(http.CloseNotifier); ok {
		return n.CloseNotify()
	}
	return make(chan bool)
}

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

// Innermost is the writer that no other is inside of: the server's. Package
// net/http finds out there what it cannot ask others.
func Innermost(w http.ResponseWriter) http.ResponseWriter {
	for {
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = u.Unwrap()
	}
}
