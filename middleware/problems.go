package middleware

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// A Problem is a response that middleware sends instead of calling the handler, with what
// problem details (RFC 9457) say of it.
type Problem struct {
	Status int
	// Type is "", which stands for "about:blank", or a URI defined by ratelimit; Title is
	// a short English text, usually http.StatusText.
	Type, Title string
	// Violated are the names of the rules that a request exceeded, for 429.
	Violated []string
	// Header has the fields of the response: Content-Type, which is that of
	// plain text, Cache-Control, and, where they belong, WWW-Authenticate,
	// Retry-After and RateLimit. They may be changed; fields that frame the
	// message, such as Content-Length and Connection, belong to the server and
	// are ignored.
	Header http.Header
}

// Problems makes respond write the bodies of all refusals of the middleware inside
// of it: of IPFilter, InFlight, Timeout, Bearer, jwt, basicauth, forwardauth, BodyLimit,
// Rewrite, ratelimit, ETag and Recover. Without it they are a line of text, of ratelimit
// problem details if Accept names JSON. The answers of the server that forwardauth asks
// are not changed. If respond is nil, it is
// Problem.JSON:
//
//	h = middleware.Chain(mux, access.Wrap, middleware.Problems(nil), middleware.Recover(nil), auth)
//
// respond sets Content-Type and returns the body. It is called once for each kind
// of refusal and its response is cached, so it cannot depend on the request; for
// ratelimit, whose Retry-After differs, it is called each time. It must be safe for
// concurrent use. ErrorPages replaces the bodies of refusals of the middleware inside of it
// too, unless OwnErrors is between the two.
//
// If one Problems is inside of another, the inner one is used. Responses of
// handlers and routers, such as 404 and 405, are not changed. Response writers
// of other middleware without a method Unwrap, such as that of
// http.TimeoutHandler, hide Problems from what is inside.
//
// An accepted request costs an allocation of 24 bytes on the ordinary path, and none on
// the fast path.
func Problems(respond func(p *Problem) []byte) func(http.Handler) http.Handler {
	if respond == nil {
		respond = (*Problem).JSON
	}
	hook := refusal.NewHook(func(p *refusal.Problem, h http.Header) []byte {
		return respond(&Problem{Status: p.Status, Type: p.Type, Title: p.Title, Violated: p.Violated, Header: h})
	})
	return func(next http.Handler) http.Handler {
		return wrap.Handler(next,
			func(w http.ResponseWriter, r *http.Request) {
				h := &hooked{w, hook}
				if _, ok := w.(wire.FileSender); ok {
					next.ServeHTTP(hookedFiles{h}, r)
				} else {
					next.ServeHTTP(h, r)
				}
			},
			func(x *direct.Exchange, next direct.Handler) bool {
				outer := refusal.Set(x, hook)
				// Outer middleware has another hook or none, also after a
				// panic.
				defer refusal.Set(x, outer)
				return next.ServeDirect(x)
			})
	}
}

// JSON returns p as problem details in JSON, whose type it sets in p.Header:
//
//	{"title":"Unauthorized","status":401}
func (p *Problem) JSON() []byte {
	p.Header.Set("Content-Type", "application/problem+json")
	details := refusal.Problem{Type: p.Type, Title: p.Title, Status: p.Status, Violated: p.Violated}
	return details.JSON()
}

// hooked is a response writer in which refusal.Around finds the hook. It passes
// everything on.
type hooked struct {
	http.ResponseWriter
	hook *refusal.Hook
}

// RefusalHook is called by refusal.Around.
func (w *hooked) RefusalHook() *refusal.Hook { return w.hook }

// Unwrap is called by http.ResponseController.
func (w *hooked) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteString implements io.StringWriter.
func (w *hooked) WriteString(s string) (int, error) { return io.WriteString(w.ResponseWriter, s) }

// ReadFrom implements io.ReaderFrom.
func (w *hooked) ReadFrom(src io.Reader) (int64, error) {
	if to, ok := w.ResponseWriter.(io.ReaderFrom); ok {
		return to.ReadFrom(src)
	}
	return io.Copy(struct{ io.Writer }{w.ResponseWriter}, src)
}

// Flush implements http.Flusher.
func (w *hooked) Flush() { w.FlushError() }

// FlushError is Flush for http.ResponseController.
func (w *hooked) FlushError() error { return http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack implements http.Hijacker.
func (w *hooked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// CloseNotify implements http.CloseNotifier, which gin asks every writer for.
func (w *hooked) CloseNotify() <-chan bool { return wrap.CloseNotify(w.ResponseWriter) }

// hookedFiles is a hooked around a wire.FileSender.
type hookedFiles struct{ *hooked }

// SendFile implements wire.FileSender.
func (w hookedFiles) SendFile(f direct.File) error {
	return w.ResponseWriter.(wire.FileSender).SendFile(f)
}
