package forward

import (
	"bytes"

	"github.com/chert-http/chert/internal/http1"
)

// maxProtocols is how many of Upgrade are passed on: the first ones, which the client
// prefers (RFC 9110 section 7.8).
const maxProtocols = 8

// upgradeList writes the protocols that the client would switch to, if any can be passed
// on, and records where they are.
//
// Nothing may follow the head before the upstream has switched, so a request with a body
// is forwarded without.
func (m *request) upgradeList() bool {
	if !m.Upgrade || !m.r.Upgrade || m.r.Chunked || m.r.ContentLength > 0 {
		return false
	}
	begin := len(m.dst)
	m.dst = append(m.dst, "Upgrade: "...)
	start, n := len(m.dst), 0
	for i := range m.r.Fields {
		if m.r.Fields[i].ID != http1.FieldUpgrade {
			continue
		}
		var elem []byte
		list := m.r.Fields[i].Value.Bytes(m.head)
		for len(list) > 0 && n < maxProtocols {
			if elem, list = http1.NextElement(list); !switchable(elem) {
				continue
			}
			if n++; n > 1 {
				m.dst = append(m.dst, ", "...)
			}
			m.dst = append(m.dst, elem...)
		}
	}
	if n == 0 {
		m.dst = m.dst[:begin]
		return false
	}
	m.upgrade = http1.Span{Start: uint32(start), End: uint32(len(m.dst))}
	m.dst = append(m.dst, "\r\n"...)
	return true
}

// switchable reports whether elem is a protocol (RFC 9110 section 7.8) that the client
// may switch to. HTTP and TLS are not: requests within the tunnel would reach the
// upstream past all rules for requests.
func switchable(elem []byte) bool {
	name, version, versioned := bytes.Cut(elem, []byte("/"))
	if !http1.ValidFieldName(name) || versioned && !http1.ValidFieldName(version) {
		return false // both are tokens
	}
	if len(name) >= 2 && http1.FoldEqual(name[:2], "h2") {
		return false // h2c, and its drafts: h2c-14
	}
	for _, refused := range [...]string{"HTTP", "HTTPS", "TLS"} {
		if http1.FoldEqual(name, refused) {
			return false
		}
	}
	return true
}
