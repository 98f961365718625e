package http3

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"

	"github.com/quic-go/quic-go"
)

// This file is handshakes that fail.

// greet records that the ClientHello of a connection has come.
func (e *entry) greet(hello *tls.ClientHelloInfo) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked, e.way = hello.ServerName, hello.Conn
}

// shakeFailed counts a handshake whose connection has ended because of err, and logs it if its ClientHello has
// come: other packets are anyone's, under any address. Those of clients that have not shown their address count
// as under way for a while, so that there are few such lines until doubts has clients show it.
func (s *server) shakeFailed(e *entry, err error) {
	e.mu.Lock()
	asked, way := e.asked, e.way
	e.mu.Unlock()
	s.mu.Lock()
	closed := s.isClosed()
	s.mu.Unlock()
	if err = failure(err, way); err == nil || closed {
		return
	}
	if way == nil {
		s.host.Observed.ShakeFailed(err)
		return
	}
	if !e.verified {
		s.shaking.Add(1)
		time.AfterFunc(s.host.HandshakeTimeout, func() { s.shaking.Add(-1) })
	}
	state := tls.ConnectionState{Version: tls.VersionTLS13, ServerName: asked}
	s.host.HandshakeFailed(way.RemoteAddr().String(), way.LocalAddr(), &state, err)
}

// failure is what is logged of a handshake whose connection has ended because of err; nil if that is no failure.
// way has its addresses, if it is not nil.
func failure(err error, way net.Conn) error {
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() { // as over TCP
		late := &net.OpError{Op: "read", Net: "udp", Err: os.ErrDeadlineExceeded}
		if way != nil {
			late.Source, late.Addr = way.LocalAddr(), way.RemoteAddr()
		}
		return late
	}
	t, ok := errors.AsType[*quic.TransportError](err)
	_, over := errors.AsType[*quic.ApplicationError](err) // by HTTP/3: its handshake had ended, or it was early
	switch {
	case over || ok && !t.Remote && t.ErrorCode == quic.ConnectionRefused: // by this server
		return nil
	case ok && t.Remote:
		return &quic.TransportError{Remote: true, ErrorCode: t.ErrorCode} // without the client's own words
	}
	return err
}
