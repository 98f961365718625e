package middleware

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

var tooLarge = wrap.Refusal(http.StatusRequestEntityTooLarge)

// BodyLimitOptions are the options of BodyLimit.
type BodyLimitOptions struct {
	// MaxSize is the largest body that a request may have, in bytes. Default 1 MiB;
	// negative: no limit.
	MaxSize int64
}

// BodyLimit limits the bodies of requests to MaxSize bytes. A request whose
// Content-Length is more gets 413, and its handler is not called. A longer body
// without Content-Length is cut off: the handler's Read returns an
// *http.MaxBytesError, the handler chooses the response, and over HTTP/1 the connection
// ends with it, unless little of the body is left. For a handler that does not read such
// a body there is no limit, as with http.MaxBytesHandler: its length is not known. Nor is
// there one for what follows an extended CONNECT: the messages of a WebSocket over HTTP/2
// or HTTP/3.
func BodyLimit(o *BodyLimitOptions) func(http.Handler) http.Handler {
	max := cmp.Or(options(o).MaxSize, 1<<20)
	if max < 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	return filter.New(func(c *filter.Call) filter.Outcome {
		if c.BodyLength() > max {
			return c.Refuse(tooLarge)
		}
		if c.Direct() && c.BodyLength() < 0 {
			return filter.OnPlain // it has to be counted
		}
		if w, r := c.Plain(); r != nil && r.ContentLength != 0 && r.Body != nil && !tunnels(r) {
			c.SetPlain(w, limitBody(w, r, max))
		}
		return filter.Pass
	})
}

// limitedBody is a body of which max bytes can be read.
type limitedBody struct {
	io.ReadCloser // http.MaxBytesReader's, whose limit is not reported to the server
	w             http.ResponseWriter
	outer         *limitedBody // of an outer BodyLimit, or nil
	told          bool
	// t is the innermost Timeout on either side of BodyLimit: while it sends
	// its 504, no other goroutine may use w.
	t atomic.Pointer[timed]
}

type limitKey struct{} // of the innermost *limitedBody, in a request's context

// limitBody returns r with a body that is limited.
func limitBody(w http.ResponseWriter, r *http.Request, max int64) *http.Request {
	b := &limitedBody{ReadCloser: http.MaxBytesReader(nil, r.Body, max), w: w}
	b.outer, _ = r.Context().Value(limitKey{}).(*limitedBody)
	b.t.Store(timedOf(w))
	r = r.WithContext(context.WithValue(r.Context(), limitKey{}, b))
	r.Body = b
	return r
}

// guards makes the limits of r's body report to t.
func (t *timed) guards(r *http.Request) {
	b, _ := r.Context().Value(limitKey{}).(*limitedBody)
	for ; b != nil; b = b.outer {
		b.t.Store(t)
	}
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.told {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			b.told = true
			if t := b.t.Load(); t != nil {
				t.tellTooLarge()
			} else {
				tellServer(b.w)
			}
		}
	}
	return n, err
}

// tellServer makes net/http's server end the connection with the response, as
// http.MaxBytesHandler does. The only way is to exceed a limit by one byte.
func tellServer(w http.ResponseWriter) {
	http.MaxBytesReader(wrap.Innermost(w), io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}

// timedOf returns the innermost Timeout that w is inside of, nil if there is
// none.
func timedOf(w http.ResponseWriter) *timed {
	for w := range wrap.Layers(w) {
		switch t := w.(type) {
		case *timed:
			return t
		case timedFiles:
			return t.timed
		}
	}
	return nil
}

// tellTooLarge makes the connection end with the response, unless that is a
// 504, which does so by itself.
func (t *timed) tellTooLarge() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done || t.over() || t.hijacked {
		return
	}
	t.closes = true
	if outer := timedOf(t.w); outer != nil {
		outer.tellTooLarge()
		return
	}
	tellServer(t.w)
}
