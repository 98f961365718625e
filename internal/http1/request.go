package http1

import "bytes"

// Span is a half-open range of the buffer that was passed to Parse.
type Span struct{ Start, End uint32 }

// Bytes returns the range of b. It shares b's memory and cannot be appended to
// without a copy.
func (s Span) Bytes(b []byte) []byte { return b[s.Start:s.End:s.End] }

// Len returns the number of bytes in the range.
func (s Span) Len() int { return int(s.End - s.Start) }

// Field is one field line. Value excludes the whitespace around it.
type Field struct {
	Name, Value Span
	ID          FieldID
}

// Form is how a request target is written (RFC 9112 section 3.2).
type Form uint8

const (
	FormOrigin    Form = iota // /path?query
	FormAbsolute              // scheme://host/path
	FormAuthority             // host:port, CONNECT only
	FormAsterisk              // *
)

// Limits bound a head, and a trailer section. Zero or less means the value in
// DefaultLimits.
type Limits struct {
	HeadBytes int // from the first byte to the end of the empty line
	Fields    int
}

// DefaultLimits is used if no Limits are given.
var DefaultLimits = Limits{HeadBytes: 64 << 10, Fields: 128}

// maxHeadBytes keeps every offset within a Span, also where int has 32 bits.
const maxHeadBytes = 1 << 30

// Get returns the limits, or their defaults.
func (lim *Limits) Get() (headBytes, fields int) {
	if lim == nil {
		lim = &DefaultLimits
	}
	headBytes, fields = lim.HeadBytes, lim.Fields
	if headBytes <= 0 {
		headBytes = DefaultLimits.HeadBytes
	}
	if fields <= 0 {
		fields = DefaultLimits.Fields
	}
	return min(headBytes, maxHeadBytes), fields
}

// cut cuts b to the limit on bytes. Doing so first makes the result independent of
// how much arrived at once. full: no more bytes will be looked at.
func (lim *Limits) cut(b []byte) (within []byte, fields int, full bool) {
	headBytes, fields := lim.Get()
	if len(b) < headBytes {
		return b, fields, false
	}
	return b[:headBytes], fields, true
}

// Request is a parsed request head. It is meant to be reused: Parse overwrites
// all of it and keeps the array of Fields.
type Request struct {
	Method, Target Span
	Form           Form
	Minor          uint8   // of HTTP/1.x; 1 and above behave as 1.1
	Fields         []Field // in order of arrival; valid until the next Parse
	Host           Span    // value of the Host field, valid when HasHost
	HasHost        bool
	ContentLength  int64 // -1 when absent
	Chunked        bool
	KeepAlive      bool // from the version and Connection
	ExpectContinue bool // Expect has "100-continue" and the version is 1.1 or above
	ExpectOther    bool // Expect has something else: respond 417
	Upgrade        bool // Connection has "upgrade", Upgrade is present, and the version is 1.1 or above
	HasTrailer     bool // a Trailer field is present
	Preface        bool // HTTP/2's, as far as its empty line; "SM" follows
	rpc            bool // net/rpc's head, which has no fields; see rpcVersion
}

// Parse reads a request head from the start of b.
//
// n > 0: the head, including empty lines before it, is b[:n]; spans are offsets into
// b. n == 0 without an error: the head is not complete, call again with more bytes
// and the same Progress. err is nil or an *Error; r is meaningful only when n > 0.
//
// HTTP/2's preface (RFC 9113 section 3.4) looks like a head without fields and
// is returned as one, for handlers that take over the connection.
//
// p may be nil when b will not grow, lim may be nil for DefaultLimits.
func (r *Request) Parse(b []byte, p *Progress, lim *Limits) (n int, err error) {
	if p == nil {
		p = new(Progress)
	}
	b, fields, full := lim.cut(b)
	if !full && p.wait(b, fields, requestStart) {
		return 0, nil
	}
	n, e := r.parseHead(b, fields, p)
	if n == 0 && e == nil && full {
		e = tooLong(b)
	}
	return p.answer(n, e)
}

// parseHead parses b from its start. If b is not a complete head it returns 0,
// nil and records in p what it has seen.
func (r *Request) parseHead(b []byte, maxFields int, p *Progress) (int, *Error) {
	*r = Request{Fields: r.Fields[:0], ContentLength: -1}
	*p = Progress{scanned: uint32(len(b))}
	i, e := leadingCRLF(b)
	if e != nil || i >= len(b) {
		return 0, e
	}
	if i, e = r.requestLine(b, i); i == 0 {
		return 0, e
	}
	s := section{fields: r.Fields}
	if r.rpc {
		return i + 1, r.finish(b, &s)
	}
	n, e := s.parse(b, i, maxFields, p)
	r.Fields = s.fields
	if n > 0 {
		e = r.finish(b, &s)
	}
	return n, e
}

// maxLeading bounds the empty lines before a request line, in bytes.
const maxLeading = 4

// leadingCRLF returns where the request line begins, len(b) if that has not
// arrived yet.
func leadingCRLF(b []byte) (int, *Error) {
	i := 0
	// RFC 9112 section 2.2: at least one empty line before the request line
	// SHOULD be ignored. Old clients sent one after a POST body; net/http
	// accepts two there.
	for i < maxLeading && i < len(b) && b[i] == '\r' {
		if len(b) == i+1 {
			return len(b), nil
		}
		if b[i+1] != '\n' {
			return 0, errBareCR
		}
		i += 2
	}
	// Checked immediately, unlike the rest of the line: a client that begins
	// with something else does not use HTTP and may never send an LF.
	if i < len(b) && class[b[i]]&inToken == 0 {
		return 0, errFirstByte
	}
	return i, nil
}

// tooLong returns the error for the part that did not end within the limit.
func tooLong(b []byte) *Error {
	i, _ := leadingCRLF(b)
	// RFC 9110 section 15.5.15; RFC 6585 section 5.
	if bytes.IndexByte(b[i:], '\n') < 0 {
		return errTargetTooLong
	}
	return errHeadTooLong
}
