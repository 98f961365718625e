package loop

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/chert-http/chert/internal/sys"
)

// A Gate bounds how many connections are open, over all loops and listeners
// of a server. One that user code has hijacked does not count. Safe for concurrent use.
type Gate struct {
	max  int64
	open atomic.Int64

	waiting atomic.Bool // waiters is not empty
	mu      sync.Mutex
	waiters []func()
	addrs   *addrs // connections per client address; nil when not limited
}

// DefaultConns returns how many connections the limit of open files allows. Some
// descriptors are reserved for the process, and a sixteenth, up to 4096, for files
// that are kept open (package static's default). A connection may need a second
// descriptor while a request is handled, or its answer is on its way: a file, a connection to
// another server, for a moment the duplicate that Hijack returns. (Pipes of splice are at most
// 64.) So half of the rest is for those, and no more than seconds: of a million connections
// most are idle.
func DefaultConns() int { return connsOf(sys.MaxFiles()) }

// seconds is how many connections may need a second descriptor at a time.
const seconds = 64 << 10

func connsOf(files int) int {
	free := files - 64 - min(files/16, 4096)
	return max(free-min(free/2, seconds), 16)
}

// NewGate makes a gate for max connections, and at most perAddr of one client
// address. 0 or less means no limit.
func NewGate(max, perAddr int) *Gate {
	g := &Gate{max: int64(max)}
	if max <= 0 {
		g.max = 1<<63 - 1
	}
	if perAddr > 0 {
		g.addrs = newAddrs(perAddr)
	}
	return g
}

// Enter reserves room for a connection and reports whether there was any.
func (g *Gate) Enter() bool {
	for {
		n := g.open.Load()
		if n >= g.max {
			return false
		}
		if g.open.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Admit counts a connection of the given peer, which has entered, and reports
// whether its address may have one more. If not, the caller calls Leave with
// an empty peer.
func (g *Gate) Admit(peer string) bool {
	host := g.host(peer)
	return host == "" || g.addrs.add(host, true)
}

// PerAddr reports whether it matters to Leave which peer leaves.
func (g *Gate) PerAddr() bool { return g.addrs != nil }

// Continue counts a connection beyond the limits: one that has been admitted, leaves, and
// goes on as another for which the caller calls Leave.
func (g *Gate) Continue(peer string) {
	g.open.Add(1)
	if host := g.host(peer); host != "" {
		g.addrs.add(host, false)
	}
}

// Leave releases a connection's room. peer is what Admit was called with, "" if
// it was not called or refused.
func (g *Gate) Leave(peer string) {
	if host := g.host(peer); host != "" {
		g.addrs.remove(host)
	}
	g.open.Add(-1)
	if g.waiting.Load() {
		g.wakeAll()
	}
}

// Await calls fn once, from any goroutine, when there may be room.
func (g *Gate) Await(fn func()) {
	g.mu.Lock()
	g.waiters = append(g.waiters, fn)
	g.waiting.Store(true)
	g.mu.Unlock()
	// Room may have become free between the caller's Enter and here.
	if g.open.Load() < g.max {
		g.wakeAll()
	}
}

// Crowded reports whether three quarters of the connections that may be are open.
func (g *Gate) Crowded() bool { return g.open.Load() > g.max/4*3 }

// Max is how many connections may be open.
func (g *Gate) Max() int64 { return g.max }

// Open returns how many connections are open.
func (g *Gate) Open() int { return int(g.open.Load()) }

func (g *Gate) wakeAll() {
	g.mu.Lock()
	fns := g.waiters
	g.waiters = nil
	g.waiting.Store(false)
	g.mu.Unlock()
	for _, fn := range fns {
		fn()
	}
}

// host returns Host of a peer that is counted, "" if there is no limit.
func (g *Gate) host(peer string) string {
	if g.addrs == nil {
		return ""
	}
	return Host(peer)
}

// Host returns a peer's address without its port, or the /64 of an IPv6 address, which is
// the least that a client has; "" for unix sockets, whose peers have no address.
func Host(peer string) string {
	if peer == "" || peer == "@" {
		return ""
	}
	host, _, err := net.SplitHostPort(peer)
	if err != nil {
		return peer
	}
	if a, err := netip.ParseAddr(host); err == nil && a.Is4In6() {
		return a.Unmap().String()
	} else if err == nil && a.Is6() {
		net, _ := a.WithZone("").Prefix(64)
		return net.String()
	}
	return host
}
