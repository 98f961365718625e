package chert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/chert-http/chert/internal/bridge"
	"github.com/chert-http/chert/internal/stream"
	"github.com/chert-http/chert/internal/sys"
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
	state, err := handshake(a.cfg().BaseContext, j.nc)
	if err != nil {
		a.s.logf("http: TLS handshake error from %s: %v", peer, err)
		if err == errPlain {
			a.s.refused(peer, http.StatusBadRequest, errPlain.Error(), nil)
		}
		a.over(j)
		return
	}
	j.c.SetPeer(peer)
	if tc, ok := j.nc.(*tls.Conn); ok && anotherProto(state.NegotiatedProtocol) {
		if next := a.s.TLSNextProto[state.NegotiatedProtocol]; next != nil {
			j.c.Lend()
			defer a.over(j) // it may end its goroutine
			p.NextProto(tc, next)
			return
		}
		if protos := a.s.protocols(); state.NegotiatedProtocol == "h2" && protos.HTTP2() {
			j.c.Run(a.s.http2Config(a.cfg()).New(j.c, &p.Client, state))
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

// handshakeTimeout bounds a TLS handshake.
const handshakeTimeout = 10 * time.Second

var errPlain = errors.New("client sent an HTTP request to an HTTPS server")

// handshake completes a TLS connection's handshake, if it is one. Another type
// of connection may speak TLS below and tell what was negotiated.
func handshake(ctx context.Context, nc net.Conn) (*tls.ConnectionState, error) {
	tc, ok := nc.(*tls.Conn)
	if !ok {
		if other, ok := nc.(interface{ ConnectionState() tls.ConnectionState }); ok {
			state := other.ConnectionState()
			return &state, nil
		}
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := tc.HandshakeContext(ctx); err != nil {
		var re tls.RecordHeaderError
		if errors.As(err, &re) && re.Conn != nil && looksLikeHTTP(re.RecordHeader) {
			const text = "Client sent an HTTP request to an HTTPS server.\n"
			b := bridge.AppendDate([]byte("HTTP/1.0 400 Bad Request\r\n"), sys.Nanotime())
			re.Conn.Write(fmt.Appendf(b, "Content-Length: %d\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%s", len(text), text))
			err = errPlain
		}
		return nil, err
	}
	state := tc.ConnectionState()
	return &state, nil
}

func looksLikeHTTP(h [5]byte) bool {
	switch string(h[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}
