package middleware

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// RecoverOptions are the options of Recover.
type RecoverOptions struct {
	// Logger gets a record for each panic, of level Error, with the stack; nil:
	// slog.Default.
	Logger *slog.Logger
	// Handle, if not nil, is called instead of logging. It must not answer.
	Handle func(v any, stack []byte)
}

var internalError = refusal(http.StatusInternalServerError)

// Recover answers a request whose handler panics with 500. What is wrong is
// logged and not told. If the answer has begun, its connection is ended, so that
// the client can tell that it is not whole. http.ErrAbortHandler goes on to the
// server: it asks for just that, and is not logged.
//
// Fields that describe an answer go, whoever has set them; all others stay, as
// with http.Error. Set-Cookie is one of these: what a handler did to a session
// before it panicked is done, and a client that is not told would go on with the
// old one. No cache stores the 500. Of a direct.Handler only what middleware has
// set is there: its own fields go out with its answer or not at all.
func Recover(o *RecoverOptions) func(http.Handler) http.Handler {
	opt := options(o)
	return func(next http.Handler) http.Handler {
		return wrap.Handler(next,
			func(w http.ResponseWriter, r *http.Request) {
				var rec wrap.Writer
				defer func() {
					v := recover()
					if v == nil {
						return
					}
					id := first(w.Header()[requestIDField])
					opt.note(v, r.Method, r.URL.Path, id)
					if rec.Hijacked() {
						return // the connection is not the server's any more
					}
					if rec.Status() != 0 {
						panic(http.ErrAbortHandler)
					}
					forget(w.Header())
					internalError.ServeHTTP(w, r)
				}()
				next.ServeHTTP(rec.Init(w, nil), r)
			},
			func(x *direct.Exchange, next direct.Handler) (answered bool) {
				defer func() {
					if v := recover(); v != nil {
						opt.note(v, x.Method, string(x.Path), x.GetField(requestIDField))
						x.Withdraw()
						forget(exchangeHeader{x})
						x.Send(internalError)
						answered = true
					}
				}()
				return next.ServeDirect(x)
			})
	}
}

// note logs a panic, or passes it on if it is none.
func (o *RecoverOptions) note(v any, method, path, id string) {
	if v == http.ErrAbortHandler {
		panic(v)
	}
	stack := debug.Stack()
	if o.Handle != nil {
		o.Handle(v, stack)
		return
	}
	log := o.Logger
	if log == nil {
		log = slog.Default()
	}
	log.LogAttrs(context.Background(), slog.LevelError, "panic in a handler",
		slog.String("panic", fmt.Sprint(v)), slog.String("method", method), slog.String("path", path),
		slog.String("request_id", id), slog.String("stack", string(stack)))
}

// forget takes out of h what describes an answer that will not be.
func forget(h header) {
	for _, name := range [...]string{
		"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length",
		"Content-Location", "Content-Range", "Content-Type", "Etag", "Expires", "Last-Modified", "Location", "Trailer",
		"Transfer-Encoding",
	} {
		h.Del(name)
	}
}

// instead makes r, a refusal, the answer of x. Of the one that it had, what
// forget leaves stays, as it does on the plain way.
func instead(x *direct.Exchange, r *direct.Response) {
	if ready := x.Ready(); ready != nil {
		x.Withdraw()
		put(x, ready.Header())
	}
	forget(exchangeHeader{x})
	x.SetStatus(r.Status())
	put(x, r.Header())
	x.SetContent(r.Body())
}

// put sets fields as Response.ServeHTTP does: Vary and Set-Cookie are added.
func put(x *direct.Exchange, h http.Header) {
	h.Del("Content-Length") // the server's
	for name, values := range h {
		if name != "Vary" && name != "Set-Cookie" {
			x.DelField(name)
		}
		for _, v := range values {
			x.AddField(name, v)
		}
	}
}
