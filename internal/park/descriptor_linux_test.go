package park

import (
	"net"
	"syscall"
	"testing"

	"github.com/chert-http/chert/internal/testing/servertest"
)

func descriptor(raw syscall.RawConn) (fd uintptr) {
	raw.Control(func(n uintptr) { fd = n })
	return fd
}

// TestDescriptorOfAnother: a parked connection is closed, and another one that gets its
// descriptor is parked before that is noticed.
func TestDescriptorOfAnother(t *testing.T) {
	l := servertest.ListenTCP(t)
	defer l.Close()
	connect := func() (nc *net.TCPConn, peer net.Conn) {
		dialled, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if peer, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			dialled.Close()
			peer.Close()
		})
		return dialled.(*net.TCPConn), peer
	}
	for range 100 { // other tests open descriptors too
		closed, _ := connect()
		raw := socket(t, closed)
		was := descriptor(raw)
		calls := make(chan string, 2)
		if err := Park(raw, false, func() { calls <- outcome(closed) }); err != nil {
			t.Fatal(err)
		}
		closed.Close()
		nc, peer := connect()
		raw = socket(t, nc)
		if descriptor(raw) != was {
			continue
		}
		got := make(chan string, 2)
		if err := Park(raw, false, func() { got <- outcome(nc) }); err != nil {
			t.Fatal(err)
		}
		if got := servertest.Await(t, calls, "the call for the closed one"); got != "closed" {
			t.Errorf("Read returned %q", got)
		}
		// It is parked still.
		peer.Write([]byte("x"))
		if got := servertest.Await(t, got, "a call"); got != "x" {
			t.Errorf("Read returned %q", got)
		}
		return
	}
	t.Fatal("no descriptor has come again")
}

// TestDuplicate: a parked connection is closed while its socket has a duplicate, and one with
// its descriptor and the same socket is parked.
func TestDuplicate(t *testing.T) {
	t.Parallel()
	for range 100 { // other tests open descriptors too
		closed, peer, raw := pair(t)
		was := descriptor(raw)
		calls := make(chan string, 2)
		if err := Park(raw, false, func() { calls <- outcome(closed) }); err != nil {
			t.Fatal(err)
		}
		f, err := closed.File()
		if err != nil {
			t.Fatal(err)
		}
		closed.Close()
		nc, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if raw = socket(t, nc.(*net.TCPConn)); descriptor(raw) != was {
			continue
		}
		got := make(chan string, 2)
		if err := Park(raw, false, func() { got <- outcome(nc) }); err != nil {
			t.Fatal(err)
		}
		if err := Park(raw, false, func() { t.Error("called") }); err != ErrParked {
			t.Errorf("again: got %v", err)
		}
		if got := servertest.Await(t, calls, "the call for the closed one"); got != "closed" {
			t.Errorf("Read returned %q", got)
		}
		peer.Write([]byte("x"))
		if got := servertest.Await(t, got, "a call"); got != "x" {
			t.Errorf("Read returned %q", got)
		}
		return
	}
	t.Fatal("no descriptor has come again")
}
