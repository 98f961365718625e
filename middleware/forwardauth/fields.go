package forwardauth

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// hopByHop are of one connection (RFC 9110 section 7.6.1).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// notCopied reports whether a field is not copied from an answer. name is canonical.
func notCopied(name string) bool { return slices.Contains(hopByHop, name) || name == "Content-Length" }

// notAsked reports whether a field of a request is not in the subrequest: of the
// connection, of a body that is not sent, a condition or a range, which are about another
// resource, and what describes a client, which only a proxy may say. Those are compared
// as variables, since the server may be a program that reads them so.
func notAsked(name string) bool {
	name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	if notCopied(name) {
		return true
	}
	switch name {
	case "Expect", "Range", "Accept-Encoding", "Forwarded", "X-Real-Ip", "X-Http-Method-Override", "Host",
		"Http2-Settings":
		return true
	}
	for _, prefix := range []string{"Content-", "If-", "X-Forwarded-", "X-Original-", "X-Rewrite-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// send responds with an answer.
func (a *answer) send(w http.ResponseWriter) {
	h := w.Header()
	named := strings.ToLower(strings.Join(a.header["Connection"], ","))
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		if notCopied(name) || name == "Date" || slices.Contains(splitTokens(named), strings.ToLower(name)) {
			continue
		}
		h[name] = a.header[name]
	}
	if h["Cache-Control"] == nil {
		h.Set("Cache-Control", "no-store") // a redirect to a login is of this client only
	}
	if len(a.body) == 0 {
		h.Del("Content-Encoding")
	}
	w.WriteHeader(a.status)
	w.Write(a.body)
}

func splitTokens(s string) []string {
	all := strings.Split(s, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// hostOf returns the address of a client without the port, "" for that of a unix socket.
func hostOf(remote string) string {
	if a, err := netip.ParseAddrPort(remote); err == nil {
		return a.Addr().Unmap().WithZone("").String()
	}
	if a, err := netip.ParseAddr(remote); err == nil {
		return a.Unmap().WithZone("").String()
	}
	return ""
}
