package forwardauth

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/chert-http/chert/internal/rfc/field"
	"github.com/chert-http/chert/middleware/internal/wrap"
)

// hopByHop are of one connection (RFC 9110 section 7.6.1).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade",
}

// notCopied reports whether a field is not copied from an answer. name is canonical.
func notCopied(name string) bool { return slices.Contains(hopByHop, name) || name == "Content-Length" }

// notOffered reports whether a field that an answer which admits has cannot be one of the
// request or of the response: it is of the answer's own body, or of one message.
func notOffered(name string) bool {
	return notCopied(name) || name == "Content-Encoding" || name == "Host" || name == "Date" || name == "Expect"
}

// notAsked reports whether a field of a request is not in the subrequest: of the
// connection, :protocol of an extended CONNECT, of a body that is not sent, a condition or a
// range, which are about another resource, and what describes a client, which only a proxy may
// say. Those are compared as variables, since the server may be a program that reads them so.
func notAsked(name string) bool {
	name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	if notCopied(name) || strings.HasPrefix(name, ":") {
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

// ofOuter are fields that an answer does not replace: they are of all responses of this
// server, and what is logged must be what the client gets.
var ofOuter = []string{"X-Request-Id", "Strict-Transport-Security"}

// send responds with an answer.
func (a *answer) send(w http.ResponseWriter) {
	h := w.Header()
	connection := strings.Join(a.header["Connection"], ",")
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		if notCopied(name) || name == "Date" || field.HasToken(connection, name) ||
			h[name] != nil && slices.Contains(ofOuter, name) {
			continue
		}
		if name == "Vary" || name == "Set-Cookie" {
			h[name] = append(slices.Clip(h[name]), a.header[name]...)
			continue
		}
		h[name] = a.header[name]
	}
	if a.header["Cache-Control"] == nil {
		h.Set("Cache-Control", "no-store") // a redirect to a login is of this client only
	}
	if len(a.body) == 0 {
		h.Del("Content-Encoding")
	} else {
		wrap.LeaveErrors(w)
	}
	w.WriteHeader(a.status)
	w.Write(a.body)
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
