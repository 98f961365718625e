package http1

import (
	"bytes"
	"math"
)

// bit returns id's bit in a section's seen and twice, 0 for fields after FieldTrailer.
func bit(id FieldID) uint8 { return 1 << id }

func (s *section) has(id FieldID) bool { return s.seen&bit(id) != 0 }

// finish validates what depends on the whole head, and sets the results of its
// fields.
func (r *Request) finish(b []byte, s *section) *Error {
	if r.Preface {
		if len(r.Fields) > 0 {
			return errMajor
		}
		return nil
	}
	// RFC 9112 section 3.2: 400 for a 1.1 request without Host and for any
	// request with more than one, or with an invalid value. For CONNECT, whose
	// target is the authority, clients omit it and net/http accepts that.
	if s.twice&bit(FieldHost) != 0 {
		return errManyHosts
	}
	if !s.has(FieldHost) && r.Minor >= 1 && string(r.Method.Bytes(b)) != "CONNECT" {
		return errNoHost
	}
	if e := s.oneLength(); e != nil {
		return e
	}
	var te coding
	var options connection
	for i := range r.Fields {
		f := &r.Fields[i]
		if f.ID-1 >= FieldTrailer { // as most are; unknown ones wrap around
			continue
		}
		switch f.ID {
		case FieldHost:
			if v := f.Value.Bytes(b); !ValidHost(v) {
				return errHost
			}
			r.Host, r.HasHost = f.Value, true
		case FieldContentLength:
			if r.ContentLength = parseLength(f.Value.Bytes(b)); r.ContentLength < 0 {
				return errLength
			}
		case FieldTransferEncoding:
			te.add(f.Value.Bytes(b))
		case FieldConnection:
			options.add(f.Value.Bytes(b))
		case FieldExpect:
			r.expect(f.Value.Bytes(b))
		}
	}
	if s.has(FieldTransferEncoding) {
		if e := te.validate(r.Minor, s); e != nil {
			return e
		}
		r.Chunked = true
	}
	r.KeepAlive = options.persist(r.Minor)
	// RFC 9110 section 7.8: Upgrade in a 1.0 request must be ignored.
	r.Upgrade = options.upgrade && s.has(FieldUpgrade) && r.Minor >= 1
	r.HasTrailer = s.has(FieldTrailer)
	if r.HasTrailer && r.Chunked {
		return checkTrailerNames(b, r.Fields)
	}
	return nil
}

// oneLength refuses more than one Content-Length. RFC 9110 section 8.6 lets a
// recipient merge equal duplicates. Refusing them affects only broken peers.
func (s *section) oneLength() *Error {
	if s.twice&bit(FieldContentLength) != 0 {
		return errManyLengths
	}
	return nil
}

// parseLength reads 1*DIGIT (RFC 9110 section 8.6), -1 for anything else and
// for what does not fit int64. A list is not a length, nor is a signed number.
func parseLength(v []byte) int64 {
	if len(v) == 0 {
		return -1
	}
	var n int64
	for _, c := range v {
		if !isDigit(c) {
			return -1
		}
		d := int64(c - '0')
		if n > (math.MaxInt64-d)/10 {
			return -1
		}
		n = n*10 + d
	}
	return n
}

// coding gathers the transfer codings of all Transfer-Encoding fields, which
// make one list (RFC 9110 section 5.3).
type coding struct {
	chunked   bool // the last coding so far
	unknown   bool
	malformed *Error
}

func (t *coding) add(list []byte) {
	var elem []byte
	for len(list) > 0 {
		elem, list = NextElement(list)
		if len(elem) == 0 {
			continue
		}
		// RFC 9112 section 6.1: nothing may come after chunked, and chunked not
		// twice.
		if t.chunked {
			t.fail(errChunkedNotFinal)
		}
		name := elem[:tokenEnd(elem, 0)]
		parameters := trimOWS(elem[len(name):])
		switch {
		case len(name) == 0 || len(parameters) > 0 && parameters[0] != ';':
			t.fail(errCoding)
		case !FoldEqual(name, "chunked"):
			t.unknown = true
		case len(parameters) > 0:
			// RFC 9112 section 7.1: chunked has no parameters; their presence
			// ought to be treated as an error.
			t.fail(errChunkedParameter)
		default:
			t.chunked = true
		}
	}
}

func (t *coding) fail(e *Error) {
	if t.malformed == nil {
		t.malformed = e
	}
}

// validate refuses a head that has Transfer-Encoding unless its body is chunked
// and nothing else.
func (t *coding) validate(minor uint8, s *section) *Error {
	switch {
	case minor == 0:
		// RFC 9112 section 6.1: a 1.0 message with Transfer-Encoding must be
		// treated as if its framing were faulty.
		return errCodingVersion
	case s.has(FieldContentLength):
		// RFC 9112 section 6.3 item 3: ought to be handled as an error, because
		// it might be an attempt to smuggle a request or to split a response.
		return errLengthAndCoding
	case t.malformed != nil:
		return t.malformed
	case t.unknown:
		// RFC 9112 section 6.1: 501 for a coding the server does not understand.
		// A response may have one that was asked for by TE; here none is.
		return errUnknownCoding
	case !t.chunked:
		// A field without any coding. RFC 9112 section 6.3 item 4: chunked is
		// not final, so the length of a request cannot be determined. A response
		// would end with the connection, but to another reader it has no coding.
		return errChunkedNotFinal
	}
	return nil
}

// connection gathers the connection options that matter here.
type connection struct{ close, keepAlive, upgrade bool }

// persist reports whether the connection stays open after the message. RFC 9112
// section 9.3: close takes precedence; without it 1.1 persists and 1.0 only with
// keep-alive.
func (o *connection) persist(minor uint8) bool {
	return !o.close && (minor >= 1 || o.keepAlive)
}

func (o *connection) add(list []byte) {
	switch string(list) { // most are one of these
	case "keep-alive":
		o.keepAlive = true
		return
	case "close":
		o.close = true
		return
	}
	var elem []byte
	for len(list) > 0 {
		elem, list = NextElement(list)
		switch len(elem) {
		case len("close"):
			o.close = o.close || FoldEqual(elem, "close")
		case len("keep-alive"):
			o.keepAlive = o.keepAlive || FoldEqual(elem, "keep-alive")
		case len("upgrade"):
			o.upgrade = o.upgrade || FoldEqual(elem, "upgrade")
		}
		o.close = o.close || closeAmong(elem)
	}
}

// closeAmong looks for "close" in an element of several words, which is not a
// valid connection option (RFC 9110 section 7.6.1). Some servers, including
// net/http's, treat that as the option; since recipients may disagree whether
// another request follows, the connection closes.
func closeAmong(elem []byte) bool {
	if bytes.IndexByte(elem, ' ') < 0 && bytes.IndexByte(elem, '\t') < 0 {
		return false
	}
	for word := range bytes.FieldsSeq(elem) {
		if FoldEqual(word, "close") {
			return true
		}
	}
	return false
}

func (r *Request) expect(list []byte) {
	var elem []byte
	for len(list) > 0 {
		elem, list = NextElement(list)
		switch {
		case len(elem) == 0:
		case !FoldEqual(elem, "100-continue"):
			r.ExpectOther = true
		case r.Minor >= 1:
			// RFC 9110 section 10.1.1: in a 1.0 request it must be ignored.
			r.ExpectContinue = true
		}
	}
}
