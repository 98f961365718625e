package loop

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestGatePlaces(t *testing.T) {
	t.Parallel()
	g := NewGate(2, 0)
	first, second, third := g.Enter(), g.Enter(), g.Enter()
	if !first || !second || third || g.Open() != 2 {
		t.Fatal("a gate for two lets in another number")
	}
	called := 0
	g.Await(func() { called++ })
	if called != 0 {
		t.Error("called while it is full")
	}
	g.Leave("")
	g.Leave("")
	if called != 1 {
		t.Errorf("called %d times, want once", called)
	}
	g.Await(func() { called++ })
	if called != 2 {
		t.Error("not called although there is a place")
	}
	for _, max := range []int{0, -1} {
		g = NewGate(max, 0)
		for range 1000 {
			if !g.Enter() {
				t.Fatal("a gate without a limit is full")
			}
		}
	}
}

// A connection that goes on as another counts twice until the first has left.
func TestGateContinue(t *testing.T) {
	t.Parallel()
	g := NewGate(1, 1)
	const peer = "1.2.3.4:1"
	if !g.Enter() || !g.Admit(peer) {
		t.Fatal("the first was refused")
	}
	g.Continue(peer)
	g.Leave(peer)
	if g.Enter() || g.Open() != 1 {
		t.Error("it does not count")
	}
	g.Leave(peer)
	if !g.Enter() || !g.Admit(peer) {
		t.Error("it counts after it has left")
	}
}

func TestGateAddrs(t *testing.T) {
	t.Parallel()
	g := NewGate(0, 2)
	for _, tt := range []struct {
		peer string
		ok   bool
	}{
		{"1.2.3.4:1", true},
		{"1.2.3.4:2", true},
		{"1.2.3.4:3", false},
		{"1.2.3.5:3", true},
		{"[::1]:1", true},
		{"[::1]:2", true},
		{"[::1]:3", false},
		// An IPv6 client has a /64 at least.
		{"[2001:db8::1]:1", true},
		{"[2001:db8::2]:1", true},
		{"[2001:db8::3:4:5:6]:1", false},
		{"[2001:db8:0:1::3]:1", true},
		{"[fe80::1%eth0]:1", true},
		{"[fe80::2%eth1]:1", true},
		{"[fe80::3%eth0]:1", false},
		{"[::ffff:192.0.2.1]:1", true},
		{"192.0.2.1:2", true},
		{"[::ffff:192.0.2.1]:3", false},
		{"[::ffff:192.0.2.2]:1", true},
		{"@", true}, // unix sockets are not counted
		{"@", true},
		{"@", true},
		{"", true},
	} {
		if ok := g.Admit(tt.peer); ok != tt.ok {
			t.Errorf("Admit(%q) = %v", tt.peer, ok)
		}
	}
	g.Leave("1.2.3.4:2")
	if !g.Admit("1.2.3.4:9") || g.Admit("1.2.3.4:10") {
		t.Error("a place was not given back")
	}
	for _, peer := range []string{
		"1.2.3.4:1", "1.2.3.4:9", "1.2.3.5:3", "[::1]:1", "[::1]:2", "[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8:0:1::3]:1",
		"[fe80::1%eth0]:1", "[fe80::2%eth1]:1", "[::ffff:192.0.2.1]:1", "192.0.2.1:2", "[::ffff:192.0.2.2]:1",
	} {
		g.Leave(peer)
	}
	if n := g.addrs.len(); n != 0 {
		t.Errorf("%d addresses are kept", n)
	}
}

// Every waiter is notified, and there are never too many connections.
func TestGateRace(t *testing.T) {
	t.Parallel()
	const limit = 3
	g := NewGate(limit, 0)
	var inside atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			free := make(chan struct{}, 1)
			for range 300 {
				for !g.Enter() {
					g.Await(func() {
						select {
						case free <- struct{}{}:
						default:
						}
					})
					<-free
				}
				if n := inside.Add(1); n > limit {
					t.Errorf("%d are inside", n)
				}
				runtime.Gosched()
				inside.Add(-1)
				g.Leave("")
			}
		})
	}
	all.Wait()
	if g.Open() != 0 {
		t.Errorf("%d places are taken", g.Open())
	}
}

// What does not enter is never counted: another may enter meanwhile, when one has left.
func TestGateFull(t *testing.T) {
	t.Parallel()
	g := NewGate(1, 0)
	g.Enter()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 200_000 {
				if g.Enter() {
					t.Error("two have entered")
				}
			}
		})
	}
	for range 1_000_000 {
		if n := g.Open(); n != 1 {
			t.Errorf("%d are open", n)
			break
		}
	}
	all.Wait()
}

// Small limits leave each connection a second descriptor, large ones a part of them.
func TestPlacesOfLimit(t *testing.T) {
	for _, tt := range []struct{ files, want int }{
		{20, 16},
		{1024, 448},
		{65536, 30688},
		{1 << 20, 978_880}, // fs.nr_open
	} {
		if got := connsOf(tt.files); got != tt.want {
			t.Errorf("%d files: %d connections, want %d", tt.files, got, tt.want)
		}
	}
}

// len returns how many addresses have a connection.
func (a *addrs) len() (n int) {
	for i := range a.shards {
		s := &a.shards[i]
		s.mu.Lock()
		n += len(s.count)
		s.mu.Unlock()
	}
	return n
}
