package http3_test

import (
	"math/rand"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// badPath is a way to a server that loses, repeats and reorders datagrams in both directions, and on which clients get
// other addresses from time to time, as behind a NAT.
type badPath struct {
	front *net.UDPConn // clients send to it
	to    *net.UDPAddr
	all   sync.WaitGroup // goroutines, and datagrams that are kept

	mu     sync.Mutex
	rnd    *rand.Rand
	bad    int                             // of a hundred datagrams so many are lost, twice that come twice or late
	behind map[netip.AddrPort]*net.UDPConn // to the server, by client
	muted  bool                            // what the server sends is lost
	closed bool
}

func newBadPath(t testing.TB, to string, seed int64, bad int) *badPath {
	t.Helper()
	addr, err := net.ResolveUDPAddr("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	p := &badPath{front: front, to: addr, rnd: rand.New(rand.NewSource(seed)), bad: bad, behind: make(map[netip.AddrPort]*net.UDPConn)}
	p.all.Go(func() {
		var b [2048]byte
		for {
			n, from, err := front.ReadFromUDPAddrPort(b[:])
			if err != nil {
				return
			}
			if c := p.socket(from); c != nil {
				p.carry(b[:n], func(b []byte) { c.Write(b) })
			}
		}
	})
	return p
}

// socket is what the server has for a client.
func (p *badPath) socket(from netip.AddrPort) *net.UDPConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.behind[from]
	if c != nil || p.closed {
		return c
	}
	c, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, p.to)
	if err != nil {
		return nil // as if the datagram were lost
	}
	p.behind[from] = c
	p.all.Go(func() {
		var b [2048]byte
		for {
			n, err := c.Read(b[:])
			if err != nil {
				return // rebind or close
			}
			if !p.mutes() {
				p.carry(b[:n], func(b []byte) { p.front.WriteToUDPAddrPort(b, from) })
			}
		}
	})
	return c
}

// carry sends a datagram, or not, or twice, or later.
func (p *badPath) carry(b []byte, send func(b []byte)) {
	p.mu.Lock()
	what, wait, bad := p.rnd.Intn(100), time.Duration(p.rnd.Intn(5000))*time.Microsecond, p.bad
	late := what >= bad && what < 3*bad && !p.closed
	if late {
		p.all.Add(1)
	}
	p.mu.Unlock()
	switch {
	case what < bad:
		return
	case late:
		kept := append([]byte(nil), b...)
		time.AfterFunc(wait, func() {
			defer p.all.Done()
			send(kept)
		})
		if what%2 == 0 {
			return
		}
	}
	send(b)
}

func (p *badPath) mutes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.muted
}

// mute has what the server sends be lost, or not any more.
func (p *badPath) mute(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.muted = on
}

// rebind gives all clients other addresses.
func (p *badPath) rebind() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for from, c := range p.behind {
		c.Close()
		delete(p.behind, from)
	}
}

// block loses everything from now on.
func (p *badPath) block() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bad = 100
}

func (p *badPath) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.front.Close()
	p.rebind()
	p.all.Wait()
}
