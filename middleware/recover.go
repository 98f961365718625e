package middleware

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// RecoverOptions are the options of Recover.
type RecoverOptions struct {
	// Logger gets a record for each panic, of level Error, with the stack from the
	// panic to Recover as one attribute; nil: slog.Default. If that is the standard
	// logger on a terminal, the stack follows the record as lines.
	Logger *slog.Logger
	// Handle, if not nil, is called instead of logging, with the stack as
	// debug.Stack returns it. It must not respond.
	Handle func(v any, stack []byte)
}

var internalError = wrap.Refusal(http.StatusInternalServerError)

// Recover responds with 500 to a request whose handler panics. The cause is
// logged, not sent. If the response has begun, its connection is closed, so
// that the client can detect that it is incomplete. http.ErrAbortHandler, which
// asks for just that, is passed on to the server and not logged.
//
// Fields that describe a representation are removed, whether middleware or the
// handler has set them; all others stay, as with http.Error. Set-Cookie stays:
// what a handler did to a session before it panicked is done, and without the
// cookie a client would continue with the old one. No cache stores the 500. Of
// a direct.Handler only the fields that middleware has set stay: its own are
// sent with its response or not at all.
func Recover(o *RecoverOptions) func(http.Handler) http.Handler {
	opt := options(o)
	return func(next http.Handler) http.Handler {
		rec := &recoverer{o: &opt, next: next}
		return wrap.Handler(next, rec.servePlain, rec.serveDirect)
	}
}

// A recoverer is a type with methods because of its name: ofHandler searches
// stacks for it.
type recoverer struct {
	o    *RecoverOptions
	next http.Handler
}

const recovererFrame = "/middleware.(*recoverer).serve"

func (c *recoverer) servePlain(w http.ResponseWriter, r *http.Request) {
	rec := wrap.Writer{Claimable: true}
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		id := first(w.Header()[requestIDField])
		c.o.note(v, r.Method, r.URL.Path, id)
		if rec.Hijacked() {
			return // the connection no longer belongs to the server
		}
		// A goroutine that outlives the handler must not begin a response now.
		if !rec.Claim() {
			panic(http.ErrAbortHandler)
		}
		forget(w.Header())
		refusal.Plain(w, r, internalError)
	}()
	c.next.ServeHTTP(rec.Init(w, nil), r)
}

func (c *recoverer) serveDirect(x *direct.Exchange, next direct.Handler) (answered bool) {
	path := x.Path() // a router inside may have cut it
	defer func() {
		if v := recover(); v != nil {
			c.o.note(v, x.Method(), string(path), x.Wire().GetHeader(requestIDField))
			x.Wire().Discard()
			forget(exchangeHeader{x.Wire()})
			refusal.Direct(x, internalError)
			answered = true
		}
	}()
	return next.ServeDirect(x)
}

// note logs a panic, or continues one with http.ErrAbortHandler.
func (o *RecoverOptions) note(v any, method, path, id string) {
	if v == http.ErrAbortHandler {
		panic(v)
	}
	stack := debug.Stack()
	if o.Handle != nil {
		o.Handle(v, stack)
		return
	}
	stack = ofHandler(stack)
	attrs := []slog.Attr{
		slog.String("panic", fmt.Sprint(v)), slog.String("method", method), slog.String("path", path),
		slog.String("request_id", id), slog.String("stack", string(stack)),
	}
	to := o.Logger
	if to == nil {
		to = slog.Default()
		if isStandard(to.Handler()) && isTerminal(log.Writer()) {
			to.LogAttrs(context.Background(), slog.LevelError, "panic in a handler", attrs[:len(attrs)-1]...)
			log.Writer().Write(stack)
			return
		}
	}
	to.LogAttrs(context.Background(), slog.LevelError, "panic in a handler", attrs...)
}

// isStandard reports whether h is slog's default, which logs by package log and
// has no exported name.
func isStandard(h slog.Handler) bool { return fmt.Sprintf("%T", h) == "*slog.defaultHandler" }

// ofHandler returns the part of a stack between the panic and Recover: the
// frames above are the runtime's, those below the server's. An unexpected stack
// is returned whole.
func ofHandler(stack []byte) []byte {
	lines := bytes.SplitAfter(stack, []byte{'\n'})
	// The first is the goroutine's; then each frame has two, function and
	// location.
	from, to := 0, len(lines)
	for i := 1; i+1 < len(lines); i += 2 {
		if bytes.HasPrefix(lines[i], []byte("panic(")) {
			from = i + 2
			break
		}
	}
	if from == 0 {
		return stack
	}
	for from+1 < len(lines) && bytes.HasPrefix(lines[from], []byte("runtime.")) {
		from += 2
	}
	for i := from; i+1 < len(lines); i += 2 {
		if bytes.Contains(lines[i], []byte(recovererFrame)) {
			to = i
			break
		}
	}
	return bytes.Join(lines[from:to], nil)
}

// forget removes fields from h that describe a response that is not sent.
func forget(h header) {
	for _, name := range [...]string{
		"Accept-Ranges", "Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language",
		"Content-Length",
		"Content-Location", "Content-Range", "Content-Type", "Etag", "Expires", "Last-Modified", "Location", "Trailer",
		"Transfer-Encoding",
	} {
		h.Del(name)
	}
	for _, name := range digests {
		h.Del(name)
	}
}

// instead responds to x with the refusal r. The fields that forget leaves stay,
// as on the ordinary path.
func instead(x *wire.Exchange, r *wire.Response) {
	if ready := x.Ready(); ready != nil {
		x.Discard()
		put(x, ready.Header())
	}
	forget(exchangeHeader{x})
	x.SetStatus(r.Status())
	put(x, r.Header())
	x.SetResponseBody(r.Body())
}

// put sets fields as Response.ServeHTTP does: Vary and Set-Cookie are added.
func put(x *wire.Exchange, h http.Header) {
	h.Del("Content-Length") // the server sets it
	for name, values := range h {
		if name != "Vary" && name != "Set-Cookie" {
			x.DelHeader(name)
		}
		for _, v := range values {
			x.AddHeader(name, v)
		}
	}
}
