package bridge

import (
	"net/http"
	"net/textproto"
	"strings"
)

// AnnounceTrailers replaces the Trailer field of r by keys of r.Trailer, as net/http does, but
// not for more names than there may be fields: a few bytes on the wire can stand for many, and
// each becomes an entry. Framing must not be in trailers (RFC 9110 section 6.5.1).
func AnnounceTrailers(r *http.Request, most int) {
	defer delete(r.Header, "Trailer")
	for _, v := range r.Header["Trailer"] {
		for name := range strings.SplitSeq(v, ",") {
			if most--; most < 0 {
				return
			}
			name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name))
			switch name {
			case "", "Transfer-Encoding", "Trailer", "Content-Length":
				continue
			}
			if r.Trailer == nil {
				r.Trailer = make(http.Header)
			}
			r.Trailer[name] = nil
		}
	}
}
