package bridge

import (
	"net/http"
	"net/textproto"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/internal/http1"
)

// encodedHead describes the status line and the handler's fields that
// WriteHeader has put in the wire buffer. Encoding them at once is the snapshot
// that WriteHeader promises, without a copy of the map. The fields that the
// server may still take back are noted with their places.
type encodedHead struct {
	connection, encoding, length, contentType heldField
	hasDate, coded, trailers                  bool
	upgrading, upgrade                        bool // Connection has "upgrade"; Upgrade is there
}

// heldField is a field that sendHead looks at and may take back.
type heldField struct {
	value      string // the first one
	start, end int    // of its lines in out; empty when the handler did not set it
	cut        bool
}

func (f *heldField) set() bool { return f.end > f.start }

// extra are the fields that the server adds, in the order in which they are
// written behind the handler's own.
type extra struct {
	date        bool
	now         int64 // of sys.Nanotime
	length      int64 // -1 for none
	contentType string
	connection  string
	encoding    string
}

// encodeHead puts the status line and the handler's fields in the buffer.
func (w *response) encodeHead() {
	w.out = http1.AppendStatusLine(w.out, min(w.x.minor, 1), w.status)
	if len(w.header) == 0 {
		return
	}
	var few [16]string
	keys, trailers := sortedKeys(few[:0], w.header, nil)
	w.head.trailers = trailers
	for _, k := range keys {
		w.encodeField(k, w.header[k])
	}
}

func (w *response) encodeField(k string, vv []string) {
	start := len(w.out)
	for _, v := range vv {
		w.out = http1.AppendField(w.out, k, v)
	}
	w.note(k, vv, start)
}

// note remembers what sendHead must know of the field k, whose lines begin at
// start.
func (w *response) note(k string, vv []string, start int) {
	h := &w.head
	var f *heldField
	switch k {
	case "Connection":
		f = &h.connection
		// A key without values means that none is wanted.
		f.cut = len(vv) == 0
		for _, v := range vv {
			h.upgrading = h.upgrading || http1.HasToken([]byte(v), "upgrade")
		}
	case "Upgrade":
		h.upgrade = len(vv) > 0 && vv[0] != ""
		return
	case "Transfer-Encoding":
		f = &h.encoding
	case "Content-Length":
		f = &h.length
		// A key without values means that none is wanted.
		f.cut = len(vv) == 0
		if len(vv) > 0 && vv[0] != "" && !w.noteLength(vv[0]) {
			w.out = w.out[:start]
			return
		}
	case "Content-Type":
		f = &h.contentType
		// A key without values suppresses sniffing, as with net/http.
		f.cut = len(vv) == 0
	case "Date":
		h.hasDate = true
		return
	case "Content-Encoding":
		h.coded = len(vv) > 0 && vv[0] != ""
		return
	case "Trailer":
		w.declareTrailers(vv)
		return
	default:
		return
	}
	f.start, f.end = start, len(w.out)
	if len(vv) > 0 {
		f.value = vv[0]
	}
}

// noteLength takes the length that the handler declares, or forgets a malformed
// one and reports false.
func (w *response) noteLength(v string) bool {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		w.x.c.cfg.Logf("http: invalid Content-Length of %q", v)
		w.header.Del("Content-Length")
		return false
	}
	w.length = n
	return true
}

// declareTrailers notes the trailers that the head announces.
func (w *response) declareTrailers(vv []string) {
	w.head.trailers = w.head.trailers || len(vv) > 0
	for _, v := range vv {
		for name := range strings.SplitSeq(v, ",") {
			if name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)); trailerAllowed(name) {
				w.trailers = append(w.trailers, name)
			}
		}
	}
}

// takeBack removes the cut fields' lines from the buffer.
func (w *response) takeBack() {
	h := &w.head
	cut := func(f *heldField) bool { return f.cut && f.set() }
	if !cut(&h.connection) && !cut(&h.encoding) && !cut(&h.length) && !cut(&h.contentType) {
		return
	}
	held := [...]*heldField{&h.connection, &h.encoding, &h.length, &h.contentType}
	// From the last to the first, so that the places of the others stay right.
	slices.SortFunc(held[:], func(a, b *heldField) int { return b.start - a.start })
	for _, f := range held {
		if cut(f) {
			w.out = slices.Delete(w.out, f.start, f.end)
		}
	}
}

// sendHead decides the framing and completes the head in the wire buffer,
// once. p is the first of the body, for sniffing; with handlerDone it is all
// of it.
func (w *response) sendHead(p []byte) {
	if w.headOut {
		return
	}
	w.headOut = true
	h := &w.head
	add := extra{length: -1, date: !h.hasDate, now: w.x.c.t.Now()}
	keepAlives := w.x.c.cfg.KeepAlives()
	// A handler that is done without a length and without trailers has shown
	// all of its body: p. Not for HEAD without bytes, where nobody knows what
	// GET would give, nor where no length may be (RFC 9110 section 8.6).
	if w.handlerDone && !h.trailers && h.encoding.value == "" && http1.BodyAllowed(w.status) && !h.length.set() && !h.length.cut && (!w.x.isHEAD || len(p) > 0) {
		w.length = int64(len(p))
		add.length = w.length
	}
	w.decideKeepAlive(&add, keepAlives)
	w.drainBody(&add)
	w.decideType(&add, p)
	w.decideFraming(&add)
	if w.closeAfter.Load() && (!keepAlives || !http1.HasToken([]byte(h.connection.value), "close")) && !w.switching() {
		h.connection.cut = true
		if w.x.minor >= 1 {
			add.connection = "close"
		}
	}
	w.takeBack()
	w.out = add.append(w.out)
	w.out = append(w.out, "\r\n"...)
	if len(w.out) > wireSize {
		w.flushWire(nil)
	}
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

func (w *response) decideKeepAlive(add *extra, keepAlives bool) {
	old := w.x.minor == 0
	switch {
	case old && w.x.keepAlive && (w.x.isHEAD || w.length != -1 || !http1.BodyAllowed(w.status)):
		if !w.head.connection.set() && !w.head.connection.cut {
			add.connection = "keep-alive"
		}
	case old || !w.x.keepAlive:
		w.closeAfter.Store(true)
	}
	if w.head.connection.value == "close" || !keepAlives {
		w.closeAfter.Store(true)
	}
	if w.expectsContinue && !w.x.bodyDone.Load() {
		// The client may or may not send its body now; the next bytes could be
		// either that or a request.
		w.closeAfter.Store(true)
	}
}

func (w *response) drainBody(add *extra) {
	if !w.x.hasBody() || w.closeAfter.Load() || w.fullDuplex.Load() {
		return
	}
	keep, tooBig := w.x.body.drainBeforeHeader()
	if tooBig {
		w.tooLarge()
		w.head.connection.cut = true
		add.connection = "close"
	} else if !keep {
		w.closeAfter.Store(true)
	}
}

func (w *response) decideType(add *extra, p []byte) {
	h := &w.head
	switch {
	case w.status == http.StatusNotModified:
		// RFC 9110 section 15.4.5: metadata beyond what a cache needs to
		// choose is left out.
		h.contentType.cut, h.length.cut, h.encoding.cut = true, true, true
	case !http1.BodyAllowed(w.status):
		// RFC 9110 section 8.6: no Content-Length with 1xx and 204.
		h.length.cut, h.encoding.cut = true, true
	case !h.coded && !h.contentType.set() && !h.contentType.cut && h.encoding.value == "" && len(p) > 0:
		add.contentType = http.DetectContentType(p)
	}
}

var excludeNoBody = []string{"Content-Length", "Transfer-Encoding"}

// decideFraming is RFC 9112 section 6.3 from the server's side.
func (w *response) decideFraming(add *extra) {
	h := &w.head
	te := h.encoding.value
	hasLength := w.length != -1
	if hasLength && te != "" && te != "identity" {
		w.x.c.cfg.Logf("http: WriteHeader called with both Transfer-Encoding of %q and a Content-Length of %d", te, w.length)
		h.length.cut = true
		hasLength = false
	}
	switch {
	case w.x.isHEAD || !http1.BodyAllowed(w.status) || hasLength:
		h.encoding.cut = true
	case w.x.minor == 0 || te == "identity":
		// No chunks in HTTP/1.0, and none wanted with identity: the end of the
		// connection ends the body.
		w.closeAfter.Store(true)
		h.encoding.cut = true
	default:
		w.chunking = true
		add.encoding = "chunked"
		if te == "chunked" {
			h.encoding.cut = true
		}
		h.length.cut = true
	}
}

func (w *response) switching() bool {
	return w.status == http.StatusSwitchingProtocols && w.head.upgrading && w.head.upgrade
}

// endChunks writes the last chunk and the trailer section.
func (w *response) endChunks() {
	w.out = append(w.out, "0\r\n"...)
	var t http.Header // most responses have none
	add := func(name string, vv []string) {
		if t == nil {
			t = make(http.Header)
		}
		t[name] = append(t[name], vv...)
	}
	for k, vv := range w.header {
		if name, ok := strings.CutPrefix(k, http.TrailerPrefix); ok {
			add(name, vv)
		}
	}
	for _, k := range w.trailers {
		if vv, ok := w.header[k]; ok {
			add(k, vv)
		}
	}
	w.out = appendHeader(w.out, t, nil)
	w.out = append(w.out, "\r\n"...)
}

func (e *extra) append(b []byte) []byte {
	if e.date {
		b = appendDate(b, e.now)
	}
	if e.length >= 0 {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, e.length, 10)
		b = append(b, "\r\n"...)
	}
	if e.contentType != "" {
		b = http1.AppendField(b, "Content-Type", e.contentType)
	}
	if e.connection != "" {
		b = http1.AppendField(b, "Connection", e.connection)
	}
	if e.encoding != "" {
		b = http1.AppendField(b, "Transfer-Encoding", e.encoding)
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
	keys, _ := sortedKeys(few[:0], h, exclude)
	for _, k := range keys {
		for _, v := range h[k] {
			b = http1.AppendField(b, k, v)
		}
	}
	return b
}

// sortedKeys appends to keys those of h that are field names, and reports
// whether there are keys with http.TrailerPrefix, which are not.
func sortedKeys(keys []string, h http.Header, exclude []string) (_ []string, trailers bool) {
	for k := range h {
		switch {
		case http1.ValidFieldName(k):
			if !slices.Contains(exclude, k) {
				keys = append(keys, k)
			}
		case strings.HasPrefix(k, http.TrailerPrefix):
			trailers = true
		}
	}
	if len(keys) > 1 {
		slices.Sort(keys)
	}
	return keys, trailers
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
