package bridge

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/chert-http/chert/direct/wire"
)

// MethodOf is m, without keeping what it is a part of if it is usual.
func MethodOf[T string | []byte](m T) string {
	switch string(m) {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodPost:
		return http.MethodPost
	case http.MethodHead:
		return http.MethodHead
	}
	return string(m)
}

// PlainTarget parses a target whose path needs no decoding, as nearly all do.
// Others are left to net/url.
func PlainTarget(u *url.URL, target string) bool {
	for i := 0; i < len(target); i++ {
		b := target[i]
		if b == '?' {
			u.Path, u.RawQuery = target[:i], target[i+1:]
			u.ForceQuery = u.RawQuery == ""
			return true
		}
		if !plainPath[b] {
			return false
		}
	}
	u.Path = target
	return true
}

// SplitTarget sets Path and RawQuery of a request for a direct handler. It reports
// false for a target that net/url does not accept, so that only the ordinary path refuses
// those.
func SplitTarget(r *wire.Request) bool {
	for i, b := range r.Target {
		if b == '?' {
			r.Path, r.RawQuery = r.Target[:i], r.Target[i+1:]
			return true
		}
		if !plainPath[b] {
			u, err := url.ParseRequestURI(string(r.Target))
			if err != nil {
				return false
			}
			r.Path, r.RawQuery = []byte(u.Path), []byte(u.RawQuery)
			return true
		}
	}
	r.Path = r.Target
	return true
}

// plainPath are the bytes that mean themselves in a path and that net/url
// would write the same way, so that RawPath stays empty.
var plainPath = func() (t [256]bool) {
	for _, b := range []byte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~$&+,/:;=@") {
		t[b] = true
	}
	return t
}()

// TrailerAllowed refuses fields that frame, route or authenticate a message;
// they must not follow its body (RFC 9110 section 6.5.1).
func TrailerAllowed(name string) bool {
	if strings.HasPrefix(name, "If-") {
		return false
	}
	switch name {
	case "", "Authorization", "Cache-Control", "Connection", "Content-Encoding", "Content-Length",
		"Content-Range", "Content-Type", "Expect", "Host", "Keep-Alive", "Max-Forwards", "Pragma",
		"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Range", "Realm", "Te",
		"Trailer", "Transfer-Encoding", "Www-Authenticate":
		return false
	}
	return true
}
