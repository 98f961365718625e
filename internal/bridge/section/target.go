package section

import (
	"bytes"
	"net/http"

	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/pack"
	"github.com/chert-http/chert/internal/view"
)

// This file judges the fields that say what a request is for (RFC 9113 section 8.3, RFC 9114
// section 4.3.1).

// Target is what the pseudo-fields and the fields that concern the request as a whole
// say, whose values are parts of the Fields.
type Target struct {
	Method, Scheme, Authority, Path, Host, Protocol, Priority pack.Span

	Length          int64 // -1 for none
	Crumbs          int   // Cookie fields
	Trailer, Expect bool  // announced; 100 (Continue)

	seen       uint8 // pseudo-fields, by their NameID
	hasHost    bool
	cookieSize int
}

// Parse judges f, and reports whether it is a request's.
func (t *Target) Parse(f *pack.Fields) bool {
	t.Length = -1
	regular := false
	for i := range f.List {
		h := &f.List[i]
		if h.ID != 0 && h.ID <= pack.IDStatus {
			// RFC 9113 section 8.3: before all others, and each once.
			if regular || t.seen&(1<<(h.ID-1)) != 0 || h.ID == pack.IDStatus {
				return false
			}
			t.seen |= 1 << (h.ID - 1)
			switch h.ID {
			case pack.IDMethod:
				t.Method = h.Value
			case pack.IDScheme:
				t.Scheme = h.Value
			case pack.IDAuthority:
				t.Authority = h.Value
			case pack.IDPath:
				t.Path = h.Value
			case pack.IDProtocol:
				t.Protocol = h.Value
			}
			continue
		}
		regular = true
		if !t.field(f, h) {
			return false
		}
	}
	return t.valid(f)
}

// field judges an ordinary field.
func (t *Target) field(f *pack.Fields, h *pack.Field) bool {
	v := f.Get(h.Value)
	switch h.ID {
	case pack.IDHost:
		if t.hasHost {
			return false
		}
		t.Host, t.hasHost = h.Value, true
	case pack.IDContentLength:
		n, ok := parseLength(v)
		if !ok || t.Length >= 0 {
			return false
		}
		t.Length = n
	case pack.IDCookie:
		t.Crumbs++
		t.cookieSize += len(v) + 2
	case pack.IDExpect:
		t.Expect = t.Expect || bytes.EqualFold(v, []byte("100-continue"))
	case 0:
		switch name := f.Get(h.Name); string(name) {
		case "te":
			// RFC 9113 section 8.2.2, RFC 9114 section 4.2. RFC 9110 section 10.1.4 permits any case and an empty list.
			return len(v) == 0 || pack.FoldEqual(v, "trailers")
		case "trailer":
			t.Trailer = true
		case "priority":
			t.Priority = h.Value
		}
	}
	return true
}

// NamesHost reports whether :authority or Host is there and neither is empty, which RFC 9114
// section 4.3.1 demands of the schemes http and https.
func (t *Target) NamesHost() bool {
	authority := t.seen&(1<<(pack.IDAuthority-1)) != 0
	return (authority || t.hasHost) && authority == (t.Authority.Len() > 0)
}

func parseLength(v []byte) (n int64, ok bool) {
	if len(v) == 0 || len(v) > 18 {
		return 0, false
	}
	for _, c := range v {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// valid is RFC 9113 section 8.3.1, and 8.5 for CONNECT.
func (t *Target) valid(f *pack.Fields) bool {
	method, path := f.Get(t.Method), f.Get(t.Path)
	host, authority := f.Get(t.Host), f.Get(t.Authority)
	if string(method) != http.MethodGet && !pack.ValidName(view.String(method)) {
		return false
	}
	has := func(id pack.NameID) bool { return t.seen&(1<<(id-1)) != 0 }
	// RFC 9113 section 8.3.1, RFC 9114 section 4.3.1: an authority without userinfo, as Host is over HTTP/1.
	if t.hasHost && (len(host) == 0 || !http1.ValidHost(host)) || !http1.ValidHost(authority) {
		return false
	}
	if t.hasHost && has(pack.IDAuthority) && !bytes.EqualFold(host, authority) {
		return false // others may go by either
	}
	connect := string(method) == http.MethodConnect
	if has(pack.IDProtocol) {
		// RFC 8441 section 4. What follows is no content.
		if !connect || t.Protocol.Len() == 0 || t.Length >= 0 {
			return false
		}
	} else if connect {
		return !has(pack.IDScheme) && !has(pack.IDPath) && len(authority) > 0
	}
	if s := string(f.Get(t.Scheme)); s != "http" && s != "https" || len(path) == 0 {
		return false
	}
	// "*" is for OPTIONS only. As over HTTP/1, other methods are the handler's to
	// refuse, as ServeMux does.
	if path[0] != '/' && string(path) != "*" {
		return false
	}
	for _, b := range path {
		if b == ' ' || b == '\t' || b == '#' {
			return false
		}
	}
	return true
}
