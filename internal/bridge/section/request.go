package section

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/tally"
)

// This file makes requests of decoded fields (RFC 9113 section 8.3, RFC 9114 section 4.3).

// IsHEAD reports whether a request, of which not all fields may be there, has the method HEAD.
func IsHEAD(f *pack.Fields) bool {
	for i := range f.List {
		if h := &f.List[i]; h.ID == pack.IDMethod {
			return string(f.Get(h.Value)) == http.MethodHead
		}
	}
	return false
}

// Fill makes the request of x, which is initialized, of fields whose target is t. All its strings
// are parts of one. values is room for values, memory of x. fields bounds the trailers that may be
// announced. It reports false if the target is not one.
func Fill(x *bridge.Exchange, f *pack.Fields, t *Target, values []string, fields int) bool {
	canonicalNames(f)
	str := string(f.Bytes)
	part := func(at pack.Span) string { return str[at.Start:at.End] }
	r := &x.Req
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
	if x.Proto == tally.HTTP3 {
		r.Proto, r.ProtoMajor = "HTTP/3.0", 3
	}
	r.Method = bridge.MethodOf(part(t.Method))
	x.IsHEAD = r.Method == http.MethodHead
	if r.Host = part(t.Authority); r.Host == "" {
		r.Host = part(t.Host)
	}
	r.URL = &x.URL
	if r.Method == http.MethodConnect && t.Protocol.Len() == 0 {
		r.RequestURI = r.Host
		x.URL.Host = r.Host
	} else {
		r.RequestURI = part(t.Path)
		if !bridge.PlainTarget(r.URL, r.RequestURI) {
			u, err := url.ParseRequestURI(r.RequestURI)
			if err != nil {
				return false
			}
			*r.URL = *u
		}
	}
	if part(t.Scheme) != "https" {
		r.TLS = nil
	}
	setHeader(r, f, str, t, values, fields)
	return true
}

// canonicalNames writes the names that are not in the static table as net/http has
// them.
func canonicalNames(f *pack.Fields) {
	for i := range f.List {
		if f.List[i].ID != 0 {
			continue
		}
		upper := true
		name := f.Get(f.List[i].Name)
		for j, c := range name {
			if upper && 'a' <= c && c <= 'z' {
				name[j] = c - ('a' - 'A')
			}
			upper = c == '-'
		}
	}
}

// setHeader sets the ordinary fields. values is room for as many of their values as it has.
func setHeader(r *http.Request, f *pack.Fields, str string, t *Target, values []string, fields int) {
	r.Header = make(http.Header, max(len(f.List)-4, 0))
	for i := range f.List {
		h := &f.List[i]
		key := h.ID.Canonical()
		switch h.ID {
		case 0:
			key = str[h.Name.Start:h.Name.End]
		case pack.IDHost, pack.IDAuthority, pack.IDMethod, pack.IDPath, pack.IDScheme:
			continue
		case pack.IDProtocol:
			key = ":protocol" // as net/http has it
		case pack.IDCookie:
			if t.Crumbs > 1 {
				continue
			}
		case pack.IDExpect:
			if t.Expect {
				continue
			}
		}
		value := str[h.Value.Start:h.Value.End]
		if have, ok := r.Header[key]; ok {
			r.Header[key] = append(have, value)
			continue
		}
		// The earlier fields keep the array that was too small.
		n := len(values)
		if n == cap(values) {
			values, n = make([]string, 0, len(f.List)-i), 0
		}
		values = append(values, value)
		r.Header[key] = values[n : n+1 : n+1]
	}
	if t.Crumbs > 1 {
		// RFC 9113 section 8.2.3: joined once.
		var b strings.Builder
		b.Grow(t.cookieSize)
		for i := range f.List {
			if h := &f.List[i]; h.ID == pack.IDCookie {
				if b.Len() > 0 {
					b.WriteString("; ")
				}
				b.WriteString(str[h.Value.Start:h.Value.End])
			}
		}
		r.Header["Cookie"] = []string{b.String()}
	}
	if t.Trailer {
		bridge.AnnounceTrailers(r, fields)
	}
}

// Trailer makes the trailers of a message, nil for none. ok is false if one must not be one.
func Trailer(f *pack.Fields) (trailer http.Header, ok bool) {
	canonicalNames(f)
	for i := range f.List {
		h := &f.List[i]
		name := h.ID.Canonical()
		if h.ID == 0 {
			name = string(f.Get(h.Name))
		}
		if !bridge.TrailerAllowed(name) { // pseudo-fields have no name
			return nil, false
		}
		if trailer == nil {
			trailer = make(http.Header)
		}
		trailer[name] = append(trailer[name], string(f.Get(h.Value)))
	}
	return trailer, true
}
