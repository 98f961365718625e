package freeport

import (
	"net"
	"runtime"
	"testing"
)

func TestReserve(t *testing.T) {
	t.Parallel()
	addr, release, err := Reserve("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	// A server listens there, ends, and another follows, as after a restart.
	for range 2 {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		l.Close()
	}
	release()
	release() // again does nothing
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// No caller that asks for any port is given one that is reserved: of 127.0.0.0/8 this host is only
// this test's, so all its ports can be taken.
func TestReserveKeeps(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("ports are reserved on Linux only")
	}
	const host = "127.91.17.3"
	kept := map[string]bool{}
	for range 500 {
		addr, release, err := Reserve(host)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if kept[addr] {
			t.Fatalf("%s is reserved twice", addr)
		}
		kept[addr] = true
	}
	for range 500 {
		l, err := net.Listen("tcp", host+":0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if kept[l.Addr().String()] {
			t.Fatalf("%s is reserved, and a listener was given it", l.Addr())
		}
	}
}

// A server of HTTP/3 gets both ports, and no two are given the same.
func TestBoth(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 200 {
		addr := Both(t)
		if seen[addr] {
			t.Fatalf("%s was returned before", addr)
		}
		seen[addr] = true
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		u, err := net.ListenPacket("udp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
	}
}

// A port that either has is passed over.
func TestBothTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for _, port := range []int{l.Addr().(*net.TCPAddr).Port, u.LocalAddr().(*net.UDPAddr).Port} {
		if free(net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}) == nil {
			t.Errorf("%d is free", port)
		}
	}
}

func TestReserveNoAddress(t *testing.T) {
	t.Parallel()
	if addr, _, err := Reserve("192.0.2.1"); err == nil {
		t.Fatalf("reserved %s, which is not this machine's", addr)
	}
}
