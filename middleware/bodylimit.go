package middleware

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

var tooLarge = refusal(http.StatusRequestEntityTooLarge)

// BodyLimit lets requests have a body of at most max bytes. One that says that
// it has more is answered 413 before its handler. Another is cut off there: the
// handler's Read gives an *http.MaxBytesError, and the connection ends with the
// answer, which is the handler's to choose. It belongs inside of Timeout: that
// may answer while the body is read. It panics if max is negative.
func BodyLimit(max int64) func(http.Handler) http.Handler {
	if max < 0 {
		panic("middleware: BodyLimit: max is negative")
	}
	return func(next http.Handler) http.Handler {
		return wrap.Handler(next,
			func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.ContentLength > max:
					tooLarge.ServeHTTP(w, r)
					return
				case r.ContentLength != 0 && r.Body != nil:
					r2 := *r
					r2.Body = limitBody(w, r.Body, max)
					r = &r2
				}
				next.ServeHTTP(w, r)
			},
			func(x *direct.Exchange, next direct.Handler) bool {
				if int64(len(x.Body)) > max {
					x.Send(tooLarge)
					return true
				}
				return next.ServeDirect(x)
			})
	}
}

// limitBody is as http.MaxBytesHandler does it.
func limitBody(w http.ResponseWriter, body io.ReadCloser, max int64) io.ReadCloser {
	if t := timedOf(w); t != nil {
		return &limitedBody{ReadCloser: http.MaxBytesReader(nil, body, max), t: t}
	}
	// The server's own writer, because that alone can be told to close.
	return http.MaxBytesReader(wrap.Innermost(w), body, max)
}

// limitedBody is a body inside of Timeout: the server must not be told while the
// 504 is being sent.
type limitedBody struct {
	io.ReadCloser
	t    *timed
	told bool
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.told {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			b.told = true
			b.t.tellTooLarge()
		}
	}
	return n, err
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
	if t.over() || t.hijacked {
		return
	}
	if !t.begun.Load() {
		t.header.Set("Connection", "close")
	}
	if outer := timedOf(t.w); outer != nil {
		outer.tellTooLarge()
		return
	}
	// One byte that is too much: there is no other way to tell net/http.
	http.MaxBytesReader(wrap.Innermost(t.w), io.NopCloser(strings.NewReader("x")), 0).Read(make([]byte, 1))
}
