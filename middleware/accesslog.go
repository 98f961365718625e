package middleware

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/user"
	"github.com/chert-http/chert/internal/view"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// A LogFormat is the format of the lines of an access log.
type LogFormat uint8

const (
	// LogCombined is the "combined" format of Apache and nginx, which all tools
	// read.
	LogCombined LogFormat = iota
	// LogCommon is the Common Log Format: LogCombined without Referer and
	// User-Agent.
	LogCommon
	// LogText and LogJSON are the formats of log/slog. They also have the host,
	// the latency, and, if known, the pattern of the route, the user and the
	// request id; and aborted=true if the response was not sent whole.
	LogText
	LogJSON
	// LogVhostCombined is the "vhost_combined" format of Apache: LogCombined
	// after the host and the port, so that many sites can share a log. The host
	// is the request's, so clients choose it.
	LogVhostCombined
	// LogNone writes no lines: for an AccessLog around those of Override.
	LogNone
)

// AccessLogOptions are the options of NewAccessLog.
type AccessLogOptions struct {
	// Format is the format of a line. Default LogCombined.
	Format LogFormat
	// Output is where lines are written; nil: os.Stderr. One goroutine at a
	// time uses it, and it is not closed. A *LineWriter, which other loggers
	// may share, is used directly: BufferSize and FlushInterval are ignored then.
	Output io.Writer
	// Logger, if not nil, receives a record for each request, with the message
	// "request" and level Info, instead of Output; Format is ignored then.
	Logger *slog.Logger
	// Fields are the fields of LogText, LogJSON and Logger, besides those of
	// log/slog itself. The zero value is all; ParseLogFields makes others.
	Fields LogFields
	// Skip, if not nil, reports whether requests for a path, decoded, have no
	// line, whatever the response is. It is called concurrently, must not
	// block, and must not keep path.
	Skip func(path string) bool
	// Sample is of how many requests one has a line, chosen at random. Default 1: each has
	// one, as with a negative value. Requests with a status of 400 or more, and those whose
	// response was not sent whole, always have a line.
	Sample int
	// Query logs the part after the question mark, of the target and of
	// Referer. It may contain secrets.
	Query bool
	// Latency and RequestID append microseconds and the response's
	// X-Request-Id, or "-", to the lines of LogCommon, LogCombined and
	// LogVhostCombined. The other formats always have both.
	Latency, RequestID bool
	// Port is what LogVhostCombined says for requests whose Host has no port.
	// Default 443 with TLS and 80 without it. Servers whose TLS a proxy ends set 443.
	Port uint16
	// BufferSize is how much is gathered, in bytes; twice that is kept. Default 256 KiB,
	// or none if Output is a terminal; negative: none. Without one each line is
	// written at once, by one Write.
	BufferSize int
	// FlushInterval is how long a line may stay in the buffer. Default 1 s; negative: no
	// limit, until the buffer is full.
	FlushInterval time.Duration
}

// An AccessLog writes a line for each request when its response has been sent:
// when the last of it has been handed to the operating system, or the client
// has left. On servers other than chert it writes the line when the handler has
// returned.
//
// In the formats of Apache the time of a line is when the request arrived, in a
// record for log/slog when the response had been sent. Latency is the time
// between. On chert's event loops a request arrives when the loop finds that
// its connection is readable: the time that it then waits for others, found at
// the same time, counts.
//
// The line has the client's address as an inner or outer RealIP has found it;
// the user's name; method, target; the status that was sent; and the number of
// bytes of the body, without heads and the framing of chunks, as nginx's
// $body_bytes_sent and Apache's %b. Changes to the response by middleware
// outside of the log, such as Compress, are included. A response that was cut
// off has fewer bytes than it should; LogText and LogJSON also mark it. On
// servers other than chert the bytes are those that the handler wrote. The
// status is 500 for a handler that panicked before it responded, and 101 for
// one that took over the connection with Hijack. The line of an event stream or a WebSocket
// (packages eventstream and websocket) is written when that has ended; the bytes of a
// WebSocket are those of the frames that were sent.
//
// Refused writes a line for a request that the server refused without its
// handler.
//
// Text that clients choose is escaped as in nginx, control characters and bytes
// beyond ASCII as \xHH, and cut at 4 KiB, so that no client can forge a line.
// LogText and LogJSON escape characters that cannot be printed, such as control
// characters and those that change the direction of text, as in \u202e. With a
// Logger, escaping is up to its handler: slog's JSON handler keeps lines whole,
// but passes on control characters above U+007E.
//
// The pattern is http.Request.Pattern or direct.Exchange.Pattern. Middleware of
// this module that copies the request passes the pattern back to the original.
// Other middleware between the log and the router that copies it, with
// http.Request.WithContext, hides the pattern.
//
// In the formats of Apache a request costs no allocation on the fast path, and
// one on the ordinary path, for the response writer. LogText, LogJSON and Logger
// cost what log/slog does. If the client does not accept a response at once, or
// if another response precedes it on the connection in the same batch, its line
// costs a copy of its fields.
//
// When the buffer is full and the previous one is still being written, requests
// wait: no line is dropped, except by an Output that fails, see Lost. Close
// must be called when the server has stopped, or the last lines are lost.
type AccessLog struct {
	o       AccessLogOptions
	clf     bool
	short   bool // an entry has all that is logged
	vhost   bool
	timed   bool
	handler slog.Handler // unless clf
	kept    slog.Handler // the same for lines that must not block; unless clf or with Logger
	later   later        // records for Logger that must not block
	lines   *LineWriter
	own     bool                 // lines was made by NewAccessLog
	none    bool                 // Format is LogNone, and there is no Logger
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
	if l.o.Format > LogNone {
		l.o.Format = LogCombined
	}
	if l.o.Fields == 0 {
		l.o.Fields = allFields
	}
	format := l.o.Format
	l.none = l.o.Logger == nil && format == LogNone
	l.clf = l.o.Logger == nil && format != LogText && format != LogJSON
	l.vhost = l.clf && format == LogVhostCombined
	l.short = l.clf && l.o.Format == LogCommon && !l.o.RequestID
	l.timed = !l.clf || l.o.Latency
	if l.o.Logger != nil || l.none {
		l.o.BufferSize = -1 // nothing is written
	}
	if l.lines, _ = l.o.Output.(*LineWriter); l.lines == nil {
		buffer := &LineWriterOptions{BufferSize: l.o.BufferSize, FlushInterval: l.o.FlushInterval}
		l.lines, l.own = NewLineWriter(l.o.Output, buffer), true
	}
	switch {
	case l.o.Logger != nil:
		l.handler = l.o.Logger.Handler()
		l.later.init(l.handler)
	case l.o.Format == LogText:
		l.handler, l.kept = slog.NewTextHandler(l.lines, nil), slog.NewTextHandler(unwaited{l.lines}, nil)
	case l.o.Format == LogJSON:
		l.handler, l.kept = slog.NewJSONHandler(printable{l.lines}, nil),
			slog.NewJSONHandler(printable{unwaited{l.lines}}, nil)
	}
	return l
}

// Flush writes all lines so far to Output or Logger, and returns the first
// error of Output.
func (l *AccessLog) Flush() error {
	l.later.wait()
	return l.lines.Flush()
}

// Close flushes, and makes every later line be written at once. It closes
// neither Output nor a LineWriter, and does not change the latter.
func (l *AccessLog) Close() error {
	if !l.own {
		return l.Flush()
	}
	l.later.wait()
	return l.lines.Close()
}

// Lost returns the number of lines that Output failed to accept.
func (l *AccessLog) Lost() int64 { return l.lines.Lost() }

// Wrap logs the requests of next. It may wrap several handlers.
func (l *AccessLog) Wrap(next http.Handler) http.Handler {
	return wrap.Handler(next,
		func(w http.ResponseWriter, r *http.Request) { l.servePlain(w, r, next) },
		l.serveDirect)
}

func (l *AccessLog) servePlain(w http.ResponseWriter, r *http.Request, next http.Handler) {
	l.admit()
	var seen wrap.Writer
	start, panicked := l.mono(), true
	path := "" // now: inner handlers may change it
	if r.URL != nil {
		path = r.URL.Path
	}
	defer func() {
		l := l.instead(seen.Log())
		if l.leavesOut(path) {
			return
		}
		rec := l.newRecord(start)
		e, m := &rec.e, &rec.m
		target := r.RequestURI
		if target == "" && r.URL != nil { // a request that was not read by a server
			target = r.URL.RequestURI()
		}
		e.remote, e.user, e.method, e.target, e.proto = r.RemoteAddr, seen.User(), r.Method, l.shown(target), r.Proto
		e.ip, e.views = "", false
		if !l.short {
			m.host, m.pattern, m.tls = r.Host, "", r.TLS != nil
			m.referer, m.agent = l.shown(first(r.Header["Referer"])), first(r.Header["User-Agent"])
			m.id = first(w.Header()[requestIDField])
		}
		if !l.clf {
			m.pattern = r.Pattern
			rec.added, _ = seen.More().([]slog.Attr)
		}
		if seen.Hijacked() || !wire.Watch(w, rec) {
			rec.Sent(delivered(&seen, r, panicked))
		}
	}()
	next.ServeHTTP(seen.Init(w, nil), r)
	panicked = false
}

// delivered returns the Delivery of a response as far as it is known when its
// handler has returned.
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
		w.SetTime(l.mono()) // for inner handlers too
	}
	panicked := true
	path := view.String(x.Path()) // now: inner handlers may change it
	defer func() {
		if !answered && !panicked {
			return // the ordinary path logs it
		}
		if to := l.taken(x.Wire()); !to.leavesOut(path) {
			x.Wire().Watch(to.directRecord(x.Wire()))
		}
	}()
	answered = next.ServeDirect(x)
	panicked = false
	return answered
}

func (l *AccessLog) directRecord(x *wire.Exchange) *record {
	rec := l.newRecord(x.Time())
	e, m := &rec.e, &rec.m
	e.remote, e.user, e.method, e.proto = x.RemoteAddr(), user.Of(x), x.Method(), x.Proto()
	e.target = l.shown(view.String(x.Target()))
	e.ip = x.PeerIP()
	e.views = true
	if !l.short {
		m.host, m.referer, m.agent = view.String(x.Host()), l.shown(view.String(x.Fields().Get("Referer"))),
			view.String(x.Fields().Get("User-Agent"))
		m.id, m.pattern, m.tls = "", "", x.TLS()
		if !l.clf || l.o.RequestID {
			m.id = x.GetHeader(requestIDField)
		}
		if !l.clf {
			m.pattern = x.Pattern()
			rec.later, _ = x.Value(addedKey{}).(func() []slog.Attr)
		}
	}
	return rec
}
