package freeport

import (
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
)

// Ports of Both: systems give those of 32768 and above, on Linux, or 49152, to sockets for which any
// will do.
const lowest, ports = 10_000, 32_768 - lowest

// next is where Both goes on. Processes begin at different places.
var next atomic.Uint32

func init() { next.Store(rand.Uint32()) }

// Both returns an address of 127.0.0.1 whose port is free for TCP and UDP, for a server of HTTP/3. With
// port 0 such a server is given one by TCP, which some client may have as its own for UDP. No client is
// given this one, and Both returns it once only. It is safe for concurrent use.
func Both(t testing.TB) string {
	t.Helper()
	var err error
	for range 100 {
		at := net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: lowest + int(next.Add(1)%ports)}
		if err = free(at); err == nil {
			return at.String()
		}
	}
	t.Fatal(err)
	return ""
}

// free reports why a port cannot be had.
func free(at net.TCPAddr) error {
	l, err := net.ListenTCP("tcp", &at)
	if err != nil {
		return err
	}
	defer l.Close()
	u, err := net.ListenUDP("udp", &net.UDPAddr{IP: at.IP, Port: at.Port})
	if err == nil {
		u.Close()
	}
	return err
}
