package h1

import (
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/sys"
)

// This file writes a response's head.

// head describes the status line and the handler's fields that WriteHeader has
// put in the wire buffer. Encoding them immediately is the snapshot that
// WriteHeader promises, without a copy of the map. The fields that the server
// may still remove are noted with their positions.
type head struct {
	connection, encoding, length, contentType noted
	hasDate, coded, trailers                  bool
	upgrading, upgrade                        bool // Connection has "upgrade"; Upgrade is there
}

// noted is a field that Complete inspects and may remove.
type noted struct {
	value      string // the first one
	start, end int    // of its lines in out; empty when the handler did not set it
	cut        bool
}

// absent reports whether the handler has left the field to the server.
func (f *noted) absent() bool { return f.end == f.start && !f.cut }

// extra are the fields that the server adds, in the order in which they are
// written after the handler's own.
type extra struct {
	altSvc      []byte
	date        int64 // of sys.Nanotime; 0 for none
	length      int64 // -1 for none
	contentType string
	connection  string
	encoding    string
}

func (x *exchange) Head(status int, h http.Header) {
	w := x.writing
	w.out = http1.AppendStatusLine(w.out, min(x.minor, 1), status)
	var few [16]string
	keys, trailers := sortedKeys(few[:0], h, nil)
	w.head.trailers = trailers
	for _, k := range keys {
		start := len(w.out)
		for _, v := range h[k] {
			w.out = http1.AppendField(w.out, k, v)
		}
		if !x.note(k, h[k], start) {
			w.out = w.out[:start]
			h.Del(k)
		}
	}
}

// note records what Complete must know of the field k, whose lines begin at
// start. It reports false for an invalid Content-Length.
func (x *exchange) note(k string, vv []string, start int) bool {
	w := x.writing
	h := &w.head
	var f *noted
	switch k {
	case "Connection":
		f = &h.connection
		for _, v := range vv {
			h.upgrading = h.upgrading || http1.HasToken([]byte(v), "upgrade")
		}
	case "Upgrade":
		h.upgrade = len(vv) > 0 && vv[0] != ""
		return true
	case "Transfer-Encoding":
		f = &h.encoding
	case "Content-Length":
		f = &h.length
		if len(vv) > 0 && vv[0] != "" {
			n, err := strconv.ParseInt(vv[0], 10, 64)
			if err != nil || n < 0 {
				x.s.Logf("http: invalid Content-Length of %q", vv[0])
				return false
			}
			w.Length = n
		}
	case "Content-Type":
		f = &h.contentType
	case "Date":
		h.hasDate = true
		return true
	case "Content-Encoding":
		h.coded = len(vv) > 0 && vv[0] != ""
		return true
	case "Trailer":
		w.declareTrailers(vv)
		return true
	default:
		return true
	}
	f.start, f.end = start, len(w.out)
	if len(vv) > 0 {
		f.value = vv[0]
	} else {
		// A key without values suppresses the field: no length, no sniffing, as
		// with net/http.
		f.cut = f != &h.encoding
	}
	return true
}

// declareTrailers records the trailers that the head announces.
func (w *writing) declareTrailers(vv []string) {
	w.head.trailers = w.head.trailers || len(vv) > 0
	for _, v := range vv {
		for name := range strings.SplitSeq(v, ",") {
			if name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)); bridge.TrailerAllowed(name) {
				w.Trailers = append(w.Trailers, name)
			}
		}
	}
}

// takeBack removes the cut fields' lines from the buffer: from the last to the first, as Head has
// sorted them by name, so that the positions of the others stay valid.
func (w *writing) takeBack() {
	h := &w.head
	for _, f := range [...]*noted{&h.encoding, &h.contentType, &h.length, &h.connection} {
		if f.cut {
			w.out = slices.Delete(w.out, f.start, f.end)
		}
	}
}

// Complete implements bridge.Message: it decides the framing, and completes the
// head in the wire buffer.
func (x *exchange) Complete(p []byte) error {
	w := x.writing
	h := &w.head
	add := extra{length: -1, altSvc: x.s.AltSvc.Line()}
	switch {
	case h.hasDate:
	case !x.Time.Queued && x.s.Link.OnLoop():
		add.date = x.Time.HeadAt() // the loop's time: the handler still has the lease
	default:
		add.date = sys.Nanotime()
	}
	keepAlives := x.s.KeepAlives()
	// A handler that has returned without a length and without trailers has
	// written all of its body: p. Not for HEAD without bytes, where the length
	// of GET's body is unknown, nor where no length is allowed (RFC 9110
	// section 8.6).
	if x.Res.Done && !h.trailers && h.encoding.value == "" && bridge.BodyAllowed(w.Status) &&
		h.length.absent() && (!x.IsHEAD || len(p) > 0) {
		w.Length = int64(len(p))
		add.length = w.Length
	}
	x.decideKeepAlive(&add, keepAlives)
	x.drainBody(&add)
	x.decideType(&add, p)
	x.decideFraming(&add)
	switching := w.Status == http.StatusSwitchingProtocols && h.upgrading && h.upgrade
	if x.Res.CloseAfter.Load() && (!keepAlives || !http1.HasToken([]byte(h.connection.value), "close")) && !switching {
		h.connection.cut = true
		if x.minor >= 1 {
			add.connection = "close"
		}
	}
	w.takeBack()
	w.out = append(add.append(w.out), "\r\n"...)
	if len(w.out) > wireSize {
		return x.Flush()
	}
	return nil
}

func (x *exchange) decideKeepAlive(add *extra, keepAlives bool) {
	w := x.writing
	switch {
	case x.minor > 0 || x.Res.CloseAfter.Load():
	case !x.IsHEAD && w.Length == -1 && bridge.BodyAllowed(w.Status):
		x.Res.CloseAfter.Store(true) // the end of the connection ends the body
	case w.head.connection.absent():
		add.connection = "keep-alive"
	}
	if w.head.connection.value == "close" || !keepAlives || x.Awaited() {
		// If the body is awaited, the client may or may not send it now; the next
		// bytes could be either that or a request.
		x.Res.CloseAfter.Store(true)
	}
}

func (x *exchange) drainBody(add *extra) {
	last := x.Res.CloseAfter.Load()
	if x.body == nil || x.Res.FullDuplex.Load() || last && (!x.Res.Done || x.Awaited() || x.s.lingers()) {
		return
	}
	keep, tooBig := x.body.DrainBeforeHead(x.aside)
	switch {
	case last || keep:
		return
	case tooBig:
		x.writing.head.connection.cut = true
		add.connection = "close"
	}
	x.Res.CloseAfter.Store(true)
}

// lingers reports whether the connection can be closed in one direction, after which what the client
// still sends is read (RFC 9112 section 9.6). One that cannot, such as one of net.Pipe, is closed at
// once: a client that has not sent its body by then would fail before it has read the answer.
func (s *Session) lingers() bool {
	if s.is(onLoops) {
		return true
	}
	_, ok := s.Link.NetConn().(interface{ CloseWrite() error })
	return ok
}

func (x *exchange) decideType(add *extra, p []byte) {
	h := &x.writing.head
	switch {
	case !bridge.BodyAllowed(x.writing.Status):
		// RFC 9110 section 8.6: no Content-Length with 1xx and 204. Section 15.4.5: metadata beyond
		// what a cache needs to select is omitted from a 304.
		h.length.cut = true
		h.contentType.cut = h.contentType.cut || x.writing.Status == http.StatusNotModified
	case !h.coded && h.contentType.absent() && h.encoding.value == "" && len(p) > 0:
		add.contentType = bridge.ContentType(p)
	}
}

// decideFraming is RFC 9112 section 6.3 from the server's side.
func (x *exchange) decideFraming(add *extra) {
	w := x.writing
	h := &w.head
	te := h.encoding.value
	hasLength := w.Length != -1
	if hasLength && te != "" && te != "identity" {
		x.s.Logf("http: WriteHeader called with both Transfer-Encoding of %q and a Content-Length of %d", te, w.Length)
		h.length.cut = true
		hasLength = false
	}
	switch {
	case x.IsHEAD || !bridge.BodyAllowed(w.Status) || hasLength:
		h.encoding.cut = true
	case x.minor == 0 || te == "identity":
		// No chunks in HTTP/1.0, nor with identity: the end of the connection
		// ends the body.
		x.Res.CloseAfter.Store(true)
		h.encoding.cut = true
	default:
		w.Chunked = true
		add.encoding = "chunked"
		if te == "chunked" {
			h.encoding.cut = true
		}
		h.length.cut = true
	}
}

func (e *extra) append(b []byte) []byte {
	if e.date != 0 {
		b = bridge.AppendDate(b, e.date)
	}
	b = append(b, e.altSvc...)
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
	slices.Sort(keys)
	return keys, trailers
}
