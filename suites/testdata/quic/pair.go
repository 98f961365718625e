package onquic

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/quic-go/quic-go"
)

// end is the server's end of a connection, for tests that make a connection before its server. A server
// of chert has the connection from the beginning; its requests wait for the Server that is to serve them.
type end struct {
	server *Server
	client *quic.Conn
	bound  chan struct{}
	by     *Server // when bound is closed
}

var ends sync.Map // *quic.Conn, which stands for the server's end: *end

// Pair connects to a server of chert with the limits of s, which may be nil. The second connection is for
// ServeQUICConn and nothing else. done ends both.
func Pair(ctx context.Context, s *Server, server, client *tls.Config) (cl, srv *quic.Conn, done func(), err error) {
	e := &end{bound: make(chan struct{})}
	e.server = &Server{Handler: e, TLSConfig: server, Logger: slog.New(slog.NewTextHandler(e, nil))}
	if s != nil {
		e.server.MaxHeaderBytes = s.MaxHeaderBytes
	}
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, nil, nil, err
	}
	at := conn.LocalAddr()
	e.server.chert() // here, where the test is on the stack
	served := make(chan struct{})
	go func() {
		defer close(served)
		e.server.Serve(conn)
	}()
	own, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, nil, nil, err
	}
	if e.client, err = quic.Dial(ctx, own, at, client, nil); err != nil {
		return nil, nil, nil, err
	}
	srv = new(quic.Conn)
	ends.Store(srv, e)
	return e.client, srv, func() {
		e.client.CloseWithError(0, "")
		e.server.Close()
		<-served
		own.Close()
	}, nil
}

// ServeQUICConn serves a connection of Pair until it ends.
func (s *Server) ServeQUICConn(c *quic.Conn) error {
	v, ok := ends.LoadAndDelete(c)
	if !ok {
		return errOwn
	}
	e := v.(*end)
	s.mu.Lock()
	s.ends = append(s.ends, e)
	s.mu.Unlock()
	e.by = s
	close(e.bound)
	<-e.client.Context().Done()
	return nil
}

// ServeHTTP has the handler of the Server serve that serves the connection.
func (e *end) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-e.bound:
	case <-r.Context().Done():
		return
	}
	if e.by.Handler == nil {
		http.DefaultServeMux.ServeHTTP(w, r)
		return
	}
	e.by.Handler.ServeHTTP(w, r)
}

// Write has that Server log, of what is logged when it is known.
func (e *end) Write(p []byte) (int, error) {
	select {
	case <-e.bound:
		if l := e.by.Logger; l != nil {
			l.Error(string(p))
		}
	default:
	}
	return len(p), nil
}
