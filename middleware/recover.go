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
	// debug.Stack has it. It must not answer.
	Handle func(v any, stack []byte)
}

var internalError = statusText(http.StatusInternalServerError)

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
		rec := &recoverer{o: &opt, next: next}
		return wrap.Handler(next, rec.servePlain, rec.serveDirect)
	}
}

// A recoverer is a type with methods for the sake of its name: ofHandler looks for
// that in stacks.
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
			return // the connection is not the server's any more
		}
		// A goroutine that outlives the handler must not begin an answer now.
		if !rec.Claim() {
			panic(http.ErrAbortHandler)
		}
		forget(w.Header())
		refusal.Plain(w, r, internalError)
	}()
	c.next.ServeHTTP(rec.Init(w, nil), r)
}

func (c *recoverer) serveDirect(x *direct.Exchange, next direct.Handler) (answered bool) {
	defer func() {
		if v := recover(); v != nil {
			c.o.note(v, x.Method(), string(x.Path()), x.Wire().GetHeader(requestIDField))
			x.Wire().Discard()
			forget(exchangeHeader{x.Wire()})
			refusal.Direct(x, internalError)
			answered = true
		}
	}()
	return next.ServeDirect(x)
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

// isStandard reports whether h is slog's own default, which logs by package log
// and has no exported name.
func isStandard(h slog.Handler) bool { return fmt.Sprintf("%T", h) == "*slog.defaultHandler" }

// ofHandler is the part of a stack between the panic and Recover: the frames above
// are the runtime's, those below the server's. A stack that does not look as
// expected is returned whole.
func ofHandler(stack []byte) []byte {
	lines := bytes.SplitAfter(stack, []byte{'\n'})
	// The first is the goroutine's; then each frame has two, function and place.
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
func instead(x *wire.Exchange, r *wire.Response) {
	if ready := x.Ready(); ready != nil {
		x.Discard()
		put(x, ready.Header())
	}
	forget(exchangeHeader{x})
	x.SetStatus(r.Status())
	put(x, r.Header())
	x.SetAnswerBody(r.Body())
}

// put sets fields as Response.ServeHTTP does: Vary and Set-Cookie are added.
func put(x *wire.Exchange, h http.Header) {
	h.Del("Content-Length") // the server's
	for name, values := range h {
		if name != "Vary" && name != "Set-Cookie" {
			x.DelHeader(name)
		}
		for _, v := range values {
			x.AddHeader(name, v)
		}
	}
}
