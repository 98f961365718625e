package engines

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testhook"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Server is a running server that ends with its test.
type Server struct {
	*chert.Server
	T          testing.TB
	ListenAddr string // for clients
	Log        *servertest.Log
	Served     chan error // what Serve returned
	Control    Control    // the server, or net/http's with NetHTTP
}

// Control is what tests do with a running server, ours or net/http's.
type Control interface {
	Serve(net.Listener) error
	ServeTLS(l net.Listener, certFile, keyFile string) error
	ListenAndServe() error
	ListenAndServeTLS(certFile, keyFile string) error
	Close() error
	Shutdown(context.Context) error
	SetKeepAlivesEnabled(bool)
	RegisterOnShutdown(func())
}

// ControlOf returns s, or net/http's server in its place.
func ControlOf(s *chert.Server) Control {
	if s.Engine == NetHTTP {
		return netHTTP(s)
	}
	return s
}

// netHTTP returns net/http's server with the fields and settings of s.
func netHTTP(s *chert.Server) *http.Server {
	std := new(http.Server)
	from, to := reflect.ValueOf(s).Elem(), reflect.ValueOf(std).Elem()
	for i := range to.NumField() {
		if f := to.Type().Field(i); f.IsExported() {
			if ours := from.FieldByName(f.Name); ours.IsValid() { // later versions of Go have more
				to.Field(i).Set(ours)
			}
		}
	}
	std.SetKeepAlivesEnabled(testhook.Of(s).KeepAlives())
	return std
}

// Inside returns the parts of s that its users do not see.
func (ts *Server) Inside() testhook.Server { return testhook.Of(ts.Server) }

// Start serves s on a free port of the loopback.
func Start(t testing.TB, s *chert.Server) *Server {
	t.Helper()
	l, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return StartOn(t, s, l)
}

// newServer returns s as a Server that will serve on l.
func newServer(t testing.TB, s *chert.Server, l net.Listener) *Server {
	ts := &Server{Server: s, T: t, ListenAddr: l.Addr().String(), Log: new(servertest.Log), Served: make(chan error, 1)}
	if s.ErrorLog == nil {
		s.ErrorLog = servertest.NewLogger(ts.Log)
	}
	ts.Control = ControlOf(s)
	return ts
}

// StartOn serves s on l. All goroutines of s must end with the test, including
// handlers.
func StartOn(t testing.TB, s *chert.Server, l net.Listener) *Server {
	t.Helper()
	if os.Getenv("CHERT_PLACEMENT") == "inline" && s.Placement == chert.PlacementAdaptive {
		s.Placement = chert.PlacementInline
	}
	ts := newServer(t, s, l)
	if s.Engine == NetHTTP {
		go func() { ts.Served <- ts.Control.Serve(l) }()
		t.Cleanup(func() {
			ts.Control.Close()
			servertest.Await(t, ts.Served, "net/http to end")
		})
		return ts
	}
	addr, serve, stop := throughLayer(t, s, l)
	ts.ListenAddr = addr
	go func() { ts.Served <- serve() }()
	t.Cleanup(func() {
		stop()
		s.Close()
		select {
		case err := <-ts.Served:
			if !errors.Is(err, chert.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				t.Errorf("Serve returned %v", err)
			}
		case <-time.After(servertest.Patience):
			t.Error("Serve did not return after Close")
		}
		ended(t, s)
	})
	return ts
}

// ended waits until a closed server has ended completely.
func ended(t testing.TB, s Control) {
	ctx, cancel := context.WithTimeout(context.Background(), servertest.Patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Errorf("something did not end after Close: %v", err)
	}
}

// StartTLS serves s on l with ServeTLS and cert.
func StartTLS(t testing.TB, s *chert.Server, l net.Listener, cert tls.Certificate) *Server {
	t.Helper()
	if s.TLSConfig == nil {
		s.TLSConfig = new(tls.Config)
	}
	s.TLSConfig.Certificates = []tls.Certificate{cert}
	ts := newServer(t, s, l)
	go func() { ts.Served <- ts.Control.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		ts.Control.Close()
		if err := servertest.Await(t, ts.Served, "ServeTLS"); err != http.ErrServerClosed {
			t.Errorf("ServeTLS returned %v", err)
		}
		ended(t, ts.Control)
	})
	return ts
}

// StartMemory serves s on net.Pipes.
func StartMemory(t *testing.T, s *chert.Server) (*Server, *servertest.Memory) {
	t.Helper()
	m := servertest.NewMemory()
	return StartOn(t, s, m), m
}

// Dial connects to the server.
func (ts *Server) Dial() *servertest.Client {
	ts.T.Helper()
	return servertest.Dial(ts.T, ts.ListenAddr)
}

// DialSmall is Dial with a small receive buffer.
func (ts *Server) DialSmall(size int) *servertest.Client {
	ts.T.Helper()
	return servertest.DialSmall(ts.T, ts.ListenAddr, size)
}

// Exchange sends s on a new connection, at once or byte by byte, and returns
// all that comes back. A reset ends the response like a FIN.
func (ts *Server) Exchange(s string, slowly bool) string {
	ts.T.Helper()
	c := ts.Dial()
	defer c.Close()
	if slowly {
		c.SendSlowly(s, 1)
	} else {
		c.Send(s)
	}
	return c.UpToEnd()
}

// Refuses waits until no process listens.
func (ts *Server) Refuses() {
	ts.T.Helper()
	servertest.Eventually(ts.T, "connections are refused", func() bool {
		nc, err := net.Dial("tcp", ts.ListenAddr)
		if err == nil {
			nc.Close()
			return false
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
}
