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
// Fields that middleware outside of Recover has set stay; those of the handler
// that describe its answer go.
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
func forget(h http.Header) {
	for _, name := range [...]string{
		"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length",
		"Content-Location", "Content-Range", "Content-Type", "Etag", "Expires", "Last-Modified", "Location", "Trailer",
		"Transfer-Encoding",
	} {
		delete(h, name)
	}
}
