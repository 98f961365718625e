package http1

import "math"

// MaxInterims is how many interim responses may precede a final one.
const MaxInterims = 16

// Expected is what the meaning of a response depends on beside its own bytes: the
// request, and the responses to it that came before. A client makes one for each
// request and passes it to each Parse until the final response.
type Expected struct {
	Head    bool // the method is HEAD
	Connect bool // the method is CONNECT
	// Upgrade is the value of the Upgrade field that was sent, nil if none was. It
	// must not change before the final response.
	Upgrade []byte

	interims uint8
}

// Framing is how the body of a response ends (RFC 9112 section 6.3).
type Framing uint8

const (
	FramingNone    Framing = iota // no body
	FramingLength                 // after ContentLength bytes, which may be 0
	FramingChunked                // after the trailer section
	FramingClose                  // with the connection
	FramingTunnel                 // HTTP has ended: 101, or 2xx to CONNECT
)

// Response is a parsed response head. It is meant to be reused: Parse overwrites
// all of it and keeps the array of Fields.
type Response struct {
	Status        int     // 100 to 599
	Reason        Span    // may be empty
	Minor         uint8   // of HTTP/1.x: 0 or 1
	Fields        []Field // in order of arrival; valid until the next Parse
	ContentLength int64   // as the field has it, -1 when absent; only with FramingLength that of a body
	Chunked       bool    // as the field has it; only with FramingChunked there is a body
	Framing       Framing
	KeepAlive     bool // another request may follow on this connection, once the body has ended
	Upgrade       bool // Connection has "upgrade", Upgrade is present, and the version is 1.1
	HasTrailer    bool // a Trailer field is present
	// IdleSeconds is the timeout of a Keep-Alive field, after which the server closes an
	// idle connection; -1 if there is none. The smallest, if there are several.
	IdleSeconds int32
}

// Interim reports whether a further response to the same request follows. 101 is
// final: after it there is no HTTP.
func (r *Response) Interim() bool { return r.Status < 200 && r.Status != 101 }

// Parse reads a response head from the start of b. Results are those of
// Request.Parse. want must not be nil; the zero Expected is that of a GET.
//
// After an interim response another head begins at b[n:]. After a final one its body
// does: see Body.
func (r *Response) Parse(b []byte, want *Expected, p *Progress, lim *Limits) (n int, err error) {
	if p == nil {
		p = new(Progress)
	}
	b, fields, full := lim.cut(b)
	if !full && p.wait(b, fields, statusStart) {
		return 0, nil
	}
	n, e := r.parseHead(b, want, fields, p)
	if n == 0 && e == nil && full {
		e = errHeadTooLong
		if r.Status == 0 {
			e = errStatusTooLong
		}
	}
	if e != nil {
		e = e.inResponse()
	}
	return p.answer(n, e)
}

// parseHead is Request.parseHead for responses.
func (r *Response) parseHead(b []byte, want *Expected, maxFields int, p *Progress) (int, *Error) {
	*r = Response{Fields: r.Fields[:0], ContentLength: -1, IdleSeconds: -1}
	*p = Progress{scanned: uint32(len(b))}
	// Checked immediately: a server that begins with something else, as one that
	// expects TLS or speaks first does, may never send an LF. RFC 9112 section 2.2
	// lets servers skip empty lines, not clients.
	if len(b) > 0 && b[0] != 'H' {
		return 0, errNotResponse
	}
	i, e := r.statusLine(b, 0)
	if i == 0 {
		return 0, e
	}
	s := section{fields: r.Fields}
	n, e := s.parse(b, i, maxFields, p)
	r.Fields = s.fields
	if n > 0 {
		e = r.finish(b, &s, want)
	}
	return n, e
}

// statusLine parses HTTP-version SP status-code SP [ reason-phrase ] CRLF at b[i:]
// and returns the offset after it; 0 means need more, or refused if there is an
// error.
func (r *Response) statusLine(b []byte, i int) (next int, e *Error) {
	const version, code = len("HTTP/1.1"), len("HTTP/1.1 200")
	line := b[i:]
	// RFC 9112 section 2.3: HTTP-name is case-sensitive, one digit each.
	if len(line) < version || string(line[:5]) != "HTTP/" || !isDigit(line[5]) || line[6] != '.' || !isDigit(line[7]) {
		return 0, refuse(b, i, errVersion)
	}
	// RFC 9110 section 2.5 lets a recipient take a higher minor version for the one
	// it knows. There is none, so its sender is not what it seems.
	if line[5] != '1' || line[7] > '1' {
		return 0, refuse(b, i, errMajor)
	}
	// RFC 9112 section 4: a single SP between the parts, status-code is 3DIGIT.
	if len(line) <= code || line[8] != ' ' || !isDigit(line[9]) || !isDigit(line[10]) || !isDigit(line[11]) {
		return 0, refuse(b, i, errStatusLine)
	}
	// RFC 9110 section 15: values outside the range 100..599 are invalid.
	status := int(line[9]-'0')*100 + int(line[10]-'0')*10 + int(line[11]-'0')
	if status < 100 || status > 599 {
		return 0, refuse(b, i, errStatus)
	}
	i += code
	switch b[i] {
	case ' ':
		i++
	case '\r', '\n':
		// RFC 9112 section 4: a server must send the SP although it sends no reason.
		// Several do not, and the line has no second reading.
	default:
		return 0, refuse(b, i, errStatusLine)
	}
	start := i
	if i, e = textEnd(b, i); i == 0 {
		if e == errFieldValue {
			e = errReason
		}
		return 0, e
	}
	r.Status, r.Minor, r.Reason = status, line[7]-'0', Span{uint32(start), uint32(i)}
	return i + 2, nil
}

// finish validates what depends on the whole head and on the request, and sets the
// results of the fields.
func (r *Response) finish(b []byte, s *section, want *Expected) *Error {
	if e := s.oneLength(); e != nil {
		return e
	}
	var te coding
	var options connection
	for i := range r.Fields {
		f := &r.Fields[i]
		switch f.ID {
		case FieldContentLength:
			// RFC 9112 section 6.3 item 5: a proxy must discard a response whose
			// Content-Length is invalid, and respond with 502.
			if r.ContentLength = parseLength(f.Value.Bytes(b)); r.ContentLength < 0 {
				return errLength
			}
		case FieldTransferEncoding:
			te.add(f.Value.Bytes(b))
		case FieldConnection:
			options.add(f.Value.Bytes(b))
		case FieldKeepAlive:
			r.idle(f.Value.Bytes(b))
		}
	}
	if s.has(FieldTransferEncoding) {
		if e := te.validate(r.Minor, s); e != nil {
			return e
		}
		r.Chunked = true
	}
	r.KeepAlive = options.persist(r.Minor)
	r.Upgrade = options.upgrade && s.has(FieldUpgrade) && r.Minor >= 1
	if r.HasTrailer = s.has(FieldTrailer); r.HasTrailer && r.Chunked {
		if e := checkTrailerNames(b, r.Fields); e != nil {
			return e
		}
	}
	return r.frame(b, want)
}

// frame sets Framing by RFC 9112 section 6.3, whose items it follows, and counts
// interim responses.
func (r *Response) frame(b []byte, want *Expected) *Error {
	framed := r.Chunked || r.ContentLength > 0 // by what a status without a body must not have
	switch {
	case r.Status < 200:
		// RFC 9110 section 8.6 and RFC 9112 section 6.1: a server must not send
		// either field with 1xx. Item 1 ignores them; but if a body does follow, it
		// would be taken for the next response, and its author chooses that.
		if framed {
			return errInterimBody
		}
		if r.Status == 101 {
			return r.tunnel(b, want)
		}
		if want.interims++; want.interims > MaxInterims {
			return errManyInterims
		}
		r.Framing = FramingNone
	case want.Connect && r.Status < 300:
		r.Framing = FramingTunnel // item 2: the fields must be ignored
	case r.Status == 204:
		// Item 1: no body, whatever the fields are. The same two sections forbid them,
		// so the server may send what it announces: the connection ends with it.
		r.Framing = FramingNone
		r.KeepAlive = r.KeepAlive && !framed
	case want.Head || r.Status == 304:
		r.Framing = FramingNone // item 1
	case r.Chunked:
		r.Framing = FramingChunked // item 4
	case r.ContentLength >= 0:
		r.Framing = FramingLength // item 6
	default:
		r.Framing = FramingClose // item 8
	}
	r.KeepAlive = r.KeepAlive && r.Framing < FramingClose
	return nil
}

// maxLayers is how many protocols a server may switch to at once. RFC 9110 section 7.8
// permits layers; few have seen two.
const maxLayers = 8

// tunnel validates a 101.
func (r *Response) tunnel(b []byte, want *Expected) *Error {
	// RFC 9110 section 15.2.2: 101 must have an Upgrade field that says which
	// protocol follows. Section 7.8: Upgrade needs the connection option.
	if !r.Upgrade {
		return errSwitchMalformed
	}
	chosen := 0
	for i := range r.Fields {
		if r.Fields[i].ID != FieldUpgrade {
			continue
		}
		var elem []byte
		list := r.Fields[i].Value.Bytes(b)
		for len(list) > 0 {
			if elem, list = NextElement(list); len(elem) == 0 {
				continue
			}
			// RFC 9110 section 7.8: a server must not switch to a protocol that was
			// not indicated by the client.
			if !HasToken(want.Upgrade, elem) {
				return errSwitchUnasked
			}
			if chosen++; chosen > maxLayers {
				return errSwitchMalformed
			}
		}
	}
	if chosen == 0 {
		return errSwitchMalformed
	}
	r.Framing, r.KeepAlive = FramingTunnel, false
	return nil
}

// idle reads a Keep-Alive field: parameters in a list, of which timeout is known to
// be sent and obeyed (RFC 2068 section 19.7.1.1). A malformed one says nothing.
func (r *Response) idle(list []byte) {
	const name = "timeout="
	var elem []byte
	for len(list) > 0 {
		elem, list = NextElement(list)
		if len(elem) <= len(name) || !FoldEqual(elem[:len(name)], name) {
			continue
		}
		n := parseLength(elem[len(name):])
		if n >= 0 && (r.IdleSeconds < 0 || n < int64(r.IdleSeconds)) {
			r.IdleSeconds = int32(min(n, math.MaxInt32))
		}
	}
}
