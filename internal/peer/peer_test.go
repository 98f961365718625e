package peer

import (
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"unsafe"
)

func TestPeer(t *testing.T) {
	t.Parallel()
	for text, ip := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "0.0.0.0:0": "0.0.0.0", "255.255.255.255:65535": "255.255.255.255",
		"[2001:db8::1]:80": "2001:db8::1", "[::]:1": "::", "[::ffff:192.0.2.1]:80": "::ffff:192.0.2.1",
		"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		"[fe80::1%eth0]:80": "", "[2001:DB8::1]:80": "", "192.0.2.1:080": "", "192.0.2.1": "", "2001:db8::1": "",
		"": "", "@": "", "/run/x:80": "", "a b:80": "", "a": "",
	} {
		var a Addr
		a.Set(text)
		for range 3 {
			if p := a.Peer(); p != (Peer{text, ip}) || p != Parse(text) {
				t.Errorf("%q: %q, of which %q is the address", text, p.RemoteAddr, p.IP)
			}
			a.Forget()
		}
		var want net.Addr = &net.UnixAddr{Name: text, Net: "unix"}
		if ap, err := netip.ParseAddrPort(text); err == nil {
			want = net.TCPAddrFromAddrPort(ap)
		}
		if got := a.Net(); got.Network() != want.Network() || got.String() != want.String() {
			t.Errorf("%q: %v of %s, not %v", text, got, got.Network(), want)
		}
	}
}

// A text may be forgotten at any time, and stays with those that have asked for it.
func TestForget(t *testing.T) {
	t.Parallel()
	const text = "[2001:db8::1]:80"
	var a Addr
	a.Set(text)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 2000 {
				p := a.Peer()
				if a.Forget(); i%500 == 0 {
					runtime.GC()
				}
				if p != (Peer{text, "2001:db8::1"}) {
					t.Errorf("got %+v", p)
				}
			}
		})
	}
	all.Wait()
}

func TestAllocs(t *testing.T) {
	var a Addr
	for _, text := range []string{"192.0.2.1:80", "[2001:db8::1]:80"} {
		if n := testing.AllocsPerRun(100, func() { a.Set(text); a.Peer() }); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
		if n := testing.AllocsPerRun(100, func() { a.Forget(); a.Peer() }); n != 1 {
			t.Errorf("%s, forgotten: %v allocations", text, n)
		}
	}
	if n := unsafe.Sizeof(a); n != 32 {
		t.Errorf("an Addr has %d bytes", n)
	}
}

func BenchmarkPeer(b *testing.B) {
	var a Addr
	a.Set("192.0.2.1:40000")
	b.Run("known", func(b *testing.B) {
		for b.Loop() {
			a.Peer()
		}
	})
	b.Run("forgotten", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			a.Forget()
			a.Peer()
		}
	})
	b.Run("parsed", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			a.Set("192.0.2.1:40000")
		}
	})
}

func TestPeerAddr(t *testing.T) {
	own := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}
	for _, tt := range []struct {
		text string
		of   net.Addr
		want string // with its network
		same bool
	}{
		{"192.0.2.1:80", own, "tcp 192.0.2.1:80", true},
		{"", own, "tcp 192.0.2.1:80", true}, // not known yet
		{"198.51.100.7:1234", own, "tcp 198.51.100.7:1234", false},
		{"[2001:db8::1]:9", own, "tcp [2001:db8::1]:9", false},
		{"@", &net.UnixAddr{Name: "@", Net: "unix"}, "unix @", true},
		{"198.51.100.7:1234", &net.UnixAddr{Name: "@", Net: "unix"}, "tcp 198.51.100.7:1234", false},
		{"a name", nil, "unix a name", false},
	} {
		got := Parse(tt.text).Addr(tt.of)
		if s := got.Network() + " " + got.String(); s != tt.want || (got == tt.of) != tt.same {
			t.Errorf("%q of %v: %s, want %s", tt.text, tt.of, s, tt.want)
		}
	}
}
