package main

import (
	"net"
	"net/http"
	"strings"

	"github.com/chert-http/chert/cmd/chert/internal/vhost"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/rfc/percent"
)

// guard admits requests to sites whose clients need a certificate only on
// connections whose client has shown one for that site. Where it is optional, the
// connection must be one for that site too: its client was asked for a certificate.
//
// The name of the handshake (SNI) selects which certificate the client must show,
// and the field Host selects the site of each request; a client can send different
// names. RFC 9110 section 7.4 and RFC 6066 section 11.1 leave that to the server:
// here the request is answered 421, and a client may repeat it on a connection of
// its own. Where a listener speaks plain HTTP beside TLS, such a site is never reached.
//
// It has no fast path, which does not know the connection's TLS.
type guard struct {
	tls  *tlsSites
	next http.Handler
}

// ServeHTTP implements http.Handler.
func (g guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.admits(r) {
		elsewhere.ServeHTTP(w, r)
		return
	}
	g.next.ServeHTTP(w, r)
}

// elsewhere is also the response for hosts without a site, of which a client that
// has shown no certificate need not learn which there are.
var elsewhere = direct.NewResponse(http.StatusMisdirectedRequest,
	http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
	[]byte("421 no site of that name is served on this connection; a connection with that name in the handshake (SNI) "+
		"may reach it\n"))

func (g guard) admits(r *http.Request) bool {
	target, ok := vhost.Find(&g.tls.table, r.Host)
	if !ok {
		return false
	}
	if r.TLS == nil { // of a listener that does not speak TLS
		return target.clientCA == "" || target.optional
	}
	// The authorities of now: a reload may have removed the one that the connection
	// was verified with.
	needed := !target.optional || len(r.TLS.PeerCertificates) > 0
	if clients := target.now.Load().clients; clients != nil && needed && !clients.Verified(r.TLS) {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	shown, ok := g.tls.find(r.TLS.ServerName, local)
	return ok && shown.clientCA == target.clientCA && shown.optional == target.optional
}

// hsts adds Strict-Transport-Security to the responses of a handler.
type hsts struct {
	direct.Handler
	value string
}

var hstsName = wire.NewName("Strict-Transport-Security")

// withHSTS returns h itself if there is no value.
func withHSTS(h direct.Handler, value string) direct.Handler {
	if value == "" {
		return h
	}
	return &hsts{h, value}
}

// TakesAhead is what wire.TakesAhead asks.
func (h *hsts) TakesAhead() bool { return wire.TakesAhead(h.Handler) }

// ServeDirect implements direct.Handler. RFC 6797 section 7.2: not without TLS.
func (h *hsts) ServeDirect(x *direct.Exchange) bool {
	if x.Wire().TLS() {
		x.Wire().Keep(hstsName, h.value)
	}
	return h.Handler.ServeDirect(x)
}

// ServeHTTP implements http.Handler.
func (h *hsts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.TLS != nil {
		w.Header().Set(hstsName.String(), h.value)
	}
	h.Handler.ServeHTTP(w, r)
}

// upgrade redirects plain HTTP to TLS, with the same host, path and query.
type upgrade struct {
	hosts *vhost.Table[*tlsSite] // nil for every host
	port  string                 // of TLS; "0" if it is on unix sockets only
	own   string                 // of plain HTTP
}

// ServeHTTP implements http.Handler.
func (u *upgrade) ServeHTTP(w http.ResponseWriter, r *http.Request) { direct.Respond(w, r, u.answer) }

func (u *upgrade) answer(x *direct.Exchange) {
	to := u.target(string(x.Host()))
	if to == "" {
		x.Send(misdirected)
		return
	}
	// Clients may change POST to GET after 301 (RFC 9110 section 15.4.2), not after 308.
	status := http.StatusPermanentRedirect
	if x.Method() == http.MethodGet || x.Method() == http.MethodHead {
		status = http.StatusMovedPermanently
	}
	x.SetStatus(status)
	x.SetHeader("Location", string(percent.Append([]byte(to), targetURI(x), inTarget)))
}

// target returns the scheme and authority of a redirect, "" if the host has no
// site.
func (u *upgrade) target(authority string) string {
	host := vhost.Name(authority)
	if !plainHost(host) {
		return ""
	}
	if u.hosts != nil {
		if _, ok := vhost.Find(u.hosts, authority); !ok {
			return ""
		}
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	// A client that names no port is at port 80. If that is not this server's, the
	// ports are mapped, as containers do, and 443 is more likely than the port inside. So it
	// is in front of a unix socket.
	_, port, _ := net.SplitHostPort(authority) // empty if it names none, or fails
	if u.port == "443" || u.port == "0" || port == "" && u.own != "80" {
		return "https://" + host
	}
	return "https://" + host + ":" + u.port
}
