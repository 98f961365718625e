package proxy

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// TestLost: a server that is gone is noticed by the system, and not by PINGs.
func TestLost(t *testing.T) {
	t.Parallel()
	if d := newH2(&link{}, &UpstreamOptions{}).transport.HTTP2.SendPingTimeout; d != 0 {
		t.Errorf("PINGs every %v", d)
	}
	l := servertest.ListenTCP(t)
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	limitLost(nc)
	raw, err := nc.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		if n, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); n != 30_000 || err != nil {
			t.Error(n, err)
		}
	})
}
