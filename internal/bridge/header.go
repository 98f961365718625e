package bridge

import (
	"net/http"
	"net/textproto"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chert-http/chert/internal/http1"
)

// extra are the fields that the server adds, in the order in which they are
// written behind the handler's own.
type extra struct {
	date        bool
	length      int64 // -1 for none
	contentType string
	connection  string
	encoding    string
}

// head is the work of sendHead: the handler's header, what to leave out of it
// and what to add.
type head struct {
	h       http.Header
	exclude []string
	add     extra
}

func (d *head) get(key string) string {
	if v := d.h[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (d *head) has(key string) bool { _, ok := d.h[key]; return ok }

func (d *head) del(key string) {
	if d.has(key) {
		d.exclude = append(d.exclude, key)
	}
}

// sendHead decides the framing and puts the head in the wire buffer, once. p
// is the first of the body, for sniffing; with handlerDone it is all of it.
func (w *response) sendHead(p []byte) {
	if w.headOut {
		return
	}
	w.headOut = true
	d := head{h: w.sent, add: extra{length: -1}}
	trailers := w.findTrailers(&d)
	te := d.get("Transfer-Encoding")
	keepAlives := w.x.c.cfg.KeepAlives()
	// A handler that is done without a length and without trailers has shown
	// all of its body: p. Not for HEAD without bytes, where nobody knows what
	// GET would give, nor where no length may be (RFC 9110 section 8.6).
	if w.handlerDone && !trailers && te == "" && http1.BodyAllowed(w.status) && !d.has("Content-Length") && (!w.x.isHEAD || len(p) > 0) {
		w.length = int64(len(p))
		d.add.length = w.length
	}
	w.decideKeepAlive(&d, keepAlives)
	w.drainBody(&d)
	w.decideType(&d, te, p)
	w.decideFraming(&d, te)
	if w.closeAfter.Load() && (!keepAlives || !http1.HasToken([]byte(d.get("Connection")), "close")) && !w.switching(&d) {
		d.del("Connection")
		if w.x.minor >= 1 {
			d.add.connection = "close"
		}
	}
	out := w.wire()
	out.B = http1.AppendStatusLine(out.B, min(w.x.minor, 1), w.status)
	out.B = appendHeader(out.B, d.h, d.exclude)
	out.B = d.add.append(out.B)
	out.B = append(out.B, "\r\n"...)
	if len(out.B) > wireSize {
		w.flushWire(nil)
	}
}

// findTrailers notes the trailers that the header declares and reports whether
// there are any. http.TrailerPrefix keys are never part of the head.
func (w *response) findTrailers(d *head) (found bool) {
	for k := range d.h {
		if strings.HasPrefix(k, http.TrailerPrefix) {
			d.exclude = append(d.exclude, k)
			found = true
		}
	}
	for _, v := range d.h["Trailer"] {
		found = true
		for name := range strings.SplitSeq(v, ",") {
			if name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)); trailerAllowed(name) {
				w.trailers = append(w.trailers, name)
			}
		}
	}
	return found
}

// trailerAllowed refuses fields that frame, route or authenticate a message;
// they must not come behind its body (RFC 9110 section 6.5.1).
func trailerAllowed(name string) bool {
	if strings.HasPrefix(name, "If-") {
		return false
	}
	switch name {
	case "", "Authorization", "Cache-Control", "Connection", "Content-Encoding", "Content-Length",
		"Content-Range", "Content-Type", "Expect", "Host", "Keep-Alive", "Max-Forwards", "Pragma",
		"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Range", "Realm", "Te",
		"Trailer", "Transfer-Encoding", "Www-Authenticate":
		return false
	}
	return true
}

func (w *response) decideKeepAlive(d *head, keepAlives bool) {
	old := w.x.minor == 0
	switch {
	case old && w.x.keepAlive && (w.x.isHEAD || w.length != -1 || !http1.BodyAllowed(w.status)):
		if !d.has("Connection") {
			d.add.connection = "keep-alive"
		}
	case old || !w.x.keepAlive:
		w.closeAfter.Store(true)
	}
	if d.get("Connection") == "close" || !keepAlives {
		w.closeAfter.Store(true)
	}
	if w.expectsContinue && !w.x.bodyDone.Load() {
		// The client may or may not send its body now; the next bytes could be
		// either that or a request.
		w.closeAfter.Store(true)
	}
}

func (w *response) drainBody(d *head) {
	if w.x.req.ContentLength == 0 || w.closeAfter.Load() || w.fullDuplex {
		return
	}
	keep, tooBig := w.x.body.drainBeforeHeader()
	if tooBig {
		w.tooLarge()
		d.del("Connection")
		d.add.connection = "close"
	} else if !keep {
		w.closeAfter.Store(true)
	}
}

func (w *response) decideType(d *head, te string, p []byte) {
	if http1.BodyAllowed(w.status) {
		if d.get("Content-Encoding") == "" && !d.has("Content-Type") && te == "" && len(p) > 0 {
			d.add.contentType = http.DetectContentType(p)
		}
	} else {
		d.exclude = append(d.exclude, suppressed(w.status)...)
	}
	d.add.date = !d.has("Date")
}

// suppressed are fields that must not be in an answer without a body.
func suppressed(status int) []string {
	switch {
	case status == http.StatusNotModified:
		// RFC 9110 section 15.4.5: metadata beyond what a cache needs to
		// choose is left out.
		return []string{"Content-Type", "Content-Length", "Transfer-Encoding"}
	case !http1.BodyAllowed(status):
		// RFC 9110 section 8.6: no Content-Length with 1xx and 204.
		return excludeNoBody
	}
	return nil
}

var excludeNoBody = []string{"Content-Length", "Transfer-Encoding"}

// decideFraming is RFC 9112 section 6.3 from the server's side.
func (w *response) decideFraming(d *head, te string) {
	hasLength := w.length != -1
	if hasLength && te != "" && te != "identity" {
		w.x.c.cfg.Logf("http: WriteHeader called with both Transfer-Encoding of %q and a Content-Length of %d", te, w.length)
		d.del("Content-Length")
		hasLength = false
	}
	switch {
	case w.x.isHEAD || !http1.BodyAllowed(w.status) || hasLength:
		d.del("Transfer-Encoding")
	case w.x.minor == 0:
		// No chunks in HTTP/1.0: the end of the connection ends the body.
		w.closeAfter.Store(true)
		d.del("Transfer-Encoding")
	case te == "identity":
		w.closeAfter.Store(true)
		d.del("Transfer-Encoding")
	default:
		w.chunking = true
		d.add.encoding = "chunked"
		if te == "chunked" {
			d.del("Transfer-Encoding")
		}
		d.del("Content-Length")
	}
}

func (w *response) switching(d *head) bool {
	return w.status == http.StatusSwitchingProtocols && http1.HasToken([]byte(d.get("Connection")), "upgrade")
}

// endChunks writes the last chunk and the trailer section.
func (w *response) endChunks() {
	out := w.wire()
	out.B = append(out.B, "0\r\n"...)
	t := make(http.Header)
	for k, v := range w.header {
		if name, ok := strings.CutPrefix(k, http.TrailerPrefix); ok {
			t[name] = v
		}
	}
	for _, k := range w.trailers {
		if v, ok := w.header[k]; ok {
			t[k] = append(t[k], v...)
		}
	}
	out.B = appendHeader(out.B, t, nil)
	out.B = append(out.B, "\r\n"...)
}

func (e *extra) append(b []byte) []byte {
	if e.date {
		b = append(b, "Date: "...)
		b = appendDate(b)
		b = append(b, "\r\n"...)
	}
	if e.length >= 0 {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, e.length, 10)
		b = append(b, "\r\n"...)
	}
	for _, f := range [...][2]string{{"Content-Type", e.contentType}, {"Connection", e.connection}, {"Transfer-Encoding", e.encoding}} {
		if f[1] != "" {
			b = http1.AppendField(b, f[0], f[1])
		}
	}
	return b
}

// appendHeader writes h sorted by name, without the excluded keys and those
// that are not field names.
func appendHeader(b []byte, h http.Header, exclude []string) []byte {
	if len(h) == 0 {
		return b
	}
	var few [16]string
	keys := few[:0]
	for k := range h {
		if !slices.Contains(exclude, k) && http1.ValidFieldName(k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		for _, v := range h[k] {
			b = http1.AppendField(b, k, v)
		}
	}
	return b
}

// date is the Date field's value, made once a second.
type date struct {
	second int64
	text   string
}

var lastDate atomic.Pointer[date]

func appendDate(b []byte) []byte {
	now := time.Now()
	d := lastDate.Load()
	if d == nil || d.second != now.Unix() {
		d = &date{now.Unix(), now.UTC().Format(http.TimeFormat)}
		lastDate.Store(d)
	}
	return append(b, d.text...)
}

func statusLineText(status int) string {
	return strconv.Itoa(status) + " " + http.StatusText(status)
}

// complain logs a handler's mistake with the place where it was made.
func (w *response) complain(format string) {
	pc := make([]uintptr, 16)
	frames := runtime.CallersFrames(pc[:runtime.Callers(3, pc)])
	var at runtime.Frame
	for {
		f, more := frames.Next()
		at = f
		if !more || !strings.HasPrefix(f.Function, "net/http.") && !strings.Contains(f.Function, "chert/internal/bridge.") {
			break
		}
	}
	w.x.c.cfg.Logf(format, at.Function+" ("+path.Base(at.File)+":"+strconv.Itoa(at.Line)+")")
}
