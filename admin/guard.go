package admin

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// A page of any site that an operator visits can let the browser send requests to
// 127.0.0.1. It cannot read the responses, but profiles cost time; and if a name of its
// own resolves to 127.0.0.1 (DNS rebinding) the browser takes this for the same origin
// and lets it read. guard refuses both.
type guard struct {
	hosts map[string]bool // in lower case; nil for none
}

func (g *guard) add(hosts []string) {
	for _, host := range hosts {
		if g.hosts == nil {
			g.hosts = make(map[string]bool)
		}
		g.hosts[canonical(host)] = true
	}
}

func canonical(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// check returns the status and the text for a request that is refused, or 0.
func (g *guard) check(r *http.Request) (status int, text string) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return http.StatusMethodNotAllowed, "only GET and HEAD"
	case !g.permits(r):
		return http.StatusMisdirectedRequest,
			"this host name is not among those that the page is for; use localhost or an IP address"
	case foreign(r):
		return http.StatusForbidden, "requests that another origin causes are refused"
	}
	return 0, ""
}

// permits reports whether the request is for a host of ours. A name that is not cannot
// be distinguished from one that an attacker has let resolve to this address. No name
// resolves to an IP address other than itself.
func (g *guard) permits(r *http.Request) bool {
	if g.hosts == nil && !onLoopback(r) {
		return true
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = canonical(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || g.hosts[host] {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}

// onLoopback reports whether the connection's own address is one that only this
// machine reaches. Browsers cannot connect to unix sockets.
func onLoopback(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	switch local := local.(type) {
	case *net.TCPAddr:
		return local.IP.IsLoopback()
	case *net.UDPAddr: // of HTTP/3; of a socket for all addresses it may be unknown to which one a packet was sent
		return local.IP.IsLoopback() || local.IP.IsUnspecified()
	case *net.UnixAddr:
		return false
	}
	return true // unknown
}

// foreign reports whether another origin has caused the request. Browsers say so in
// Sec-Fetch-Site, which pages cannot set, or, where the connection is not to this
// machine and has no TLS, in Origin and Referer. A link to one of the pages may be
// followed from anywhere, but not to a profile.
func foreign(r *http.Request) bool {
	costly := strings.HasPrefix(r.URL.Path, "/debug/pprof/")
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
	default: // another port of localhost is "same-site", and another program
		return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Header.Get("Sec-Fetch-Dest") != "document" || costly
	}
	from := r.Header.Get("Origin")
	if from == "" && costly {
		from = r.Header.Get("Referer")
	}
	if from == "" {
		return false
	}
	u, err := url.Parse(from)
	return err != nil || !strings.EqualFold(u.Host, r.Host)
}
