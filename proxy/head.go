package proxy

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/chert-http/chert/internal/forward"
	"github.com/chert-http/chert/internal/http1"
)

// clientHead is the head of a client's request in the form in which internal/forward takes
// one, whatever version of HTTP the client has used.
type clientHead struct {
	b []byte
	r http1.Request
}

func (h *clientHead) span(s string) http1.Span {
	start := len(h.b)
	h.b = append(h.b, s...)
	return http1.Span{Start: uint32(start), End: uint32(len(h.b))}
}

func (h *clientHead) field(name, value string) {
	n := h.span(name)
	h.r.Fields = append(h.r.Fields, http1.Field{Name: n, Value: h.span(value), ID: http1.LookupField(n.Bytes(h.b))})
}

// maxClientHead bounds what is made of a request. The server has bounded it before.
const maxClientHead = 1 << 20

// Refusals of requests beside those of internal/forward.
var (
	errHost     = &http1.Error{Status: 400, Reason: "malformed Host"}
	errField    = &http1.Error{Status: 400, Reason: "malformed field"}
	errTarget   = &http1.Error{Status: 400, Reason: "malformed target"}
	errProtocol = &http1.Error{Status: 501, Reason: "protocol that cannot be forwarded"}
	errTooLong  = &http1.Error{Status: 431, Reason: "header section too long"}
	errOutside  = &http1.Error{Status: 404, Reason: "the path does not begin with the prefix"}
	errEarly    = &http1.Error{Status: 425, Reason: "the TLS handshake has not ended"}
	errDots     = &http1.Error{Status: 400, Reason: "dot segments below a prefix"}
)

// read sets h to r. body: there may be one, of r.ContentLength if that is not negative.
func (h *clientHead) read(r *http.Request, body bool) *http1.Error {
	h.r = http1.Request{Minor: 1, ContentLength: -1}
	if r.ProtoMajor == 1 && r.ProtoMinor == 0 {
		h.r.Minor = 0
	}
	h.r.Method = h.span(r.Method)
	if !http1.ValidFieldName(r.Method) {
		return errTarget // a method is a token too
	}
	if !http1.ValidHost([]byte(r.Host)) {
		return errHost
	}
	h.r.Host, h.r.HasHost = h.span(r.Host), true
	target := targetAsSent(r)
	switch {
	case target == "*":
		h.r.Form = http1.FormAsterisk
	case target == "" || target[0] != '/':
		h.r.Form = http1.FormAbsolute
	}
	h.r.Target = h.span(target)
	if e := h.fields(r); e != nil {
		return e
	}
	h.options(r)
	switch {
	case body && r.ContentLength >= 0:
		h.r.ContentLength = r.ContentLength
	case body:
		h.r.Chunked = true
	}
	if h.r.Chunked && len(r.Trailer) > 0 {
		h.field("Trailer", strings.Join(sortedKeys(r.Trailer), ", "))
		h.r.HasTrailer = true
	}
	if len(h.b) > maxClientHead {
		return errTooLong
	}
	return nil
}

// fields adds those of r, by name: net/http keeps no order.
func (h *clientHead) fields(r *http.Request) *http1.Error {
	for _, name := range sortedKeys(r.Header) {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
			continue // r has them elsewhere
		}
		if name[0] == ':' { // :protocol of an extended CONNECT, as net/http has it
			continue
		}
		for _, value := range r.Header[name] {
			// What a server accepts is valid; middleware may have set something else.
			if !http1.ValidFieldName(name) || !http1.ValidFieldValue(value) {
				return errField
			}
			h.field(name, strings.Trim(value, " \t"))
		}
	}
	return nil
}

// options sets what http1.Request.Parse makes of Connection, Upgrade and Expect.
func (h *clientHead) options(r *http.Request) {
	if h.r.Minor < 1 || r.ProtoMajor != 1 {
		return // RFC 9110 sections 7.8 and 10.1.1; HTTP/2 has neither Connection nor Upgrade
	}
	for i := range h.r.Fields {
		f := &h.r.Fields[i]
		value := f.Value.Bytes(h.b)
		switch f.ID {
		case http1.FieldConnection:
			h.r.Upgrade = h.r.Upgrade || http1.HasToken(value, "upgrade") && len(r.Header["Upgrade"]) > 0
		case http1.FieldExpect:
			if http1.FoldEqual(value, "100-continue") {
				h.r.ExpectContinue = true
			} else {
				h.r.ExpectOther = true
			}
		}
	}
}

func sortedKeys(h http.Header) []string {
	keys := make([]string, 0, len(h))
	for name := range h {
		if name != "" {
			keys = append(keys, name)
		}
	}
	slices.Sort(keys)
	return keys
}

// targetAsSent returns the target with the client's own bytes, unless a handler before this
// one, such as http.StripPrefix, has changed the URL.
func targetAsSent(r *http.Request) string {
	sent := r.RequestURI
	if sent == "" {
		return r.URL.RequestURI()
	}
	path, query, _ := strings.Cut(sent, "?")
	if path == r.URL.Path && query == r.URL.RawQuery && (r.URL.RawPath == "" || r.URL.RawPath == path) {
		return sent
	}
	u, err := url.ParseRequestURI(sent)
	if err == nil && u.Path == r.URL.Path && u.RawPath == r.URL.RawPath && u.RawQuery == r.URL.RawQuery {
		return sent
	}
	if r.Method == http.MethodConnect && r.URL.Path == "" {
		return "/" // an extended CONNECT has a path; others are refused
	}
	return r.URL.RequestURI()
}

// strip returns target, or what follows prefix in its path. The prefix is compared with the path as
// servers decode it; what follows keeps its bytes.
func strip(target, prefix string) (string, *http1.Error) {
	if prefix == "" {
		return target, nil
	}
	if authority, rest := http1.SplitAbsolute([]byte(target)); authority != nil {
		target = string(rest)
	}
	path, query := target, ""
	if i := strings.IndexByte(target, '?'); i >= 0 {
		path, query = target[:i], target[i:]
	}
	i := 0
	for j := 0; j < len(prefix); j++ {
		c, n := decode(path[i:])
		if n == 0 || c != prefix[j] {
			return "", errOutside
		}
		i += n
	}
	rest := path[i:]
	switch {
	case rest == "":
		rest = "/"
	case rest[0] != '/':
		return "", errOutside
	}
	// The server would leave the prefix again, if it removes them after this.
	if hasDots(rest) {
		return "", errDots
	}
	return rest + query, nil
}

// decode returns the first byte of a path, percent-decoded, and how long it is; 0 at the end.
func decode(s string) (c byte, n int) {
	if len(s) >= 3 && s[0] == '%' {
		if hi, lo := unhex(s[1]), unhex(s[2]); hi < 16 && lo < 16 {
			return hi<<4 | lo, 3
		}
	}
	if s == "" {
		return 0, 0
	}
	return s[0], 1
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return (c | 0x20) - 'a' + 10
	}
	return 16
}

// hasDots reports whether a segment of path is "." or "..", encoded or not, and whatever
// separates segments on any system.
func hasDots(path string) bool {
	dots, other := 0, false
	for path != "" {
		c, n := decode(path)
		path = path[n:]
		switch c {
		case '/', '\\', ';':
			if dots > 0 && !other {
				return true
			}
			dots, other = 0, false
		case '.':
			dots++
		default:
			other = true
		}
		other = other || dots > 2
	}
	return dots > 0 && !other
}

// addressOf returns the IP address of a RemoteAddr, "" for that of a unix socket.
func addressOf(remote string) string {
	addr, _ := new(Options).peer(remote)
	return addr
}

// peer says who has sent a request from remote, and whether its X-Forwarded-* fields are believed.
func (o *Options) peer(remote string) (addr string, trusted bool) {
	a, err := netip.ParseAddrPort(remote)
	ip := a.Addr()
	if err != nil {
		if ip, err = netip.ParseAddr(remote); err != nil {
			return "", o.TrustLocal
		}
	}
	ip = ip.Unmap().WithZone("")
	return ip.String(), slices.ContainsFunc(o.trusted, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// passedBack reports whether a field of a response of HTTP/2 is passed on.
func passedBack(name string) bool { return !forward.IsHop([]byte(name)) }
