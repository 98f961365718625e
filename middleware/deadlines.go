package middleware

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// BodyTimeoutOptions are the options of BodyTimeout.
type BodyTimeoutOptions struct {
	// Limit is how long a request's body may take. Default 60 s; negative: no limit.
	Limit time.Duration
}

// BodyTimeout bounds how long the body of a request may take to arrive, from when the
// request comes to the handler until the end of the body, in place of Server.ReadTimeout.
// After that Read returns an error that is os.ErrDeadlineExceeded. If the handler has written
// nothing when it returns, the response is 408. The connection ends with the response; over
// HTTP/2 only the stream does. A handler that does not read the body is not affected, but for
// that the server gives up the rest of it by then.
//
// Requests without a body, and CONNECT, pass through. On the fast path bodies have arrived.
// Response writers must support SetReadDeadline, as http.ResponseController does: otherwise
// there is no limit.
func BodyTimeout(o *BodyTimeoutOptions) func(http.Handler) http.Handler {
	limit := cmp.Or(options(o).Limit, time.Minute)
	if limit < 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	return func(next http.Handler) http.Handler {
		return wrap.Handler(next,
			func(w http.ResponseWriter, r *http.Request) { serveBodyInTime(w, r, next, limit) },
			func(x *direct.Exchange, next direct.Handler) bool { return !x.Wire().Ahead() && next.ServeDirect(x) })
	}
}

var requestTimeout = wrap.Refusal(http.StatusRequestTimeout)

func serveBodyInTime(w http.ResponseWriter, r *http.Request, next http.Handler, limit time.Duration) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 || r.Method == http.MethodConnect {
		next.ServeHTTP(w, r)
		return
	}
	// Servers end it with the request. The end of the body need not: what they read after
	// that to notice the client's end has no deadline.
	if http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)) != nil {
		next.ServeHTTP(w, r)
		return
	}
	b := &bodyInTime{ReadCloser: r.Body}
	rec := wrap.Writer{Claimable: true}
	returned := false
	defer func() {
		if b.late.Load() && returned && !rec.Hijacked() && rec.Claim() {
			forget(w.Header())
			if r.ProtoMajor < 2 {
				w.Header().Set("Connection", "close") // what is left of the body would follow
			}
			refusal.Plain(w, r, requestTimeout)
		}
	}()
	inner := r.WithContext(r.Context())
	inner.Body = b
	wrap.Serve(next, rec.Init(w, nil), r, inner)
	returned = true
}

// bodyInTime is a request's body whose connection has a deadline.
type bodyInTime struct {
	io.ReadCloser
	late atomic.Bool // a goroutine may read that outlives the handler
}

// Read implements io.Reader.
func (b *bodyInTime) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		b.late.Store(true)
	}
	return n, err
}

// ResponseTimeoutOptions are the options of ResponseTimeout.
type ResponseTimeoutOptions struct {
	// Limit is how long a response may take. Default 60 s; negative: no limit.
	Limit time.Duration
}

// ResponseTimeout bounds how long a response may take, from when the request comes to the
// handler until the last byte has been passed to the system, in place of
// Server.WriteTimeout. After that Write returns an error that is os.ErrDeadlineExceeded, and
// the connection is reset; over HTTP/3 the stream is, when its handler has returned. Over HTTP/2
// the stream is reset at that time, and the request's context ends. Otherwise it does not
// interrupt a handler that does not write; Timeout does.
//
// Responses to CONNECT, connections that are hijacked, and WebSockets and event streams of
// chert's packages have no such limit; other responses that last long do. The fast path has
// the limit, from when the response has been made. On the ordinary path response writers
// must support SetWriteDeadline, as http.ResponseController does: otherwise there is no limit.
func ResponseTimeout(o *ResponseTimeoutOptions) func(http.Handler) http.Handler {
	limit := cmp.Or(options(o).Limit, time.Minute)
	if limit < 0 {
		return func(next http.Handler) http.Handler { return next }
	}
	return func(next http.Handler) http.Handler {
		return wrap.Handler(next,
			func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodConnect {
					http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit))
				}
				next.ServeHTTP(w, r)
			},
			func(x *direct.Exchange, next direct.Handler) bool {
				x.Wire().LimitWrite(limit)
				return next.ServeDirect(x)
			})
	}
}
