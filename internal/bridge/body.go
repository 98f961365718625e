package bridge

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/http1"
)

// body is a request's body. Its methods may be called by any goroutine, also
// after the handler has returned; then they touch nothing of the connection.
type body struct {
	x  *exchange
	te [1]string // what Request.TransferEncoding points to

	closed atomic.Bool // set under mu

	mu      sync.Mutex
	chunked bool
	remain  int64 // of a body with a length
	dec     http1.Chunked
	inTail  bool // the last chunk was read, the trailer section follows
	sawEOF  bool
	err     error // sticky: the framing is lost
	// earlyClose: closed with more unread than is worth draining.
	earlyClose bool
	timedOut   bool
	// hurry: the deadline is chert's own, see limitReads; it says nothing of
	// the client.
	hurry atomic.Bool
}

var errChunked = errors.New("http: malformed chunked encoding")

// initBody sets req.Body as the head's framing says (RFC 9112 section 6.3).
func (x *exchange) initBody(h *http1.Request) {
	r := &x.req
	switch {
	case h.Chunked:
		x.newBody()
		x.body.chunked, x.body.te[0] = true, "chunked"
		r.TransferEncoding = x.body.te[:]
		r.ContentLength = -1
		r.Header.Del("Content-Length")
		r.Body = x.body
	case h.ContentLength > 0:
		r.ContentLength = h.ContentLength
		x.newBody()
		x.body.remain = h.ContentLength
		r.Body = x.body
	default:
		r.Body = http.NoBody
		x.bodyDone.Store(true)
		return
	}
	if h.ExpectContinue {
		x.res.canContinue.Store(true)
		x.res.expectsContinue = true
	}
}

func (x *exchange) newBody() {
	if b := x.c.block; b != nil {
		x.body = &b.body
	} else {
		x.body = new(body)
	}
	x.body.x = x
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	// Before mu is taken: a Write that sends the head holds the response's lock
	// and then wants this one.
	if b.x.res.canContinue.Load() && !b.closed.Load() {
		b.x.res.sendContinue()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	return b.read(p)
}

// read is Read with b.mu held.
func (b *body) read(p []byte) (n int, err error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case b.sawEOF:
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	case b.chunked:
		n, err = b.readChunked(p)
	default:
		n, err = b.readLength(p)
	}
	if err == io.EOF {
		b.sawEOF = true
		b.x.allRead()
	} else if err != nil {
		late := errors.Is(err, os.ErrDeadlineExceeded)
		own := late && b.hurry.Load()
		b.timedOut = b.timedOut || late && !own
		// As with net/http: the deadline of a body with a length may be moved
		// and the read tried again; everything else is final.
		if !late || b.chunked {
			b.err = err
		}
		if !malformed(err) && !own {
			b.x.gone()
		}
	}
	return n, err
}

func (b *body) readLength(p []byte) (int, error) {
	if int64(len(p)) > b.remain {
		p = p[:b.remain]
	}
	n, err := b.x.c.t.Read(p)
	b.remain -= int64(n)
	switch {
	case b.remain == 0:
		err = io.EOF
	case err == io.EOF:
		// RFC 9112 section 8: a body shorter than its Content-Length is
		// incomplete.
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// readChunked fills p as far as that needs no waiting, and says with the last
// data that the end has come, if it has: many readers never ask again.
func (b *body) readChunked(p []byte) (n int, err error) {
	t := b.x.c.t
	for !b.inTail {
		src := t.Buffered()
		if len(src) == 0 {
			if n > 0 {
				return n, nil
			}
			if err := fill(t.Fill()); err != nil {
				return 0, err
			}
			continue
		}
		before := b.dec
		data, used, done, err := b.dec.Decode(src)
		if err != nil {
			return n, chunkError(err)
		}
		full := len(data) > len(p)-n
		if full {
			// data is at the end of the bytes used: read again only as far as p.
			b.dec = before
			data, used, done, _ = b.dec.Decode(src[:used-len(data)+len(p)-n])
		}
		n += copy(p[n:], data)
		t.Discard(used)
		if b.inTail = done; full {
			return n, nil
		}
	}
	if done, err := b.readTrailer(n == 0); !done {
		return n, err
	}
	return n, io.EOF
}

// chunkError is what a handler sees of a malformed coding.
func chunkError(err error) error {
	if err == http1.ErrChunkLine {
		return http.ErrLineTooLong // net/http's, which programs test for
	}
	return errChunked
}

// malformed reports whether err is the client's nonsense, behind which it may
// still listen.
func malformed(err error) bool {
	return err == errChunked || err == http.ErrLineTooLong || err == errTrailer
}

// fill makes an end of stream inside a body an error.
func fill(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readTrailer reads the section behind the last chunk into req.Trailer. If it
// has not come and may not be waited for, done is false without an error.
func (b *body) readTrailer(wait bool) (done bool, err error) {
	t := b.x.c.t
	var p http1.Progress
	for {
		src := t.Buffered()
		n, fields, err := http1.ParseTrailer(src, nil, &p, &b.x.c.cfg.Head)
		if err != nil {
			return false, errTrailer
		}
		if n > 0 {
			b.addTrailer(string(src[:n]), fields)
			t.Discard(n)
			return true, nil
		}
		if !wait {
			return false, nil
		}
		if err := fill(t.Fill()); err != nil {
			return false, err
		}
	}
}

var errTrailer = errors.New("http: malformed trailer after chunked body")

func (b *body) addTrailer(s string, fields []http1.Field) {
	r := &b.x.req
	for i := range fields {
		f := &fields[i]
		if r.Trailer == nil {
			r.Trailer = make(http.Header)
		}
		key := http1.CanonicalName([]byte(s[f.Name.Start:f.Name.End]), f.ID)
		r.Trailer[key] = append(r.Trailer[key], s[f.Value.Start:f.Value.End])
	}
}

// Close implements io.Closer. It reads what is left if that is little, so that
// the connection can be kept.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return nil
	}
	b.closed.Store(true)
	if b.sawEOF || b.err != nil {
		return b.err
	}
	if !b.chunked && !b.x.keepAlive {
		// The connection ends after this request and there is no trailer to
		// come: nothing is gained by reading.
		return nil
	}
	if b.x.res.expectsContinue && b.x.res.canContinue.Load() || b.remain > maxDrain || b.x.res.closeAfter.Load() || b.timedOut {
		b.earlyClose = true
		return nil
	}
	n, err := b.drain(maxDrain)
	if n == maxDrain || errors.Is(err, os.ErrDeadlineExceeded) {
		b.earlyClose = true
	}
	return err
}

// drain reads what is left, up to limit bytes and for drainFor: a client that
// trickles the rest of a body that nobody wants must not hold the connection.
func (b *body) drain(limit int64) (int64, error) {
	b.hurry.Store(true)
	defer b.hurry.Store(false)
	defer b.x.limitReads(time.Now().Add(drainFor))()
	return discard(io.LimitReader(lockedBody{b}, limit))
}

// drainBeforeHeader reads the rest of the body before the answer's head is
// sent: many clients send all before they read anything, and would wait for
// this server while it waits for them. It reports whether the connection can
// be kept, and whether there was more than is worth reading.
func (b *body) drainBeforeHeader() (keep, tooBig bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.sawEOF:
		b.closed.Store(true)
		return true, false
	case b.closed.Load() || b.err != nil || b.timedOut:
		return false, false
	case b.remain >= maxDrain:
		return false, true
	}
	n, err := b.drain(maxDrain + 1)
	if n > maxDrain {
		return false, true
	}
	b.closed.Store(true)
	return err == nil && b.sawEOF, false
}

// unfinished reports whether bytes of the body may be left on the connection,
// so that no request can follow.
func (b *body) unfinished() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.sawEOF
}

// interrupt ends a Read that a goroutine of the handler has left behind.
func (b *body) interrupt() {
	if b.mu.TryLock() {
		b.mu.Unlock()
		return
	}
	b.hurry.Store(true)
	restore := b.x.limitReads(time.Unix(1, 0))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hurry.Store(false)
	if errors.Is(b.err, os.ErrDeadlineExceeded) {
		b.err = nil
	}
	restore()
}

// invalidate makes every later Read fail, without reading.
func (b *body) invalidate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed.Store(true)
}

// lockedBody is the body as a Reader for who holds its lock.
type lockedBody struct{ b *body }

func (l lockedBody) Read(p []byte) (int, error) { return l.b.read(p) }

// discard reads r to its end.
func discard(r io.Reader) (int64, error) { return io.Copy(io.Discard, r) }

// refusal is the status for a body that did not come in time or is malformed,
// 0 for any other. Nobody but a handler that has read it knows.
func (b *body) refusal() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.timedOut && !b.x.res.ownDeadline.Load():
		return http.StatusRequestTimeout
	case malformed(b.err):
		return http.StatusBadRequest
	}
	return 0
}
