package wire

import "testing"

func TestPeer(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::1", "[::ffff:192.0.2.1]:80": "::ffff:192.0.2.1",
		"[fe80::1%eth0]:80": "", "[2001:DB8::1]:80": "", "192.0.2.1:080": "", "192.0.2.1": "", "2001:db8::1": "", "": "", "@": "", "/run/x:80": "", "a b:80": "",
		"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	} {
		p := PeerOf(addr)
		var x Exchange
		x.Reset(Request{RemoteAddr: addr, Peer: &p})
		if got := x.PeerIP(); got != want {
			t.Errorf("%q: got %q, want %q", addr, got, want)
		}
		// Another address is not parsed, until the first is set again.
		x.SetRemoteAddr("192.0.2.3:80")
		x.SetRemoteAddr("192.0.2.2:80")
		if got := x.PeerIP(); got != "" || x.RemoteAddr() != "192.0.2.2:80" {
			t.Errorf("%q, then another: got %q", addr, got)
		}
		if x.ResetRemoteAddr(); x.PeerIP() != want || x.RemoteAddr() != addr {
			t.Errorf("%q again: got %q", addr, x.PeerIP())
		}
	}
	var x Exchange
	x.Reset(Request{RemoteAddr: "192.0.2.1:80"})
	if got := x.PeerIP(); got != "" {
		t.Errorf("without an address: %q", got)
	}
}
