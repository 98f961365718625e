package middleware

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"
	"unsafe"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// A LogFormat is how a line of the access log looks.
type LogFormat uint8

const (
	// LogCombined is Apache's and nginx's "combined", which all tools read.
	LogCombined LogFormat = iota
	// LogCommon is the Common Log Format: LogCombined without Referer and
	// User-Agent.
	LogCommon
	// LogText and LogJSON are log/slog's formats.
	LogText
	LogJSON
)

// AccessLogOptions are the options of NewAccessLog.
type AccessLogOptions struct {
	Format LogFormat
	// Output is what is written to; nil: os.Stderr. It is used by one goroutine
	// at a time and is not closed.
	Output io.Writer
	// Logger, if not nil, gets a record for each request, with the message
	// "request" and level Info, instead of Output; Format does not matter then.
	Logger *slog.Logger
	// Query: log what is behind the question mark, of the target and of Referer.
	// There may be secrets in it.
	Query bool
	// Latency and RequestID add to LogCommon and LogCombined, at the end of the
	// line, microseconds and the answer's X-Request-Id or "-". The other formats
	// have both always.
	Latency, RequestID bool
	// Buffer is how much is gathered, in bytes; twice that is kept. 0: 64 KiB;
	// negative: each line is written at once, by one Write.
	Buffer int
	// Every is how long a line may stay in the buffer; 0: a second.
	Every time.Duration
}

// An AccessLog writes a line for each request, when its handler has returned.
//
// The line has the client's address as RealIP, outside of it or inside, has
// found it; the user's name; method, target, status; and how many bytes of body
// the handler wrote, which is not how many arrived. A handler that panicked
// before it answered has status 500, one that took the connection with Hijack
// 101.
//
// What clients chose is escaped as nginx does it, control characters and bytes
// beyond ASCII as \xHH, and cut at 4 KiB, so that nobody can forge a line. That a
// Logger does so is up to its handler; slog's own do.
//
// In LogCommon and LogCombined a request costs no allocation on the direct way,
// and one on the plain way, for the response writer. LogText, LogJSON and Logger
// cost what log/slog does.
//
// When the buffer is full and the one before is still being written, requests
// wait: no line is dropped but by an Output that fails, see Lost. Close must be
// called when the server has stopped, else the last second is lost.
type AccessLog struct {
	o       AccessLogOptions
	clf     bool
	timed   bool
	handler slog.Handler // unless clf
	lines   lines
	stamp   stamp                // guarded by lines.mu
	mono    func() time.Duration // time since some moment
}

var processStart = time.Now()

// sinceStart reads the monotonic clock only, which takes half as long as
// time.Now.
func sinceStart() time.Duration { return time.Since(processStart) }

// NewAccessLog makes an AccessLog. o may be nil.
func NewAccessLog(o *AccessLogOptions) *AccessLog {
	l := &AccessLog{o: options(o), mono: sinceStart}
	l.stamp.now = time.Now
	if l.o.Output == nil {
		l.o.Output = os.Stderr
	}
	l.clf = l.o.Logger == nil && l.o.Format <= LogCommon
	l.timed = !l.clf || l.o.Latency
	l.lines.init(l.o.Output, or(l.o.Buffer, 64<<10), or(l.o.Every, time.Second))
	switch {
	case l.o.Logger != nil:
		l.handler = l.o.Logger.Handler()
	case l.o.Format == LogText:
		l.handler = slog.NewTextHandler(&l.lines, nil)
	case l.o.Format == LogJSON:
		l.handler = slog.NewJSONHandler(&l.lines, nil)
	case !l.clf:
		panic("middleware: NewAccessLog: unknown Format")
	}
	return l
}

// Flush writes out all lines until now and returns the first error of Output.
func (l *AccessLog) Flush() error { return l.lines.flush() }

// Close is Flush, and makes every later line be written at once. It does not
// close Output.
func (l *AccessLog) Close() error { return l.lines.close() }

// Lost is how many lines Output has failed to take.
func (l *AccessLog) Lost() int64 { return l.lines.lost.Load() }

// Wrap is the middleware. Any number of handlers may share an AccessLog.
func (l *AccessLog) Wrap(next http.Handler) http.Handler {
	return wrap.Handler(next,
		func(w http.ResponseWriter, r *http.Request) { l.servePlain(w, r, next) },
		l.serveDirect)
}

// An entry is what a line says. Its strings may be views of buffers.
type entry struct {
	remote, user, method, target, proto, host, referer, agent, id string

	status  int
	size    int64
	latency time.Duration
	views   bool
}

func (l *AccessLog) start() time.Duration {
	if l.timed {
		return l.mono()
	}
	return 0
}

func (l *AccessLog) servePlain(w http.ResponseWriter, r *http.Request, next http.Handler) {
	var rec wrap.Writer
	start, panicked := l.start(), true
	defer func() {
		e := entry{
			remote: r.RemoteAddr, user: rec.User(), method: r.Method, target: r.RequestURI, proto: r.Proto, host: r.Host,
			status: rec.Status(), size: rec.Written(),
		}
		switch {
		case e.status != 0:
		case rec.Hijacked():
			e.status = http.StatusSwitchingProtocols
		case panicked:
			e.status = http.StatusInternalServerError
		default:
			e.status = http.StatusOK
		}
		if e.target == "" && r.URL != nil { // a request that no server has read
			e.target = r.URL.RequestURI()
		}
		if l.o.Format != LogCommon || !l.clf {
			e.referer, e.agent = first(r.Header["Referer"]), first(r.Header["User-Agent"])
		}
		if !l.clf || l.o.RequestID {
			e.id = first(w.Header()[requestIDField])
		}
		l.log(&e, start)
	}()
	next.ServeHTTP(rec.Init(w, nil), r)
	panicked = false
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func (l *AccessLog) serveDirect(x *direct.Exchange, next direct.Handler) (answered bool) {
	start, panicked := l.start(), true
	defer func() {
		if !answered && !panicked {
			return // the plain way logs it
		}
		e := entry{
			remote: x.RemoteAddr, user: wrap.User(x), method: x.Method, target: view(x.Target), proto: "HTTP/1.1", host: view(x.Host),
			status: x.Status(), size: x.Size(), views: true,
		}
		if panicked {
			e.status, e.size = http.StatusInternalServerError, 0
		}
		if l.o.Format != LogCommon || !l.clf {
			e.referer, e.agent = view(x.Fields.Get("Referer")), view(x.Fields.Get("User-Agent"))
		}
		if !l.clf || l.o.RequestID {
			e.id = x.GetField(requestIDField)
		}
		l.log(&e, start)
	}()
	answered = next.ServeDirect(x)
	panicked = false
	return answered
}

// view is b as a string, without a copy, for who does not keep it.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func (l *AccessLog) log(e *entry, start time.Duration) {
	if e.method == http.MethodHead || e.status == http.StatusNotModified || e.status == http.StatusNoContent {
		e.size = 0 // what was written was not sent
	}
	now := l.mono()
	if l.timed {
		e.latency = now - start
	}
	if !l.o.Query {
		e.target, e.referer = beforeQuery(e.target), beforeQuery(e.referer)
	}
	if !l.clf {
		l.record(e)
		return
	}
	b := l.lines.begin()
	b = l.appendLine(b, e, now)
	l.lines.end(b)
}
