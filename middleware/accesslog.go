package middleware

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/filter"
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
	// LogText and LogJSON are log/slog's formats. They also have the host, the
	// latency, and, where there is one, the pattern of the route, the user and the
	// request id; and aborted=true if not all of the answer was sent.
	LogText
	LogJSON
	// LogVhostCombined is Apache's "vhost_combined": LogCombined with the host and
	// the port before it, so that many sites can share a log. The host is the
	// request's, so clients choose it.
	LogVhostCombined
)

// AccessLogOptions are the options of NewAccessLog.
type AccessLogOptions struct {
	Format LogFormat
	// Output is what is written to; nil: os.Stderr. It is used by one goroutine
	// at a time and is not closed. A *LineWriter, which other loggers may share,
	// is used as it is: Buffer and Every do not matter then.
	Output io.Writer
	// Logger, if not nil, gets a record for each request, with the message
	// "request" and level Info, instead of Output; Format does not matter then.
	Logger *slog.Logger
	// Query: log what is after the question mark, of the target and of Referer.
	// There may be secrets in it.
	Query bool
	// Latency and RequestID add to LogCommon, LogCombined and LogVhostCombined, at
	// the end of the line, microseconds and the answer's X-Request-Id or "-". The
	// other formats have both always.
	Latency, RequestID bool
	// Port is what LogVhostCombined says for requests whose Host has no port; 0:
	// 80. Servers that clients reach by https set 443.
	Port uint16
	// Buffer is how much is gathered, in bytes; twice that is kept. 0: 256 KiB, or
	// none if Output is a terminal; negative: none. Without one each line is
	// written at once, by one Write.
	Buffer int
	// Every is how long a line may stay in the buffer; 0: a second.
	Every time.Duration
}

// An AccessLog writes a line for each request, when its answer has been sent: when
// the last of it has been handed to the operating system, or the client has left.
// On other servers than chert it is written when the handler has returned.
//
// In the formats of Apache its time is when the request came, in a record
// for log/slog when the answer had been sent. Latency is the time between. On
// chert's event loops a request comes when the loop has found it, or others with
// it, to be there: what it waits for those others counts.
//
// The line has the client's address as RealIP, outside of it or inside, has
// found it; the user's name; method, target; the status that was sent; and how
// many bytes of body were, without heads and without what frames chunks, as
// nginx's $body_bytes_sent and Apache's %b. What other middleware outside of the
// log has made of the answer, as Compress does, is in these. An answer that was
// cut off has fewer bytes than it should; LogText and LogJSON say so besides. On
// other servers than chert the bytes are those that the handler wrote. A handler
// that panicked before it answered has status 500, one that took the connection
// with Hijack 101.
//
// Refused writes a line for what the server has refused without its handler.
//
// What clients chose is escaped as nginx does it, control characters and bytes
// beyond ASCII as \xHH, and cut at 4 KiB, so that no client can forge a line.
// LogText and LogJSON escape characters that cannot be printed, such as control
// characters and those that change the direction of text, as in \u202e. What a
// Logger escapes is up to its handler: slog's JSON handler keeps lines whole, but
// passes on control characters above U+007E.
//
// The pattern is http.Request.Pattern or direct.Exchange.Pattern. Middleware of
// this module that copies the request passes it back to the original. Other
// middleware between the log and the router that does so, with
// http.Request.WithContext, hides it.
//
// In the formats of Apache a request costs no allocation on the direct way,
// and one on the plain way, for the response writer. LogText, LogJSON and Logger
// cost what log/slog does. The line of an answer that its client does not take at
// once, or that follows others of the same connection at once, costs a copy of
// what it says.
//
// When the buffer is full and the one before is still being written, requests
// wait: no line is dropped but by an Output that fails, see Lost. Close must be
// called when the server has stopped, or the last lines are lost.
type AccessLog struct {
	o       AccessLogOptions
	clf     bool
	short   bool // an entry is all, and no more
	vhost   bool
	timed   bool
	handler slog.Handler // unless clf
	kept    slog.Handler // the same for lines that must not wait; unless clf or with Logger
	later   later        // records for Logger that must not wait
	lines   *LineWriter
	own     bool                 // lines has been made here
	stamp   stamp                // guarded by lines.mu
	mono    func() time.Duration // wire.Clock
}

// NewAccessLog makes an AccessLog. o may be nil.
func NewAccessLog(o *AccessLogOptions) *AccessLog {
	l := &AccessLog{o: options(o), mono: wire.Clock}
	l.stamp.now = time.Now
	if l.o.Output == nil {
		l.o.Output = os.Stderr
	}
	format := l.o.Format
	l.clf = l.o.Logger == nil && (format <= LogCommon || format == LogVhostCombined)
	l.vhost = l.clf && format == LogVhostCombined
	l.short = l.clf && l.o.Format == LogCommon && !l.o.RequestID
	l.timed = !l.clf || l.o.Latency
	if l.o.Logger != nil {
		l.o.Buffer = -1 // nothing is written
	}
	if l.lines, _ = l.o.Output.(*LineWriter); l.lines == nil {
		l.lines, l.own = NewLineWriter(l.o.Output, &LineWriterOptions{Buffer: l.o.Buffer, Every: l.o.Every}), true
	}
	switch {
	case l.o.Logger != nil:
		l.handler = l.o.Logger.Handler()
		l.later.init(l.handler)
	case l.o.Format == LogText:
		l.handler, l.kept = slog.NewTextHandler(l.lines, nil), slog.NewTextHandler(unwaited{l.lines}, nil)
	case l.o.Format == LogJSON:
		l.handler, l.kept = slog.NewJSONHandler(printable{l.lines}, nil), slog.NewJSONHandler(printable{unwaited{l.lines}}, nil)
	case !l.clf:
		panic("middleware: NewAccessLog: unknown Format")
	}
	return l
}

// Flush writes out all lines until now, to Output or Logger, and returns the first error of Output.
func (l *AccessLog) Flush() error {
	l.later.wait()
	return l.lines.Flush()
}

// Close is Flush, and makes every later line be written at once. It does not
// close Output, nor change one that is a LineWriter.
func (l *AccessLog) Close() error {
	if !l.own {
		return l.Flush()
	}
	l.later.wait()
	return l.lines.Close()
}

// Lost is how many lines Output has failed to take.
func (l *AccessLog) Lost() int64 { return l.lines.Lost() }

// Wrap is the middleware. Any number of handlers may share an AccessLog.
func (l *AccessLog) Wrap(next http.Handler) http.Handler {
	return wrap.Handler(next,
		func(w http.ResponseWriter, r *http.Request) { l.servePlain(w, r, next) },
		l.serveDirect)
}

func (l *AccessLog) servePlain(w http.ResponseWriter, r *http.Request, next http.Handler) {
	l.admit()
	var seen wrap.Writer
	start, panicked := l.mono(), true
	defer func() {
		rec := l.newRecord(start)
		e, m := &rec.e, &rec.m
		e.remote, e.user, e.method, e.target, e.proto = r.RemoteAddr, seen.User(), r.Method, r.RequestURI, r.Proto
		if e.target == "" && r.URL != nil { // a request that no server has read
			e.target = r.URL.RequestURI()
		}
		e.ip, e.views = "", false
		if !l.short {
			m.host, m.pattern = r.Host, ""
			m.referer, m.agent = first(r.Header["Referer"]), first(r.Header["User-Agent"])
			m.id = first(w.Header()[requestIDField])
		}
		if !l.clf {
			m.pattern = r.Pattern
		}
		if rec.trim(); seen.Hijacked() || !wire.Watch(w, rec) {
			rec.Sent(delivered(&seen, r, panicked))
		}
	}()
	next.ServeHTTP(seen.Init(w, nil), r)
	panicked = false
}

// delivered is what becomes of an answer as far as it is known when its handler
// has returned.
func delivered(w *wrap.Writer, r *http.Request, panicked bool) wire.Delivery {
	d := wire.Delivery{Status: w.Status(), Body: w.Written()}
	switch {
	case w.Hijacked():
		if d.Complete = true; d.Status == 0 {
			d.Status = http.StatusSwitchingProtocols
		}
		return d
	case d.Status == 0 && !panicked:
		d.Status = http.StatusOK
	}
	if r.Method == http.MethodHead || d.Status == http.StatusNotModified || d.Status == http.StatusNoContent {
		d.Body = 0 // what was written was not sent
	}
	d.Complete = !panicked && r.Context().Err() == nil
	return d
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

func (l *AccessLog) serveDirect(x *direct.Exchange, next direct.Handler) (answered bool) {
	l.admit()
	if w := x.Wire(); w.Time() == 0 {
		w.SetTime(l.mono()) // for all inside too
	}
	panicked := true
	defer func() {
		if answered || panicked { // else the plain way logs it
			x.Wire().Watch(l.directRecord(x.Wire()))
		}
	}()
	answered = next.ServeDirect(x)
	panicked = false
	return answered
}

func (l *AccessLog) directRecord(x *wire.Exchange) *record {
	rec := l.newRecord(x.Time())
	e, m := &rec.e, &rec.m
	e.remote, e.user, e.method, e.target, e.proto = x.RemoteAddr(), filter.User(x), x.Method(), view(x.Target()), "HTTP/1.1"
	e.ip = x.PeerIP()
	e.views = true
	if !l.short {
		m.host, m.referer, m.agent = view(x.Host()), view(x.Fields().Get("Referer")), view(x.Fields().Get("User-Agent"))
		m.id, m.pattern = "", ""
		if !l.clf || l.o.RequestID {
			m.id = x.GetHeader(requestIDField)
		}
		if !l.clf {
			m.pattern = x.Pattern()
		}
	}
	rec.trim()
	return rec
}
