package behave

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/freeport"
)

// A connection that arrives between Listen and Serve inherits the options that
// the listening socket had then.
func TestListenSetsOptionsAtOnce(t *testing.T) {
	t.Parallel()
	l, err := new(chert.Server).Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := l.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for name, opt := range map[string][2]int{
		"TCP_NODELAY":  {syscall.IPPROTO_TCP, syscall.TCP_NODELAY},
		"SO_KEEPALIVE": {syscall.SOL_SOCKET, syscall.SO_KEEPALIVE},
		"SO_REUSEPORT": {syscall.SOL_SOCKET, 15},
	} {
		var v int
		if err := raw.Control(func(fd uintptr) { v, err = syscall.GetsockoptInt(int(fd), opt[0], opt[1]) }); err != nil {
			t.Fatal(err)
		}
		if v == 0 {
			t.Errorf("%s is not set", name)
		}
	}
}

// A connection that is established while Listen opens its socket is served: that
// socket must not give way to another, or clients that wait for a server to start
// have their first connections reset.
func TestListenServesEarlyConnections(t *testing.T) {
	t.Parallel()
	for range 100 {
		addr := freeport.Addr(t)
		ctx, cancel := context.WithCancel(t.Context())
		const dialers = 4
		ends := make(chan error, dialers)
		for range dialers {
			go func() { ends <- dialEarly(ctx, addr) }()
		}
		s := &chert.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) })}
		l, err := s.Listen("tcp", addr)
		served := make(chan error, 1)
		if err == nil {
			go func() { served <- s.Serve(l) }()
		} else {
			t.Error(err)
			cancel()
			served <- err
		}
		for range dialers {
			if end := <-ends; end != nil && err == nil {
				t.Error(end)
			}
		}
		cancel()
		s.Close()
		<-served
	}
}

// dialEarly connects as soon as the port is open, and sends a request.
func dialEarly(ctx context.Context, addr string) error {
	// From an address of its own, or it might connect to itself.
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	nc, err := d.DialContext(ctx, "tcp", addr)
	for errors.Is(err, syscall.ECONNREFUSED) {
		nc, err = d.DialContext(ctx, "tcp", addr)
	}
	if err != nil {
		return err
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	if _, err := io.WriteString(nc, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	if b, err := io.ReadAll(nc); err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 204 ") {
		return fmt.Errorf("%q, %w", b, err)
	}
	return nil
}
