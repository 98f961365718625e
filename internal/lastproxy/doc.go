// Package lastproxy finds the address of the proxy that has sent a request, once
// middleware.RealIP has replaced it with that of the client.
package lastproxy

// middleware sets it; package proxy reads it, which adds the peer to X-Forwarded-For and
// believes what it has sent. It must not import anything of the module.

// Key is the key of the address, a string in the form of Request.RemoteAddr, among the
// values of a request. Only trusted proxies have one.
type Key struct{}

// Of returns the address; false if RealIP has replaced none. v is the context of a request,
// or an exchange.
func Of(v interface{ Value(key any) any }) (addr string, ok bool) {
	addr, ok = v.Value(Key{}).(string)
	return addr, ok
}
