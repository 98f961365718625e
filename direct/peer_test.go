package direct

import (
	"strings"
	"testing"
)

func TestPeer(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::1", "[::ffff:192.0.2.1]:80": "::ffff:192.0.2.1",
		"[fe80::1%eth0]:80": "", "[2001:DB8::1]:80": "", "192.0.2.1:080": "", "192.0.2.1": "", "2001:db8::1": "", "": "", "@": "", "/run/x:80": "", "a b:80": "",
		"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	} {
		p := PeerOf(addr)
		r := Request{RemoteAddr: addr, Peer: &p}
		if got := r.PeerIP(); got != want {
			t.Errorf("%q: got %q, want %q", addr, got, want)
		}
		// Who sets RemoteAddr need not know of Peer.
		for _, other := range []string{"192.0.2.2:80", "", strings.Clone(addr) + "0"} {
			r.RemoteAddr = other
			if got := r.PeerIP(); got != "" && other != addr {
				t.Errorf("%q, then %q: got %q", addr, other, got)
			}
		}
	}
	r := Request{RemoteAddr: "192.0.2.1:80"}
	if got := r.PeerIP(); got != "" {
		t.Errorf("of nobody: %q", got)
	}
}
