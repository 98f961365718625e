package forward

import (
	"bytes"

	"github.com/chert-http/chert/internal/http1"
)

// client writes what the upstream learns of the client. What an untrusted peer sent of
// it has been removed.
func (m *request) client() {
	m.forwardedFor()
	if m.XForwarded {
		m.unlessReceived(http1.FieldXForwardedHost, m.host)
		if m.Proto != "" && !m.has(http1.FieldXForwardedProto) {
			m.dst = append(append(append(m.dst, "X-Forwarded-Proto: "...), m.Proto...), "\r\n"...)
		}
		if len(m.Port) > 0 && !m.hasName(xForwardedPort) {
			m.dst = appendLine(m.dst, xForwardedPort, m.Port)
		}
		if len(m.Prefix) > 0 {
			m.prefix()
		}
	}
	switch {
	case !m.RealIP:
	case len(m.Client) > 0:
		m.dst = appendLine(m.dst, http1.FieldXRealIP.String(), m.Client)
	case !m.Trusted:
		m.unlessReceived(http1.FieldXRealIP, m.Peer)
	}
	if m.Forwarded {
		m.forwarded()
	}
}

// has reports whether a trusted peer has sent the field.
func (m *request) has(id http1.FieldID) bool {
	if !m.Trusted {
		return false
	}
	for i := range m.r.Fields {
		if m.r.Fields[i].ID == id {
			return true
		}
	}
	return false
}

const xForwardedPort, xForwardedPrefix = "X-Forwarded-Port", "X-Forwarded-Prefix"

// hasName is has for a field without an ID.
func (m *request) hasName(name string) bool {
	if !m.Trusted {
		return false
	}
	for i := range m.r.Fields {
		if f := &m.r.Fields[i]; f.ID == http1.FieldUnknown && http1.FoldEqual(f.Name.Bytes(m.head), name) {
			return true
		}
	}
	return false
}

// joinsPrefix reports whether received X-Forwarded-Prefix fields are joined with this
// server's, so that there is one.
func (m *request) joinsPrefix() bool { return m.XForwarded && len(m.Prefix) > 0 }

// prefix writes one X-Forwarded-Prefix: the prefixes that were cut off, the first one first.
func (m *request) prefix() {
	m.dst = append(m.dst, "X-Forwarded-Prefix: "...)
	if m.Trusted {
		for i := range m.r.Fields {
			f := &m.r.Fields[i]
			if f.ID == http1.FieldUnknown && http1.FoldEqual(f.Name.Bytes(m.head), xForwardedPrefix) {
				m.dst = append(append(m.dst, f.Value.Bytes(m.head)...), ", "...)
			}
		}
	}
	m.dst = append(append(m.dst, m.Prefix...), "\r\n"...)
}

func (m *request) unlessReceived(id http1.FieldID, value []byte) {
	if len(value) > 0 && !m.has(id) {
		m.dst = appendLine(m.dst, id.String(), value)
	}
}

// forwardedFor writes one X-Forwarded-For with all that was received and the peer: some
// upstreams read only the first or the last field.
func (m *request) forwardedFor() {
	begin := len(m.dst)
	m.dst = append(m.dst, "X-Forwarded-For: "...)
	start := len(m.dst)
	add := func(value []byte) {
		if len(value) == 0 {
			return
		}
		if len(m.dst) > start {
			m.dst = append(m.dst, ", "...)
		}
		m.dst = append(m.dst, value...)
	}
	if m.Trusted {
		for i := range m.r.Fields {
			if f := &m.r.Fields[i]; f.ID == http1.FieldXForwardedFor {
				add(f.Value.Bytes(m.head))
			}
		}
	}
	if m.XForwarded {
		add(m.Peer)
	}
	if len(m.dst) == start {
		m.dst = m.dst[:begin]
		return
	}
	m.dst = append(m.dst, "\r\n"...)
}

// forwarded writes a Forwarded field with one element (RFC 7239 section 4). Those of a
// trusted peer come before it, and make one list with it.
func (m *request) forwarded() {
	m.dst = append(m.dst, "Forwarded: for="...)
	switch {
	case len(m.Peer) == 0:
		m.dst = append(m.dst, "unknown"...) // section 6.2
	case bytes.IndexByte(m.Peer, ':') >= 0:
		// Section 6: an IPv6 address is in brackets and quoted.
		m.dst = append(append(append(m.dst, `"[`...), m.Peer...), `]"`...)
	default:
		m.dst = append(m.dst, m.Peer...)
	}
	if len(m.host) > 0 {
		m.dst = append(m.dst, `;host="`...)
		m.dst = append(append(m.dst, m.host...), '"') // no valid host has a quote or a backslash
	}
	if m.Proto != "" {
		m.dst = append(append(m.dst, ";proto="...), m.Proto...)
	}
	m.dst = append(m.dst, "\r\n"...)
}
