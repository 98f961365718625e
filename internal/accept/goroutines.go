package accept

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/exec"
	"github.com/chert-http/chert/internal/tlsio"
)

// This file is the goroutine engine: a goroutine for each connection.

// serve handles one connection from handshake to close.
func (a *Acceptor) serve(j *job) {
	defer j.c.Gone()
	p := j.p
	var state *tls.ConnectionState
	var err error
	returned := exec.Call(func() { state, err = a.introduce(j) }, func(e exec.End) {
		p.LogEnd(e)
		a.over(j)
	})
	if !returned {
		return
	}
	if err != nil {
		a.over(j)
		return
	}
	var secured conn.Secured
	if state != nil {
		secured = (*conn.Negotiated)(state)
		j.c.SetTLS(state.Version)
	}
	if tc, ok := j.nc.(*tls.Conn); ok && anotherProto(state.NegotiatedProtocol) {
		if next := a.Other(state.NegotiatedProtocol); next != nil {
			j.c.Lend()
			defer a.over(j) // it may end its goroutine
			p.NextProto(tc, next)
			return
		}
		if state.NegotiatedProtocol == "h2" && a.HTTP2() {
			j.c.Run(a.Config().Second(&p.Client, secured))
			return
		}
		// The client would not understand HTTP/1.
		a.over(j)
		return
	}
	p.Start(secured)
	j.c.Run(p)
}

// errShare means that a client's address has too many connections.
var errShare = errors.New("too many connections of an address")

// introduce reads what a proxy tells of its client, if it does, and performs the handshake, if
// there is one.
func (a *Acceptor) introduce(j *job) (*tls.ConnectionState, error) {
	peer := j.c.Peer().RemoteAddr
	if peer == "" {
		peer = peerOf(j.nc)
		if !j.proxied {
			j.c.SetPeer(peer)
		}
	}
	if !j.proxied {
		return a.shake(j)
	}
	j.c.ReadBy(time.Now().Add(proxyHeaderTimeout))
	late := time.AfterFunc(proxyHeaderTimeout, j.c.Close) // there are connections without deadlines
	defer late.Stop()                                     // Read may be user code that panics
	client, err := readHeader(j.nc, peer)
	if !late.Stop() {
		err = os.ErrDeadlineExceeded
	}
	if j.c.ReadBy(time.Time{}); err != nil {
		if err != io.EOF && !a.Stopping() {
			headerFailed(a.New, peer, err)
		}
		return nil, err
	}
	if !a.Gate.Admit(client) {
		a.New.Refused(client, true)
		sayNo(a.guard(j.nc, func() string { return client }), a.New.Refusal())
		return nil, errShare
	}
	j.counts = client
	j.c.SetPeer(client)
	return a.shake(j)
}

// shake performs the handshake of j, and answers one that fails.
func (a *Acceptor) shake(j *job) (*tls.ConnectionState, error) {
	peer := j.c.Peer().RemoteAddr
	state, err := a.timedHandshake(j.nc, func() (*tls.ConnectionState, error) {
		return handshake(j.p.HandshakeContext(), j, a.HandshakeTimeout())
	})
	if err == nil {
		return state, nil
	}
	late := time.AfterFunc(a.HandshakeTimeout(), j.c.Close)
	defer late.Stop()
	tc := j.nc.(*tls.Conn) // no other connection has a handshake that fails
	if answer := a.HandshakeFailed(peer, tc.LocalAddr(), tc, tlsio.Cause(err)); len(answer) > 0 {
		tc.NetConn().Write(answer)
	}
	return nil, err
}

// timedHandshake counts a handshake, if nc has one.
func (s *Server) timedHandshake(nc net.Conn, shake func() (*tls.ConnectionState, error)) (*tls.ConnectionState, error) {
	if _, ok := nc.(*tls.Conn); !ok {
		return shake()
	}
	began := time.Now()
	s.Observed.Shaking(1)
	defer s.Observed.Shaking(-1) // functions of the tls.Config may panic
	state, err := shake()
	if err == nil {
		s.Observed.Shaken(state, time.Since(began))
	}
	return state, err
}

// over ends a connection that did not use HTTP/1.
func (a *Acceptor) over(j *job) {
	j.c.Close()
	j.p.Closed(false)
}

// anotherProto reports whether ALPN has negotiated a protocol other than
// HTTP/1.
func anotherProto(p string) bool { return p != "" && p != "http/1.1" && p != "http/1.0" }

// handshake completes a TLS connection's handshake, if it is one. Another type
// of connection may implement TLS itself and report what was negotiated.
func handshake(ctx context.Context, j *job, timeout time.Duration) (*tls.ConnectionState, error) {
	nc := j.nc
	tc, ok := nc.(*tls.Conn)
	if !ok {
		if other, ok := nc.(interface{ ConnectionState() tls.ConnectionState }); ok {
			state := other.ConnectionState()
			return &state, nil
		}
		return nil, nil
	}
	// Not a deadline of ctx: crypto/tls would call Close, perhaps of another package, on a
	// goroutine of its own, where a panic ends the process.
	late := time.AfterFunc(timeout, j.c.Close)
	defer late.Stop() // functions of the tls.Config may panic
	err := tc.HandshakeContext(ctx)
	if !late.Stop() {
		// As net/http and the loops log it.
		local, remote := nc.LocalAddr(), nc.RemoteAddr()
		network := "tcp"
		if remote != nil {
			network = remote.Network()
		}
		err = &net.OpError{Op: "read", Net: network, Source: local, Addr: remote, Err: os.ErrDeadlineExceeded}
	}
	if err != nil {
		return nil, err
	}
	state := tc.ConnectionState()
	return &state, nil
}
