package chert

import (
	"context"
	"sync"

	"github.com/chert-http/chert/internal/accept"
	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/bridge/h1"
	"github.com/chert-http/chert/internal/http1"
	"github.com/chert-http/chert/internal/http2"
)

// HTTP3 is HTTP/3 (RFC 9114), as New of package http3 returns it: programs that do not import that
// do not have its code. Handlers, hooks and limits are those of the other versions; what the
// HTTP2 field says of streams and windows is for both. The server tells clients of it by the field
// Alt-Svc in responses over TLS. A listener that is not of TCP is served without HTTP/3. With
// ProxyProtocol addresses are those of QUIC's packets. An upgrade by Upgrader passes the socket on,
// and ends the connections of HTTP/3: clients connect again. See docs/http3.md.
type HTTP3 interface{ accept.Packets }

// openPackets opens the UDP socket of a Serve call, if there is to be one.
func (s *Server) openPackets(sv *serving) (err error) {
	if s.HTTP3 != nil && sv.tls != nil && !s.ending() {
		sv.packets, err = s.HTTP3.OpenPackets(sv.below, s.Upgrader != nil)
	}
	return err
}

// servePackets serves what comes on the UDP socket of a Serve call, and returns the Alt-Svc field
// for responses over TCP, nil if there is no socket.
func (s *Server) servePackets(sv *serving, base context.Context) (*bridge.AltSvc, error) {
	if sv.packets == nil {
		return nil, nil
	}
	told := new(bridge.AltSvc)
	h2 := s.http2Config(s.config(base, nil))
	return told, sv.packets.Serve(&accept.PacketHost{
		TLS: sv.tls, Gate: s.gate,
		Config:     sync.OnceValue(func() *h1.Config { return s.config(base, nil) }),
		MaxStreams: h2.MaxStreams, StreamWindow: h2.StreamWindow, ConnWindow: h2.ConnWindow, MaxWindow: h2.MaxWindow,
		ExtendedConnect: s.ExtendedConnect, CountError: h2.CountError,
		Tell: func(value string) {
			told.Set(http1.AppendField(nil, "Alt-Svc", value), http2.AppendField(nil, "Alt-Svc", value))
		},
		Observed: &s.observed, Logf: s.logf, Seek: s.room.Seek, Track: s.track, Untrack: s.untrack,
		HandshakeTimeout: s.handshakeTimeout(),
	})
}
