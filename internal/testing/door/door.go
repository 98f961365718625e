package door

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A Door passes connections to a server. Its methods are safe for concurrent use.
type Door struct {
	Addr string

	wait  time.Duration // of each connection before it is carried
	l     net.Listener
	mu    sync.Mutex
	to    string
	most  int64 // bytes that a connection carries from the server; 0 for no limit
	shut  bool
	conns map[net.Conn]bool
	all   sync.WaitGroup
}

// Open opens a door to an address, until the test ends.
func Open(t testing.TB, to string) *Door {
	t.Helper()
	return OpenSlow(t, to, 0)
}

// OpenSlow is Open with a wait before a connection carries anything, as TLS over a long way or
// a login at a busy server makes it.
func OpenSlow(t testing.TB, to string, wait time.Duration) *Door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &Door{Addr: l.Addr().String(), wait: wait, l: l, to: to, conns: make(map[net.Conn]bool)}
	d.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.all.Go(func() { d.carry(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		d.Shut(true)
		d.all.Wait()
	})
	return d
}

// keep reports whether the connection may go on.
func (d *Door) keep(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns[c] = true
	return !d.shut
}

func (d *Door) drop(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
	c.Close()
}

func (d *Door) carry(c net.Conn) {
	defer d.drop(c)
	if !d.keep(c) {
		return
	}
	time.Sleep(d.wait) // it is what this is for
	d.mu.Lock()
	to, most := d.to, d.most
	d.mu.Unlock()
	up, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer d.drop(up)
	if !d.keep(up) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		if most > 0 {
			io.CopyN(c, up, most)
		} else {
			io.Copy(c, up)
		}
		c.Close()
	})
	io.Copy(up, c)
	up.Close()
	back.Wait()
}

// Cut ends all connections.
func (d *Door) Cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		c.Close()
	}
}

// Shut ends all connections and lets no others through, until Shut(false).
func (d *Door) Shut(shut bool) {
	d.mu.Lock()
	d.shut = shut
	d.mu.Unlock()
	if shut {
		d.Cut()
	}
}

// Limit ends each later connection when it has carried so many bytes from the server, as if more took too long.
func (d *Door) Limit(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.most = bytes
}

// To ends all connections and leads new ones to another server.
func (d *Door) To(addr string) {
	d.mu.Lock()
	d.to = addr
	d.mu.Unlock()
	d.Cut()
}
