// Package onquic replaces quic-go's http3.Server in its tests.
package onquic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/http3"
	"github.com/quic-go/quic-go/internal/onchert"
)

// Server has the fields of http3.Server that tests set. Of QUICConfig only the number of streams counts.
// As http3.Server it accepts early data.
type Server struct {
	Addr            string
	Port            int
	Handler         http.Handler
	TLSConfig       *tls.Config
	QUICConfig      *quic.Config
	MaxHeaderBytes  int
	IdleTimeout     time.Duration
	EnableDatagrams bool
	Logger          *slog.Logger
	ConnContext     func(context.Context, *quic.Conn) context.Context

	once   sync.Once
	server *chert.Server
	at     atomic.Pointer[net.TCPAddr]

	mu   sync.Mutex
	ends []*end // of ServeQUICConn
}

// chert is the server that serves.
func (s *Server) chert() *chert.Server {
	s.once.Do(func() {
		c := &chert.Server{
			Engine: onchert.Engine(), Addr: s.Addr, Handler: s.Handler, TLSConfig: s.TLSConfig, HTTP3: http3.New(&http3.Options{EarlyData: true}),
			MaxHeaderBytes: s.MaxHeaderBytes, IdleTimeout: s.IdleTimeout, HTTP2: &http.HTTP2Config{},
		}
		if q := s.QUICConfig; q != nil {
			c.HTTP2.MaxConcurrentStreams = int(q.MaxIncomingStreams)
		}
		if s.Logger != nil {
			c.ErrorLog = slog.NewLogLogger(s.Logger.Handler(), slog.LevelError)
		}
		if s.ConnContext != nil {
			c.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { return s.ConnContext(ctx, nil) }
		}
		s.server = c
	})
	return s.server
}

// Serve serves at the address of a socket, which it closes.
func (s *Server) Serve(conn net.PacketConn) error {
	at := conn.LocalAddr().(*net.UDPAddr)
	conn.Close()
	return s.serve(&net.TCPAddr{IP: at.IP, Port: at.Port})
}

// ListenAndServe is http3.Server's.
func (s *Server) ListenAndServe() error { return s.serve(nil) }

// serve serves HTTP/3 at an address, nil for any.
func (s *Server) serve(at *net.TCPAddr) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if at == nil {
		at = l.Addr().(*net.TCPAddr)
	}
	s.at.Store(at)
	return s.chert().ServeTLS(listener{l, at}, "", "")
}

// listener is one of TCP that appears to be at another address: what is free for UDP need not be
// for TCP, which no test uses.
type listener struct {
	net.Listener
	at *net.TCPAddr
}

func (l listener) Addr() net.Addr { return l.at }

// SetQUICHeaders is http3.Server's.
func (s *Server) SetQUICHeaders(h http.Header) error {
	at := s.at.Load()
	if at == nil {
		return errors.New("onquic: not yet")
	}
	h.Set("Alt-Svc", fmt.Sprintf(`h3=":%d"; ma=86400`, at.Port))
	return nil
}

// ServeListener has no counterpart: chert's sockets are its own.
func (s *Server) ServeListener(any) error { return errOwn }

var errOwn = errors.New("onquic: chert serves a socket of its own")

// Close is http3.Server's.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.ends {
		e.server.Close()
	}
	return s.chert().Close()
}

// Shutdown is http3.Server's.
func (s *Server) Shutdown(ctx context.Context) error { return s.chert().Shutdown(ctx) }
