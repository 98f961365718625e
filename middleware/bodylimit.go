package middleware

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/chert-http/chert/filter"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

var tooLarge = statusText(http.StatusRequestEntityTooLarge)

// BodyLimit lets requests have a body of at most max bytes. One that says that
// it has more is answered 413 before its handler. Another is cut off there: the
// handler's Read gives an *http.MaxBytesError, and the connection ends with the
// answer, which is the handler's to choose. One that does not read its body
// answers as if there were no limit, as with http.MaxBytesHandler: of a body whose
// length is not told, nobody has counted more. It panics if max is negative.
func BodyLimit(max int64) func(http.Handler) http.Handler {
	if max < 0 {
		panic("middleware: BodyLimit: max is negative")
	}
	return filter.New(func(c *filter.Call) filter.Outcome {
		if c.BodyLength() > max {
			return c.Refuse(tooLarge)
		}
		if w, r := c.Plain(); r != nil && r.ContentLength != 0 && r.Body != nil {
			c.SetPlain(w, limitBody(w, r, max))
		}
		return filter.Pass
	})
}

// limitedBody is a body of which max bytes can be read.
type limitedBody struct {
	io.ReadCloser // http.MaxBytesReader's, which tells nobody
	w             http.ResponseWriter
	outer         *limitedBody // of a BodyLimit around, perhaps nil
	told          bool
	// t is the innermost Timeout on either side of BodyLimit: while it sends its
	// 504, nobody else may touch w.
	t atomic.Pointer[timed]
}

type limitKey struct{} // of the innermost *limitedBody, in a request's context

// limitBody is r with a body that is limited.
func limitBody(w http.ResponseWriter, r *http.Request, max int64) *http.Request {
	b := &limitedBody{ReadCloser: http.MaxBytesReader(nil, r.Body, max), w: w}
	b.outer, _ = r.Context().Value(limitKey{}).(*limitedBody)
	b.t.Store(timedOf(w))
	r = r.WithContext(context.WithValue(r.Context(), limitKey{}, b))
	r.Body = b
	return r
}

// guards makes t the one that the limits of r's body tell.
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

// tellServer makes net/http's server end the connection with the answer, as
// http.MaxBytesHandler does: by one byte that is too much, there is no other way.
func tellServer(w http.ResponseWriter) {
	http.MaxBytesReader(wrap.Innermost(w), io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}

// timedOf is the innermost Timeout that w is inside of, nil if there is none.
func timedOf(w http.ResponseWriter) *timed {
	for {
		switch t := w.(type) {
		case *timed:
			return t
		case timedFiles:
			return t.timed
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		w = u.Unwrap()
	}
}

// tellTooLarge makes the connection end with the answer, unless that is a 504,
// which sees to it.
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
