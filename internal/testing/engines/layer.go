package engines

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/conn"
	"github.com/chert-http/chert/internal/conn/conntest"
	"github.com/chert-http/chert/internal/testhook"
	"github.com/chert-http/chert/internal/testing/servertest"
)

var layerKind = os.Getenv("CHERT_LAYER")

// Layered reports whether connections go through a layer, Sealed whether that is
// TLS.
var (
	Layered = layerKind != ""
	Sealed  = layerKind == "tls"
)

// unlayered are the tests of the socket itself, and why they run without a
// layer.
var unlayered = map[string]string{
	"TestDiffBody/a_write_deadline_that_has_passed":                    "on goroutines only the socket can reset",
	"TestDiffBody/a_write_deadline_that_has_passed_and_is_not_noticed": "on goroutines only the socket can reset",
	"TestDiffBody/writes_after_one_that_has_failed":                    "on goroutines only the socket can reset",
	"TestDiffOptions/a_response_that_comes_too_late":                   "on goroutines only the socket can reset",
	"TestDiffHijack/a_TCP_connection":                                  "asks for a *net.TCPConn",
	"TestDiffHijack/half-closed_by_the_hijacker":                       "asks for a *net.TCPConn",
	"TestDiffHijack/no_deadlines_are_left":                             "asks for a *net.TCPConn",
}

// notTLS are the tests that do not run through TLS, and why.
var notTLS = map[string]string{
	"TestDiffCancel/a_base_context_that_is_done":               "it ends the handshake, with net/http too",
	"TestDiffCancel/a_base_context_with_a_deadline":            "it ends the handshake, with net/http too",
	"TestDiffOptions/the_connection_that_ConnContext_is_shown": "it is a *tls.Conn",
}

// throughLayer puts a layer between s, which listens on l, and its clients, and
// returns the address that they are to use, and the function that serves. stop is to
// be called before s is closed: a connection that is accepted for it afterwards could
// reach another test's server, which has got its port.
func throughLayer(t testing.TB, s *chert.Server, l net.Listener) (address string, serve func() error, stop func()) {
	addr, serve, stop := l.Addr().String(), func() error { return s.Serve(l) }, func() {}
	if _, ok := unlayered[t.Name()]; ok || !Layered || l.Addr().Network() != "tcp" {
		return addr, serve, stop
	}
	if _, ok := notTLS[t.Name()]; ok && Sealed {
		return addr, serve, stop
	}
	seal := func(server net.Conn) net.Conn { return conntest.NewLayer().Over(server, nil) }
	if Sealed {
		cert, _ := servertest.Certificate(t)
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
		serve = func() error { return s.ServeTLS(l, "", "") }
		seal = func(server net.Conn) net.Conn {
			return sealedConn{tls.Client(server, &tls.Config{InsecureSkipVerify: true})}
		}
	} else {
		testhook.Of(s).Layer(func() conn.Layer { return conntest.NewLayer() })
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan bool)
	stop = func() {
		front.Close()
		<-stopped
	}
	go func() {
		defer close(stopped)
		for {
			client, err := front.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				client.Close()
				continue
			}
			sealed := seal(server)
			go func() {
				var both sync.WaitGroup
				both.Go(func() { relay(sealed, client, server) })
				both.Go(func() { relay(client, sealed, client) })
				both.Wait()
				client.Close()
				server.Close()
			}()
		}
	}()
	return front.Addr().String(), serve, stop
}

// sealedConn can end before anything was written: the handshake comes first then.
type sealedConn struct{ *tls.Conn }

func (c sealedConn) CloseWrite() error {
	if err := c.Handshake(); err != nil {
		return err
	}
	return c.Conn.CloseWrite()
}

// relay copies src to dst and then ends dst as src has ended. raw is dst's
// socket. If dst accepts no more it may still be read from by the other
// direction.
func relay(dst io.Writer, src io.Reader, raw net.Conn) {
	from := &relayReader{r: src}
	io.Copy(relayWriter{dst}, from)
	switch {
	case errors.Is(from.err, syscall.ECONNRESET):
		raw.(*net.TCPConn).SetLinger(0)
		raw.Close()
	case from.err != nil:
		dst.(interface{ CloseWrite() error }).CloseWrite()
	}
}

// relayReader records what has ended src.
type relayReader struct {
	r   io.Reader
	err error
}

func (r *relayReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil {
		r.err = err
	}
	return n, err
}

type relayWriter struct{ io.Writer }
