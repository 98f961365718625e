package sys

import (
	"net"
	"testing"
	"time"
)

// A reset ends a connection, and the peer's end alone does not.
func TestHangup(t *testing.T) {
	t.Parallel()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.DialTCP("tcp", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	nc, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(90 * time.Second))
	raw, err := nc.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	ended := func() (yes bool) {
		raw.Control(func(fd uintptr) { yes = Hangup(int(fd)) })
		return yes
	}
	if ended() {
		t.Error("a connection that is open has ended")
	}
	peer.CloseWrite()
	var b [1]byte
	if n, err := nc.Read(b[:]); n != 0 || err == nil {
		t.Fatalf("read %d bytes, %v; want the peer's end", n, err)
	}
	if ended() {
		t.Error("a connection ends with the peer's end")
	}
	peer.SetLinger(0)
	peer.Close()
	if err := raw.Read(func(fd uintptr) bool { return Hangup(int(fd)) }); err != nil {
		t.Errorf("a reset is not seen: %v", err)
	}
}
