package forward

import (
	"bytes"

	"github.com/chert-http/chert/internal/http1"
)

// kind is what happens to a received field.
type kind uint8

const (
	endToEnd  kind = iota // passed on, unless Connection lists it
	hop                   // removed: for one connection, or made anew
	routing               // made anew, or the request means something else without it; Connection must not list it
	forwarded             // as routing; only a trusted peer may send it
)

// kindOf returns the kind of a request's or response's field.
func kindOf(name []byte, id http1.FieldID) kind {
	switch id {
	case http1.FieldUnknown:
		return kindOfName(name)
	case http1.FieldConnection, http1.FieldKeepAlive, http1.FieldProxyConnection, http1.FieldProxyAuthenticate,
		http1.FieldProxyAuthorization, http1.FieldTE, http1.FieldTrailer, http1.FieldTransferEncoding,
		http1.FieldUpgrade, http1.FieldExpect:
		return hop
	case http1.FieldHost, http1.FieldContentLength, http1.FieldAuthorization, http1.FieldCookie, http1.FieldVia,
		http1.FieldMaxForwards:
		return routing
	case http1.FieldForwarded, http1.FieldXForwardedFor, http1.FieldXForwardedHost, http1.FieldXForwardedProto,
		http1.FieldXRealIP:
		return forwarded
	}
	return endToEnd
}

// IsHop reports whether a field is for one connection only, or is made anew for each: what
// a gateway removes without being told by Connection.
func IsHop(name []byte) bool { return kindOf(name, http1.LookupField(name)) == hop }

// IsTrailer reports whether a field may be passed on in a trailer section: see AppendTrailer.
func IsTrailer(name []byte) bool {
	id := http1.LookupField(name)
	return kindOf(name, id) == endToEnd && !imitates(name) && id != http1.FieldSetCookie
}

func kindOfName(name []byte) kind {
	// RFC 8470 section 5.1: Connection must not list it, and an intermediary must not remove it.
	if http1.FoldEqual(name, earlyData) {
		return routing
	}
	// RFC 9113 section 3.2.1: HTTP2-Settings is for the connection that is upgraded.
	if http1.FoldEqual(name, "HTTP2-Settings") {
		return hop
	}
	const prefix = "X-Forwarded-"
	if len(name) >= len(prefix) && http1.FoldEqual(name[:len(prefix)], prefix) {
		return forwarded
	}
	return endToEnd
}

const earlyData = "Early-Data"

// imitates reports whether name becomes that of a field which a gateway decides once
// '_' is read as '-'. CGI, and what is modelled on it (WSGI, PHP, Rack), does not tell
// the two apart, so an upstream would believe X_Forwarded_For of any client.
func imitates(name []byte) bool {
	if bytes.IndexByte(name, '_') < 0 {
		return false
	}
	var buf [48]byte // longer than any of these names; a prefix suffices for X-Forwarded-
	dashed := buf[:copy(buf[:], name)]
	for i, c := range dashed {
		if c == '_' {
			dashed[i] = '-'
		}
	}
	return kindOf(dashed, http1.LookupField(dashed)) != endToEnd
}

const (
	// maxOptions is how many names of fields Connection may list beyond those that are
	// removed anyway. Each costs a comparison with each field.
	maxOptions = 16
	// maxElements bounds its elements of all kinds, empty ones too.
	maxElements = 64
)

// options are the names in Connection that are not removed anyway.
type options struct {
	names [maxOptions][]byte
	n     int
}

// read gathers the options of all Connection fields. It returns false if there are too
// many, and the kinds of the fields that are listed.
func (o *options) read(head []byte, fields []http1.Field) (listed kind, ok bool) {
	elements := 0
	for i := range fields {
		if fields[i].ID != http1.FieldConnection {
			continue
		}
		var elem []byte
		list := fields[i].Value.Bytes(head)
		for len(list) > 0 {
			if elements++; elements > maxElements {
				return listed, false
			}
			if elem, list = http1.NextElement(list); len(elem) == 0 || http1.FoldEqual(elem, "close") {
				continue
			}
			k := kindOf(elem, http1.LookupField(elem))
			if listed = max(listed, k); k == hop || o.has(elem) {
				continue
			}
			if o.n == len(o.names) {
				return listed, false
			}
			o.names[o.n] = elem
			o.n++
		}
	}
	return listed, true
}

func (o *options) has(name []byte) bool {
	for _, listed := range o.names[:o.n] {
		if http1.FoldEqual(listed, name) {
			return true
		}
	}
	return false
}

func appendField(dst, head []byte, f *http1.Field) []byte {
	dst = append(dst, f.Name.Bytes(head)...)
	dst = append(dst, ": "...)
	dst = append(dst, f.Value.Bytes(head)...)
	return append(dst, "\r\n"...)
}

func appendLine(dst []byte, name string, value []byte) []byte {
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

// AppendTrailer appends the trailer section after a last chunk: the fields of b that
// http1.ParseTrailer returned, and the empty line. Fields that decide about a message
// before its body is read are removed, because some recipients merge trailers into the
// header (RFC 9110 section 6.5.1).
func AppendTrailer(dst, b []byte, fields []http1.Field) []byte {
	for i := range fields {
		f := &fields[i]
		name := f.Name.Bytes(b)
		if IsTrailer(name) {
			dst = appendField(dst, b, f)
		}
	}
	return append(dst, "\r\n"...)
}
