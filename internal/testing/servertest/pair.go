package servertest

import (
	"net"
	"syscall"
	"testing"
)

// TCPConns returns two connected TCP connections.
func TCPConns(t testing.TB) (a, b *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return s.(*net.TCPConn), nc.(*net.TCPConn)
}

// ListenTCP opens a port of the loopback.
func ListenTCP(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// ListenSmall is ListenTCP with small send buffers of the accepted connections,
// so that writes are partial.
func ListenSmall(t testing.TB, size int) net.Listener {
	t.Helper()
	lc := net.ListenConfig{Control: SetBuffer(syscall.SO_SNDBUF, size)}
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// UseTCP opens the descriptors that the runtime keeps after the first
// connection.
func UseTCP() {
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
	}
}

// Small makes the receive buffer of nc small, and returns a suitable size for
// its peer's send buffer. With TCP both must hold several segments, which are
// large on the loopback: otherwise each waits for a timer.
func Small(nc net.Conn) (peer int) {
	switch nc := nc.(type) {
	case *net.TCPConn:
		nc.SetReadBuffer(128 << 10)
		return 64 << 10
	case *net.UnixConn:
		nc.SetReadBuffer(4 << 10)
	}
	return 4 << 10
}
