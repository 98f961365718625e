package chert

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/chert-http/chert/internal/stream"
	"github.com/chert-http/chert/internal/tlsio"
)

// This file is the other engine: connections on goroutines, or on Workers.

func (a *acceptor) startWorkers() {
	a.queue = make(chan job, a.s.queueLength(a.s.Workers))
	for range a.s.Workers {
		go a.work()
	}
}

// work serves connections of the queue until it is closed. A handler may end
// its goroutine (runtime.Goexit); another takes its place then.
func (a *acceptor) work() {
	done := false
	defer func() {
		if !done {
			go a.work()
		}
	}()
	for j := range a.queue {
		a.begin(j)
		a.serve(j)
	}
	done = true
}

// begin notes that a worker has taken j. If others wait behind it, it must
// give way to them as those do that makeRoom finds: whoever joins the queue
// after this look is seen by makeRoom, which then finds j.
func (a *acceptor) begin(j job) {
	a.s.lock()
	if _, ok := a.s.streams[j.c]; ok {
		a.s.streams[j.c] = true
	}
	a.s.mu.Unlock()
	if len(a.queue) > 0 {
		j.c.Drain()
	}
}

// makeRoom ends kept connections after their request, since others wait, and soon
// those of which no request has come whole.
func (s *Server) makeRoom() {
	s.lock()
	var all []*stream.Conn
	for c, served := range s.streams {
		if served {
			all = append(all, c)
		}
	}
	s.mu.Unlock()
	for _, c := range all {
		c.Drain() // without the lock; see tellAll
	}
}

// serve is the life of one connection.
func (a *acceptor) serve(j job) {
	defer j.c.Gone()
	j.c.Begin()
	p, peer := j.p, peerOf(j.nc)
	j.c.SetPeer(peer)
	shaken := false
	defer func() {
		if shaken {
			return
		}
		if e := recover(); e != nil && e != http.ErrAbortHandler {
			p.Panicked(e)
		}
		a.over(j) // also after runtime.Goexit
	}()
	state, err := handshake(p.HandshakeContext(), j.nc, a.s.handshakeTimeout())
	if err != nil {
		if answer := a.s.handshakeFailed(peer, tlsio.Cause(err)); len(answer) > 0 {
			j.nc.(*tls.Conn).NetConn().Write(answer)
		}
		return
	}
	shaken = true
	if tc, ok := j.nc.(*tls.Conn); ok && anotherProto(state.NegotiatedProtocol) {
		if next := a.s.TLSNextProto[state.NegotiatedProtocol]; next != nil {
			j.c.Lend()
			defer a.over(j) // it may end its goroutine
			p.NextProto(tc, next)
			return
		}
		// The client would not understand HTTP/1.
		a.over(j)
		return
	}
	p.Start(state)
	j.c.Run(p)
}

// over ends a connection on which no HTTP/1 was spoken.
func (a *acceptor) over(j job) {
	j.nc.Close()
	j.p.Closed(false)
}

// anotherProto reports whether ALPN has agreed on something that HTTP/1 must
// not be spoken with.
func anotherProto(p string) bool { return p != "" && p != "http/1.1" && p != "http/1.0" }

// handshake completes a TLS connection's handshake, if it is one. Another type
// of connection may speak TLS below and tell what was negotiated.
func handshake(ctx context.Context, nc net.Conn, timeout time.Duration) (*tls.ConnectionState, error) {
	tc, ok := nc.(*tls.Conn)
	if !ok {
		if other, ok := nc.(interface{ ConnectionState() tls.ConnectionState }); ok {
			state := other.ConnectionState()
			return &state, nil
		}
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := tc.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	state := tc.ConnectionState()
	return &state, nil
}
