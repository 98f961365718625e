package chert

import (
	"context"
	"net"
	"sync"

	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/bridge/h1"
)

// HTTP3 is HTTP/3 (RFC 9114), as New of package http3 returns it: programs that do not import that
// do not have its code. Handlers, hooks and limits are those of the other versions; what the
// HTTP2 field says of streams and windows is for both. The server tells clients of it by the field
// Alt-Svc in responses over TLS. A listener that is not of TCP is served without HTTP/3. With
// ProxyProtocol addresses are those of QUIC's packets. An upgrade by Upgrader ends the connections
// of HTTP/3, and clients connect again. See docs/http3.md.
type HTTP3 interface{ accept.Packets }

// openPackets opens the UDP socket beside the listener of a ServeTLS call; nil if there is none to
// be opened.
func (s *Server) openPackets(sv *serving, base context.Context) (accept.PacketServer, error) {
	addr, tcp := sv.l.Addr().(*net.TCPAddr)
	if s.HTTP3 == nil || sv.tls == nil || !tcp {
		return nil, nil
	}
	h2 := s.http2Config(s.config(base, ""))
	return s.HTTP3.OpenPackets(&accept.PacketHost{
		TLS: sv.tls, Gate: s.gate,
		Config:     sync.OnceValue(func() *h1.Config { return s.config(base, "") }),
		MaxStreams: h2.MaxStreams, StreamWindow: h2.StreamWindow, ConnWindow: h2.ConnWindow, MaxWindow: h2.MaxWindow,
		ExtendedConnect: s.ExtendedConnect, CountError: h2.CountError,
		Observed: &s.observed, Logf: s.logf, Seek: s.room.Seek, Track: s.track, Untrack: s.untrack,
		HandshakeTimeout: s.handshakeTimeout(),
	}, addr)
}
