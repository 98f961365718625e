package forward

import (
	"strconv"

	"github.com/chert-http/chert/internal/http1"
)

// Response says how a response is forwarded to the client beside what the response
// itself says. The zero value is for a client of HTTP/1.0 whose connection stays.
type Response struct {
	Minor uint8 // of the client's HTTP/1.x
	Close bool  // the connection to the client closes after the response
	// Trailers: the client has sent TE: trailers. Otherwise no Trailer field announces any,
	// and those that come are not to be passed on.
	Trailers bool
	// NoUpgrade: the client's version of HTTP is one without Upgrade, 2 or 3.
	NoUpgrade bool

	Via string // this server's pseudonym, a token; empty: no Via is sent
	// Outer, if not nil, changes what a final response says of its server's paths, in Location,
	// Content-Location and the Path of cookies.
	Outer *Outer
	// Date is sent if the response has none.
	Date []byte
	// Add has further field lines, each with its CRLF, as http1.AppendField makes them.
	Add []byte
}

// AppendResponse appends the head of r for a client, whose spans are offsets into head.
// Reason and fields are the upstream's.
//
// framing is how the body must be sent. It differs from r.Framing where a body ends with
// the upstream's connection, which then is chunked, or where a client of HTTP/1.0 cannot
// read a chunked one, which then ends with the client's connection: with FramingClose the
// caller must close it. If the upstream's body is truncated, so must be the client's: no
// last chunk, and a reset instead of an orderly end with FramingClose.
//
// An interim response for a client of HTTP/1.0 is not written: out is dst. On error it
// is too, and err is an *http1.Error.
func AppendResponse(dst, head []byte, r *http1.Response, o *Response) (out []byte, framing http1.Framing, err error) {
	// RFC 9110 section 15.2: 1.0 has no 1xx, so a server must not send one.
	if r.Interim() && o.Minor == 0 {
		return dst, http1.FramingNone, nil
	}
	m := response{Response: o, head: head, r: r, framing: r.Framing}
	if _, ok := m.opts.read(head, r.Fields); !ok {
		return dst, http1.FramingNone, errManyOptionsBack
	}
	switch {
	case r.Framing == http1.FramingClose && o.Minor >= 1:
		m.framing = http1.FramingChunked
	case r.Framing == http1.FramingChunked && o.Minor == 0:
		m.framing = http1.FramingClose
	}
	dst = append(dst, "HTTP/1."...)
	dst = append(dst, '0'+min(o.Minor, 1), ' ')
	dst = strconv.AppendInt(dst, int64(r.Status), 10)
	dst = append(dst, ' ')
	dst = append(dst, r.Reason.Bytes(head)...)
	dst = append(dst, "\r\n"...)
	dst = m.received(dst)
	dst = m.connection(dst)
	if o.Via != "" {
		dst = append(dst, "Via: 1."...)
		dst = append(dst, '0'+r.Minor, ' ')
		dst = append(append(dst, o.Via...), "\r\n"...)
	}
	dst = append(dst, o.Add...)
	return append(dst, "\r\n"...), m.framing, nil
}

// CheckResponse returns the error of AppendResponse and Fields, an *http1.Error, for callers that can
// respond with something else only before they write anything.
func CheckResponse(head []byte, r *http1.Response) error {
	var o options
	if _, ok := o.read(head, r.Fields); !ok {
		return errManyOptionsBack
	}
	return nil
}

// response is a head that is being written.
type response struct {
	*Response
	head    []byte
	r       *http1.Response
	opts    options
	framing http1.Framing // of the body for the client
}

// offers reports whether an Upgrade field belongs to the response: it says what the
// connection is now, or what the upstream requires (RFC 9110 section 15.5.22).
func (m *response) offers() bool {
	// RFC 9113 section 8.2.2, RFC 9114 section 4.2: a client treats a response with it as malformed.
	return m.r.Upgrade && !m.NoUpgrade && (m.r.Framing == http1.FramingTunnel || m.r.Status == 426)
}

// Fields calls f for each field of r that is passed on, in order, with the value that is, for callers
// that have their own way to frame a response. framing is the one that the client gets.
// Content-Length is not among the fields, since it is made anew. err is an *http1.Error, before any
// call.
func (o *Response) Fields(
	head []byte, r *http1.Response, framing http1.Framing, f func(field *http1.Field, value []byte),
) error {
	m := response{Response: o, head: head, r: r, framing: framing}
	if _, ok := m.opts.read(head, r.Fields); !ok {
		return errManyOptionsBack
	}
	for i := range r.Fields {
		if m.passes(&r.Fields[i]) {
			f(&r.Fields[i], m.value(&r.Fields[i]))
		}
	}
	return nil
}

func (m *response) passes(f *http1.Field) bool {
	switch f.ID {
	case http1.FieldContentLength:
		return false
	case http1.FieldUpgrade:
		return m.offers()
	case http1.FieldTrailer:
		return m.Trailers && m.framing == http1.FramingChunked && m.r.Framing == http1.FramingChunked
	}
	name := f.Name.Bytes(m.head)
	return kindOf(name, f.ID) != hop && !m.opts.has(name)
}

// received writes the upstream's fields that are passed on.
func (m *response) received(dst []byte) []byte {
	date := false
	for i := range m.r.Fields {
		f := &m.r.Fields[i]
		if m.passes(f) {
			dst = append(append(dst, f.Name.Bytes(m.head)...), ": "...)
			dst = append(append(dst, m.value(f)...), "\r\n"...)
			date = date || f.ID == http1.FieldDate
		}
	}
	// RFC 9110 section 6.6.1: a recipient with a clock must append a Date to a response
	// without one that it forwards.
	if !date && len(m.Date) > 0 && !m.r.Interim() {
		dst = appendLine(dst, "Date", m.Date)
	}
	return dst
}

// connection writes the framing, and what is for the client's connection.
func (m *response) connection(dst []byte) []byte {
	switch {
	case m.framing == http1.FramingChunked:
		dst = append(dst, "Transfer-Encoding: chunked\r\n"...)
	case m.framing == http1.FramingTunnel || m.r.Status < 200 || m.r.Status == 204:
		// RFC 9110 section 8.6: no Content-Length with 1xx, 204 and 2xx to CONNECT.
	case m.r.ContentLength >= 0:
		// With HEAD and 304 it is that of a body which is not sent.
		dst = append(dst, "Content-Length: "...)
		dst = append(strconv.AppendInt(dst, m.r.ContentLength, 10), "\r\n"...)
	}
	upgrade := m.offers()
	switch closes := m.Close || m.framing == http1.FramingClose; {
	case m.r.Interim():
	case upgrade && (m.framing == http1.FramingTunnel || !closes):
		dst = append(dst, "Connection: Upgrade\r\n"...)
	case upgrade:
		dst = append(dst, "Connection: Upgrade, close\r\n"...)
	case m.framing == http1.FramingTunnel:
	case closes:
		dst = append(dst, "Connection: close\r\n"...)
	case m.Minor == 0:
		dst = append(dst, "Connection: keep-alive\r\n"...)
	}
	return dst
}
