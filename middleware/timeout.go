package middleware

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

var gatewayTimeout = wrap.Refusal(http.StatusGatewayTimeout)

// TimeoutOptions are the options of Timeout.
type TimeoutOptions struct {
	// Limit is how long a handler may take. Default 60 s; negative: no limit.
	Limit time.Duration
}

// Timeout bounds how long a handler may take. At the limit the request's context
// is done (context.DeadlineExceeded), and:
//
//   - If the handler has sent nothing, 504 is sent immediately. Later writes are
//     not sent, and Write returns http.ErrHandlerTimeout. Over HTTP/2 and HTTP/3 its
//     stream ends only when the handler returns, which clients wait for that read all of
//     a response.
//   - If its response has begun, Write fails too, and when the handler returns the
//     connection is closed, so that the client can detect that the response is
//     incomplete. A handler that observes its context and writes nothing more, such
//     as a stream of events, completes its response.
//
// Unlike http.TimeoutHandler it does not buffer: what a handler writes is sent,
// Flush, ReadFrom and Hijack work, and the response is not copied. And it
// starts no goroutine: the handler runs on the server's, so that none is left
// that the server does not track. In return, the connection is occupied until
// the handler returns: it must observe its context. Reading the request's body,
// and writing to a client that accepts nothing, are interrupted.
//
// A handler that takes the connection with Hijack has it without a limit, and its
// context is no longer done at the limit; contexts with deadlines of its own are to be made
// of that after Hijack. An extended CONNECT, which is how WebSockets begin over HTTP/2 and
// HTTP/3, passes through. On the fast path, where nothing may wait, there is no limit either.
func Timeout(o *TimeoutOptions) func(http.Handler) http.Handler {
	limit := cmp.Or(options(o).Limit, time.Minute)
	if limit < 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	return func(next http.Handler) http.Handler {
		return wrap.Handler(next,
			func(w http.ResponseWriter, r *http.Request) {
				if tunnels(r) {
					next.ServeHTTP(w, r)
					return
				}
				serveInTime(w, r, next, limit)
			},
			func(x *direct.Exchange, next direct.Handler) bool { return !x.Wire().Ahead() && next.ServeDirect(x) })
	}
}

// tunnels reports whether the bodies of r and its response are a tunnel: it is an extended CONNECT (RFC 8441, RFC
// 9220), which the server has to permit. Over HTTP/1 one begins with Hijack.
func tunnels(r *http.Request) bool {
	return r.Method == http.MethodConnect && r.Header[":protocol"] != nil
}

func serveInTime(w http.ResponseWriter, r *http.Request, next http.Handler, limit time.Duration) {
	ctx, cancel, l := withLimit(r.Context(), limit)
	defer cancel()
	t := &timed{ctx: ctx, limit: l, w: w, r: r, header: maps.Clone(w.Header())}
	if t.header == nil {
		t.header = http.Header{}
	}
	for name, values := range t.header {
		t.header[name] = values[:len(values):len(values)]
	}
	if r.ContentLength != 0 {
		t.guards(r)
	}
	t.watch()
	// w must not be used after the server has it back, also after a panic.
	defer t.end()
	var give http.ResponseWriter = t
	if _, ok := w.(wire.FileSender); ok {
		give = timedFiles{t}
	}
	wrap.Serve(next, give, r, r.WithContext(ctx))
	t.returned()
}

// timed is the handler's response writer. Its header is separate until it is
// sent, because 504 may be sent while the handler changes it.
type timed struct {
	ctx    context.Context
	limit  *limit
	w      http.ResponseWriter
	r      *http.Request
	header http.Header // the handler's

	// These belong to the handler's goroutine.
	stop    func() bool   // prevents the call of expire
	ended   chan struct{} // closed when expire was called, if it was not stopped
	stopped bool

	mu       sync.Mutex  // held during calls of w, which two goroutines may make
	begun    atomic.Bool // the handler's head was sent; set with mu held
	expired  bool
	cut      bool // something was not written because of that
	hijacked bool
	done     bool // the handler has returned: later calls give wrap.ErrDone
	closes   bool // the body is too large: the connection ends with the response
	thrown   any  // the panic of a hook that writes refusals
}

// watch has expire called when the time has passed.
func (t *timed) watch() {
	ended := make(chan struct{})
	t.ended, t.stopped = ended, false
	t.stop = context.AfterFunc(t.ctx, func() {
		defer close(ended)
		if errors.Is(t.ctx.Err(), context.DeadlineExceeded) {
			t.expire()
		}
	})
}

// halt stops the timer and reports whether the time has not passed. If it has,
// halt waits until expire has run.
func (t *timed) halt() bool {
	if t.stopped || t.stop() {
		t.stopped = true
		return true
	}
	<-t.ended
	return false
}

// end is called when the handler has returned or panicked. Later calls must not
// even read w's header: the server does.
func (t *timed) end() {
	t.halt()
	t.mu.Lock()
	t.done = true
	t.mu.Unlock()
}

// expire is called when the time has passed.
func (t *timed) expire() {
	c := http.NewResponseController(t.w)
	if t.r.ContentLength != 0 {
		// The handler may be waiting for the body. The connection cannot be
		// read any more after this.
		c.SetReadDeadline(time.Unix(1, 0))
	}
	if !t.mu.TryLock() {
		// The handler is writing, perhaps to a client that accepts nothing. Not
		// done otherwise, since it would affect the 504.
		if t.begun.Load() {
			c.SetWriteDeadline(time.Unix(1, 0))
		}
		t.mu.Lock()
	}
	defer t.mu.Unlock()
	t.over()
}

// over reports whether the time has passed, and then sends the 504. The handler
// may notice it by its context before expire is called: the first of the two
// does it. t.mu is held.
func (t *timed) over() bool {
	if t.expired || t.hijacked || !errors.Is(t.ctx.Err(), context.DeadlineExceeded) {
		return t.expired
	}
	t.expired = true
	if t.begun.Load() {
		return true
	}
	forget(t.w.Header()) // fields set for a 1xx
	if t.r.ContentLength != 0 && t.r.ProtoMajor < 2 {
		// Otherwise the server might first read the body, which the handler
		// reads.
		t.w.Header().Set("Connection", "close")
	}
	t.refuse()
	return true
}

// refuse sends the 504. The panic of a hook is raised on the handler's
// goroutine, by returned: on the timer's it would end the process.
func (t *timed) refuse() {
	defer func() { t.thrown = recover() }()
	refusal.Plain(t.w, t.r, gatewayTimeout)
	http.NewResponseController(t.w).Flush()
}

// returned ends the response of a handler that has not panicked.
func (t *timed) returned() {
	t.halt()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over() // expire may have been stopped when the context was done already
	switch {
	case t.thrown != nil:
		panic(t.thrown)
	case t.hijacked:
	case t.expired && t.begun.Load() && t.cut:
		panic(http.ErrAbortHandler)
	case t.begun.Load():
		// Fields set since then are trailers.
		maps.Copy(t.w.Header(), t.header)
	case !t.expired:
		t.sendHeader() // the handler may have set fields and written nothing
	}
}

// sendHeader sets w's header to the handler's. t.mu is held.
func (t *timed) sendHeader() {
	h := t.w.Header()
	clear(h)
	maps.Copy(h, t.header)
	if t.closes && t.r.ProtoMajor < 2 {
		h.Set("Connection", "close")
	}
}

// Header implements http.ResponseWriter.
func (t *timed) Header() http.Header { return t.header }

// WriteHeader implements http.ResponseWriter.
func (t *timed) WriteHeader(status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writeHeader(status)
}

func (t *timed) writeHeader(status int) {
	if t.done || t.over() && !t.begun.Load() {
		return
	}
	if !t.begun.Load() && !t.hijacked {
		t.sendHeader()
		if status >= 200 || status == http.StatusSwitchingProtocols {
			t.begun.Store(true)
		}
	}
	t.w.WriteHeader(status)
}

// begin precedes calls of w. t.mu is held.
func (t *timed) begin() error {
	if t.done {
		return wrap.ErrDone
	}
	if t.over() {
		t.cut = true
		return http.ErrHandlerTimeout
	}
	if !t.begun.Load() && !t.hijacked {
		t.writeHeader(http.StatusOK)
	}
	return nil
}

// Write implements http.ResponseWriter.
func (t *timed) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.begin(); err != nil {
		return 0, err
	}
	n, err := t.w.Write(p)
	t.cut = t.cut || err != nil
	return n, err
}

// ReadFrom implements io.ReaderFrom. The source may block, so it is copied in
// pieces, unless it is a file.
func (t *timed) ReadFrom(src io.Reader) (int64, error) {
	to, ok := t.w.(io.ReaderFrom)
	if !ok || !fromFile(src) {
		return io.Copy(struct{ io.Writer }{t}, src)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.begin(); err != nil {
		return 0, err
	}
	n, err := to.ReadFrom(src)
	t.cut = t.cut || err != nil
	return n, err
}

// fromFile reports whether src is what http.ServeContent and io.CopyN make of a
// file.
func fromFile(src io.Reader) bool {
	if l, ok := src.(*io.LimitedReader); ok {
		src = l.R
	}
	f, ok := src.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}

// Flush implements http.Flusher.
func (t *timed) Flush() { t.FlushError() }

// FlushError is called by http.ResponseController.
func (t *timed) FlushError() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.begin(); err != nil {
		return err
	}
	return http.NewResponseController(t.w).Flush()
}

// Hijack implements http.Hijacker.
func (t *timed) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	// First, so that no deadline is set on a connection that the handler owns, and its context
	// does not end.
	if !t.limit.lift() {
		<-t.ctx.Done()
	}
	if !t.halt() {
		return nil, nil, http.ErrHandlerTimeout
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return nil, nil, wrap.ErrDone
	}
	if t.over() { // expire may have been stopped when the context was done already
		return nil, nil, http.ErrHandlerTimeout
	}
	c, rw, err := http.NewResponseController(t.w).Hijack()
	if err == nil {
		t.hijacked = true
	} else if !t.hijacked {
		t.limit.lower()
		t.watch()
	}
	return c, rw, err
}

// CloseNotify implements http.CloseNotifier, which gin asks every writer for.
func (t *timed) CloseNotify() <-chan bool { return wrap.CloseNotify(t.w) }

// Unwrap is called by http.ResponseController, for deadlines.
func (t *timed) Unwrap() http.ResponseWriter { return t.w }

// timedFiles is a timed around a wire.FileSender.
type timedFiles struct{ *timed }

// SendFile implements wire.FileSender.
func (t timedFiles) SendFile(f direct.File) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.begin(); err != nil {
		return err
	}
	err := t.w.(wire.FileSender).SendFile(f)
	t.cut = t.cut || err != nil
	return err
}
