package proxy

import (
	"crypto/rand"
	"encoding/hex"
	mathrand "math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/chert-http/chert/internal/balance"
	"github.com/chert-http/chert/internal/peer"
)

// of returns the key of a request. One that lacks the field or cookie gets any server.
func (k *Key) of(r *http.Request) uint64 {
	switch k.by {
	case byAddress:
		if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
			return keyOfClient(a.Addr())
		}
		return balance.KeyOf(r.RemoteAddr)
	case byURI:
		return balance.KeyOf(targetAsSent(r))
	case byPath:
		path, _, _ := strings.Cut(targetAsSent(r), "?")
		return balance.KeyOf(path)
	case byHeader:
		if strings.EqualFold(k.name, "Host") {
			return balance.KeyOf(strings.ToLower(r.Host))
		}
		if v := r.Header.Values(k.name); len(v) > 0 {
			return balance.KeyOf(v[0])
		}
	case byCookie:
		if c, err := r.Cookie(k.name); err == nil {
			return balance.KeyOf(c.Value)
		}
	case byQuery:
		if v, ok := parameter(r.URL.RawQuery, k.name); ok {
			return balance.KeyOf(v)
		}
	}
	return mathrand.Uint64()
}

// keyOfClient returns the key of an address. Package ratelimit counts what a client has together: one
// server gets all of it, so that limits are exact without a store.
func keyOfClient(a netip.Addr) uint64 {
	b := peer.Network(a).As16()
	return balance.KeyOfBytes(b[:])
}

// parameter returns the first parameter of a query. url.ParseQuery would parse all of it.
func parameter(query, name string) (string, bool) {
	for part := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(part, "=")
		if key != name {
			if u, err := url.QueryUnescape(key); err != nil || u != name {
				continue
			}
		}
		return value, true
	}
	return "", false
}

// sessionBytes are those of the cookie of PolicySticky before they are written in hex.
const sessionBytes = 12

// newSession returns the value of a cookie. It is no secret: it decides which server a client
// gets, and a client may choose that.
func newSession() string {
	var b [sessionBytes]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func validSession(s string) bool {
	if len(s) != 2*sessionBytes {
		return false
	}
	for i := range len(s) {
		if unhex(s[i]) > 15 {
			return false
		}
	}
	return true
}

// sessionCookie returns the Set-Cookie of PolicySticky.
func sessionCookie(name, value string, secure bool) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, Secure: secure,
		SameSite: http.SameSiteLaxMode}
}
