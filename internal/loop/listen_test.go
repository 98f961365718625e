//go:build linux || darwin

package loop

import (
	"net"
	"testing"

	"github.com/chert-http/chert/internal/sys"
)

// A listener whose pause ends after Close, and before its last turn, keeps no descriptor in reserve.
func TestPauseOfClosed(t *testing.T) {
	t.Parallel()
	l := turns(t)
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	fd := -1
	raw.Control(func(own uintptr) { fd, err = sys.Dup(int(own)) })
	if tcp.Close(); err != nil {
		t.Fatal(err)
	}
	a := &Accept{Gate: NewGate(1, 0), Log: t.Logf}
	a.Gate.Enter()
	ln, err := l.Listen(fd, a)
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for !ln.paused {
		l.mustTurn(t)
	}
	ends := 0
	ln.Close(func() { ends++ })
	ln.full -= 2 * pauseFor
	if ln.Expire(); ends != 1 || a.reserve >= 0 {
		t.Errorf("ended %d times, reserve %d", ends, a.reserve)
	}
}
