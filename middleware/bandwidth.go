package middleware

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// BandwidthOptions are the options of Bandwidth.
type BandwidthOptions struct {
	// Rate is how many bytes of its body a response sends each second. Default no limit,
	// as a negative value.
	Rate int64
	// After is how many bytes of each response are sent without a limit, before Rate
	// applies. Default 0, as a negative value.
	After int64
}

// Bandwidth limits how fast the body of each response is sent, as nginx's limit_rate and
// limit_rate_after do: after its first After bytes, at Rate bytes a second, in pieces of
// what an eighth of a second has, from 512 bytes to 1 MiB. What the handler has not used in
// the last eighth of a second is lost. Responses do not share a limit, neither those of a
// client nor the streams of an HTTP/2 connection: limit their number too, with
// InFlightOptions.PerClient.
//
// A paced response occupies its handler's goroutine, and a slot of Server.MaxHandlers, until
// it has been sent, with the memory of both. When the client has left, it ends with the next
// piece, a second later at most. WriteTimeout and ResponseTimeout include the waiting.
//
// Not limited are responses to CONNECT, connections that are hijacked, WebSockets, and event
// streams (text/event-stream), of which the client gets what happens when it happens. Nor is
// what middleware outside of Bandwidth writes. Outside of Compress it limits what is sent,
// inside what is compressed.
//
// Responses that need not wait stay on the fast path: those of at most After bytes and
// one piece. A GET whose response is longer is served again on the ordinary path, as inside of
// Compress, and other methods are served only there: limits, which would charge a request
// twice, belong outside.
func Bandwidth(o *BandwidthOptions) func(http.Handler) http.Handler {
	opt := options(o)
	if opt.Rate <= 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	b := &bandwidth{rate: opt.Rate, after: max(opt.After, 0)}
	b.piece = min(max(b.rate/8, min(b.rate, sniffed)), 1<<20)
	return func(next http.Handler) http.Handler {
		return wrap.Handler(next,
			func(w http.ResponseWriter, r *http.Request) { b.serve(w, r, next) },
			b.serveDirect)
	}
}

// sniffed is how many bytes of a body http.DetectContentType considers: the head is not
// sent before the handler has written them.
const sniffed = 512

// bandwidth is immutable.
type bandwidth struct {
	rate, after, piece int64
}

func (b *bandwidth) serveDirect(dx *direct.Exchange, next direct.Handler) bool {
	x := dx.Wire()
	if m := x.Method(); m != http.MethodGet && m != http.MethodHead {
		return false // the handler may do what must not be done twice
	}
	if !next.ServeDirect(dx) {
		return false
	}
	if x.Method() == http.MethodHead || x.Size()-b.piece <= b.after {
		return true
	}
	x.Discard()
	return false
}

func (b *bandwidth) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if r.Method == http.MethodHead || r.Method == http.MethodConnect {
		next.ServeHTTP(w, r)
		return
	}
	p := &paced{bandwidth: b, w: w, free: b.after}
	defer p.end()
	if _, ok := w.(wire.FileSender); ok {
		next.ServeHTTP(pacedFiles{p}, r)
		return
	}
	next.ServeHTTP(p, r)
}

// paced is the handler's response writer.
type paced struct {
	*bandwidth
	w http.ResponseWriter

	// turn is held by what writes a body, also while it waits. It is taken before mu.
	turn sync.Mutex
	mu   sync.Mutex // held during calls of w

	// These are guarded by mu.
	done  bool      // the handler has returned: later calls give wrap.ErrDone
	began bool      // something was written, so that it is known whether there is a limit
	none  bool      // there is no limit
	sent  int64     // of the body
	free  int64     // how much of the body is still without a limit
	next  time.Time // of the next piece
}

func (p *paced) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
}

// begin precedes calls of w. p.mu is held.
func (p *paced) begin() error {
	if p.done {
		return wrap.ErrDone
	}
	if !p.began {
		p.began = true
		mediaType, _, _ := strings.Cut(p.w.Header().Get("Content-Type"), ";")
		p.none = p.none || strings.EqualFold(strings.TrimSpace(mediaType), "text/event-stream")
	}
	return nil
}

// send calls write, which sends up to k bytes, until n bytes have been sent. It returns how
// many have been. Only p.turn is held.
func (p *paced) send(n int64, write func(k int64) (int64, error)) (sent int64, err error) {
	for sent < n {
		m, wait, err := p.one(n-sent, write)
		if sent += m; err != nil {
			return sent, err
		}
		// Without the request's context: a client that has only closed its side, which ends
		// that too, still reads. The next piece fails if it has left.
		time.Sleep(wait)
	}
	return sent, nil
}

// one sends a piece of at most n bytes, or returns after how long there will be one.
func (p *paced) one(n int64, write func(k int64) (int64, error)) (sent int64, wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.begin(); err != nil {
		return 0, 0, err
	}
	free := p.none || p.free > 0
	switch {
	case p.none:
	case free:
		n = min(n, p.free)
	default:
		if wait := p.wait(time.Now()); wait > 0 {
			return 0, wait, p.flush()
		}
		n = min(n, p.piece)
	}
	sent, err = write(n)
	p.sent += sent
	if free {
		p.free = max(p.free-sent, 0)
	} else {
		p.next = p.next.Add(p.time(sent))
	}
	if err == nil && sent < n {
		err = io.ErrShortWrite
	}
	return sent, 0, err
}

// time returns how long n bytes take, at most a piece.
func (p *paced) time(n int64) time.Duration {
	return time.Duration(float64(n) / float64(p.rate) * float64(time.Second))
}

// wait returns how long the next piece has to wait. p.mu is held.
func (p *paced) wait(now time.Time) time.Duration {
	switch least := now.Add(-p.time(p.piece)); {
	case p.next.IsZero():
		p.next = now
	case p.next.Before(least):
		p.next = least // more than this is not made up for
	}
	return p.next.Sub(now)
}

// flush sends what has been written, before a wait. The first bytes wait for others if the handler has
// not set the type: the server guesses it by them. p.mu is held.
func (p *paced) flush() error {
	if _, typed := p.w.Header()["Content-Type"]; p.sent < sniffed && !typed {
		return nil
	}
	if err := http.NewResponseController(p.w).Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// Header implements http.ResponseWriter.
func (p *paced) Header() http.Header { return p.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (p *paced) WriteHeader(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done {
		p.w.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (p *paced) Write(b []byte) (int, error) {
	p.turn.Lock()
	defer p.turn.Unlock()
	if len(b) == 0 {
		return p.empty()
	}
	n, err := p.send(int64(len(b)), func(k int64) (int64, error) {
		n, err := p.w.Write(b[:k])
		b = b[n:]
		return int64(n), err
	})
	return int(n), err
}

// empty writes nothing, which begins a response.
func (p *paced) empty() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.begin(); err != nil {
		return 0, err
	}
	return p.w.Write(nil)
}

// ReadFrom implements io.ReaderFrom. A part of a file, of which n bytes are to be sent,
// is sent in the server's best way; other sources may be slow.
func (p *paced) ReadFrom(src io.Reader) (int64, error) {
	to, ok := p.w.(io.ReaderFrom)
	part, isPart := src.(*io.LimitedReader)
	if !ok || !isPart || part.N <= 0 || !fromFile(src) {
		return io.Copy(struct{ io.Writer }{p}, src)
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	n, err := p.send(part.N, func(k int64) (int64, error) {
		piece := io.LimitedReader{R: part.R, N: k}
		n, err := to.ReadFrom(&piece)
		part.N -= k - piece.N
		return n, err
	})
	if err == io.ErrShortWrite { // the end of the file
		err = nil
	}
	return n, err
}

// Flush implements http.Flusher.
func (p *paced) Flush() { p.FlushError() }

// FlushError is called by http.ResponseController.
func (p *paced) FlushError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.begin(); err != nil {
		return err
	}
	return http.NewResponseController(p.w).Flush()
}

// Hijack implements http.Hijacker.
func (p *paced) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done {
		return nil, nil, wrap.ErrDone
	}
	c, rw, err := http.NewResponseController(p.w).Hijack()
	p.none = p.none || err == nil
	return c, rw, err
}

// CloseNotify implements http.CloseNotifier, which gin asks every writer for.
func (p *paced) CloseNotify() <-chan bool { return wrap.CloseNotify(p.w) }

// Unwrap is called by http.ResponseController.
func (p *paced) Unwrap() http.ResponseWriter { return p.w }

// pacedFiles is a paced around a wire.FileSender.
type pacedFiles struct{ *paced }

// SendFile implements wire.FileSender.
func (p pacedFiles) SendFile(f direct.File) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	begun := false
	_, err := p.send(f.Len, func(k int64) (int64, error) {
		if begun && f.Check != nil {
			if err := f.Check(); err != nil {
				return 0, err
			}
		}
		begun = true
		piece := f
		piece.Len = k
		if err := p.w.(wire.FileSender).SendFile(piece); err != nil {
			return 0, err
		}
		f.Offset += k
		return k, nil
	})
	return err
}
