package wrap

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/chert-http/chert/direct"
)

// A Hook is told what a handler does to its answer and decides what comes of
// it. It passes on to Writer.Next. Its methods are called by the handler's
// goroutine, one at a time, and not after Hijack.
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
}

// A Writer stands around another response writer. It passes on Flush, Hijack,
// ReadFrom, WriteString, direct.FileSender, CloseNotify and, by Unwrap, all that
// http.ResponseController can do.
//
// Hijack, Flush and CloseNotify are there also if the other writer has none;
// Hijack and FlushError then give http.ErrNotSupported. It is not a
// direct.FileSender unless the other is, since the next best way to send a file
// depends on that; so give handlers what Init returns.
//
// It is one handler's and is not used again for another request: whoever kept it
// must not reach a stranger's answer.
type Writer struct {
	next http.ResponseWriter
	hook Hook // nil: all goes to next
	file fileWriter

	user     string
	status   int
	written  int64
	hijacked bool
}

// fileWriter is a Writer around a direct.FileSender.
type fileWriter struct{ *Writer }

// Init makes w stand around next and returns what a handler is to be given. It
// does not allocate. hook may be nil.
func (w *Writer) Init(next http.ResponseWriter, hook Hook) http.ResponseWriter {
	w.next, w.hook = next, hook
	if _, ok := next.(direct.FileSender); ok {
		w.file.Writer = w
		return w.file
	}
	return w
}

// Next is the writer that w stands around.
func (w *Writer) Next() http.ResponseWriter { return w.next }

// Status is that of the final answer, 0 before there is one.
func (w *Writer) Status() int { return w.status }

// Written is how many bytes of body the handler has written; for HEAD too,
// where none is sent.
func (w *Writer) Written() int64 { return w.written }

// Hijacked reports whether the connection is the handler's.
func (w *Writer) Hijacked() bool { return w.hijacked }

// NoteUser is for WithUser.
func (w *Writer) NoteUser(name string) { w.user = name }

// User is what was noted.
func (w *Writer) User() string { return w.user }

// Unwrap is for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.next }

// Header implements http.ResponseWriter.
func (w *Writer) Header() http.Header { return w.next.Header() }

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(status int) {
	// RFC 9110 section 15.2: 1xx is not final, but for 101, behind which the
	// protocol is another. What is no status, or comes twice, is next's to
	// complain of.
	final := status == http.StatusSwitchingProtocols || status >= 200
	if w.hijacked || w.status != 0 || !final || status > 999 {
		w.next.WriteHeader(status)
		return
	}
	w.status = status
	if w.hook != nil {
		w.hook.WriteHeader(status)
		return
	}
	w.next.WriteHeader(status)
}

func (w *Writer) begin() {
	if w.status == 0 && !w.hijacked {
		w.WriteHeader(http.StatusOK)
	}
}

// Write implements http.ResponseWriter.
func (w *Writer) Write(p []byte) (n int, err error) {
	w.begin()
	if w.hook != nil && !w.hijacked {
		n, err = w.hook.Write(p)
	} else {
		n, err = w.next.Write(p)
	}
	w.written += int64(n)
	return n, err
}

// WriteString implements io.StringWriter.
func (w *Writer) WriteString(s string) (n int, err error) {
	w.begin()
	if w.hook != nil && !w.hijacked {
		n, err = w.hook.Write([]byte(s))
	} else {
		n, err = io.WriteString(w.next, s)
	}
	w.written += int64(n)
	return n, err
}

// ReadFrom implements io.ReaderFrom.
func (w *Writer) ReadFrom(src io.Reader) (n int64, err error) {
	if w.hook != nil {
		w.begin()
	}
	to, ok := w.next.(io.ReaderFrom)
	if w.hook != nil && !w.hijacked && !w.hook.ReadFrom(lengthOf(src)) || !ok {
		// Write counts, and begins when the source has given something: it may
		// fail before.
		return io.Copy(writeOnly{w}, src)
	}
	n, err = to.ReadFrom(src)
	if w.status == 0 && n > 0 {
		w.status = http.StatusOK
	}
	w.written += n
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
	w.begin()
	if w.hook != nil && !w.hijacked {
		if err := w.hook.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(w.next).Flush()
}

// Hijack implements http.Hijacker.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.next).Hijack()
	if err == nil {
		w.hijacked = true
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

// SendFile implements direct.FileSender.
func (w fileWriter) SendFile(f direct.File) error {
	w.begin()
	if w.hook != nil && !w.hijacked && !w.hook.ReadFrom(f.Len) {
		return f.CopyTo(w.Writer)
	}
	err := w.next.(direct.FileSender).SendFile(f)
	if err == nil {
		w.written += f.Len
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
