package main

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/config"
	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/internal/refusal"
	"github.com/chert-http/chert/internal/rfc/percent"
)

// redirect redirects every request.
type redirect struct {
	to     config.Target
	status int
}

// ServeDirect implements direct.Handler.
func (d *redirect) ServeDirect(x *direct.Exchange) bool {
	d.answer(x)
	return true
}

// ServeHTTP implements http.Handler.
func (d *redirect) ServeHTTP(w http.ResponseWriter, r *http.Request) { direct.Respond(w, r, d.answer) }

func (d *redirect) answer(x *direct.Exchange) {
	to, refused := d.location(x)
	// A path that names a host. config has made sure that there is none, but paths of CONNECT are not cleaned, and
	// a wildcard in one may be empty.
	if refused == nil && config.NamesHost(to) {
		refused = refusal.NotFound
	}
	if refused != nil {
		x.Send(refused)
		return
	}
	x.SetStatus(d.status)
	x.SetHeader("Location", to)
}

// location fills in the placeholders, once: what a client has sent is not expanded.
func (d *redirect) location(x *direct.Exchange) (to string, refused *direct.Response) {
	var b []byte
	for _, p := range d.to {
		switch p.Name {
		case "":
			b = append(b, p.Text...)
		case "host":
			host := vhost.Name(x.Host())
			if !plainHost(host) { // a site for every host sees any name that clients send
				return "", misdirected
			}
			if strings.Contains(host, ":") {
				host = "[" + host + "]"
			}
			b = append(b, host...)
		case "uri":
			b = percent.Append(b, targetURI(x), inTarget)
		default:
			value := string(x.PathValue(p.Name))
			keep := inSegment
			switch {
			case p.Query:
				keep = inParameter
			case !plainSegments(value, p.Rest):
				return "", refusal.NotFound
			case p.Rest:
				keep = inPath
			}
			b = percent.Append(b, value, keep)
		}
	}
	return string(b), nil
}

// plainSegments reports whether the value of a wildcard can be a part of another path
// without changing what comes before it: clients remove "." and "..", and a segment that
// is empty could make the path one that names a host. Only encoded bytes lead to them.
func plainSegments(value string, rest bool) bool {
	if !rest {
		return value != "." && value != ".."
	}
	for value != "" {
		segment, after, _ := strings.Cut(value, "/")
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
		value = after
	}
	return true
}

// The bytes of a wildcard's value that are not encoded: in a segment of a path, in several,
// and in a query, where & and = would begin another parameter.
var (
	inSegment   = percent.Of("-._~!$'()*,:@")
	inPath      = percent.Of("-._~!$'()*,:@/")
	inParameter = percent.Of("-._~")
)

// plainHost reports whether a host is only a name or an address, with no byte that would end it in a URL.
func plainHost(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || 'z' < c) && (c < '0' || '9' < c) && strings.IndexByte("-._:", c) < 0 {
			return false
		}
	}
	return s != ""
}

// targetURI returns the path and query of a request; it begins with a slash.
func targetURI(x *direct.Exchange) string {
	if len(x.Wire().Target()) > 0 && x.Wire().Target()[0] == '/' {
		return string(x.Wire().Target())
	}
	// RFC 9112 section 3.2.2: the absolute form; and * of OPTIONS, which has no path.
	u := url.URL{Path: string(x.Path()), RawQuery: string(x.RawQuery())}
	if u.Path == "*" {
		u.Path = "/"
	}
	if uri := u.RequestURI(); strings.HasPrefix(uri, "/") {
		return uri
	}
	return "/"
}

// inTarget has the bytes that may be in a URL and would not end an attribute or a field; a percent sign is assumed to
// begin an escape.
var inTarget = percent.But("\"<>\\^`{|}")
