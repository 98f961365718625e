package middleware

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
)

func prefixes(s string) (all []netip.Prefix) {
	for p := range strings.FieldsSeq(s) {
		all = append(all, netip.MustParsePrefix(p))
	}
	return all
}

func TestIPFilter(t *testing.T) {
	for _, tt := range []struct {
		allow, deny           string
		allowLocal, denyLocal bool
		admitted, refused     string
	}{
		{"", "", false, false, "192.0.2.1:1 [::1]:1 @ nonsense", ""},
		{"192.0.2.0/24", "", false, false, "192.0.2.1:1 192.0.2.255 [::ffff:192.0.2.9]:1", "192.0.3.1:1 [::1]:1 @ /run/s nonsense 192.0.2.1:x"},
		{"::ffff:192.0.2.0/120", "", false, false, "192.0.2.1:1", "192.0.3.1:1"},
		{"", "192.0.2.0/24 fe80::/10", false, false, "192.0.3.1:1 [2001:db8::1]:1 @", "192.0.2.1:1 [::ffff:192.0.2.1]:1 [fe80::1%eth0]:1 [fe80::1]:1 nonsense"},
		{"192.0.0.0/16", "192.0.2.1/32", false, false, "192.0.2.2:1", "192.0.2.1:1 198.51.100.1:1"},
		{"fe80::/10", "", false, false, "[fe80::1%eth0]:1", "[fd00::1]:1"},
		{"", "", true, false, "@ @name /run/s", "192.0.2.1:1 [::1]:1"},
		{"", "", false, true, "192.0.2.1:1", "@"},
		{"192.0.2.0/24", "", true, true, "192.0.2.1:1", "@ 192.0.3.1:1"},
		{"0.0.0.0/0 ::/0", "", false, false, "192.0.2.1:1 [::1]:1", "@"},
		{"", "0.0.0.0/0 ::/0", false, true, "", "192.0.2.1:1 [::1]:1 [::ffff:1.2.3.4]:1 @"},
		{"0.0.0.0/0", "", false, false, "192.0.2.1:1", "[::1]:1"},
	} {
		mw := Must(IPFilter(&IPFilterOptions{Allow: prefixes(tt.allow), Deny: prefixes(tt.deny), AllowLocal: tt.allowLocal, DenyLocal: tt.denyLocal}))
		ways(t, mw, hello, func(t *testing.T, do func(r *http.Request) answer) {
			for status, all := range map[int]string{200: tt.admitted, 403: tt.refused} {
				for addr := range strings.FieldsSeq(all) {
					r := request("GET", "/", "")
					r.RemoteAddr = addr
					if a := do(r); a.Status != status {
						t.Errorf("%+v: %s: %d", tt, addr, a.Status)
					}
				}
			}
		})
	}
}

// It decides by the address that RealIP has found.
func TestAccessBehindProxy(t *testing.T) {
	mw := func(h http.Handler) http.Handler {
		return Chain(h, Must(RealIP(&RealIPOptions{Trusted: prefixes("10.0.0.0/8")})), Must(IPFilter(&IPFilterOptions{Allow: prefixes("192.0.2.0/24")})))
	}
	ways(t, mw, hello, func(t *testing.T, do func(r *http.Request) answer) {
		for _, tt := range []struct {
			peer, forwarded string
			status          int
		}{
			{"10.0.0.1:1", "192.0.2.1", 200},
			{"10.0.0.1:1", "192.0.2.1, 198.51.100.1", 403}, // the client has written the first
			{"198.51.100.1:1", "192.0.2.1", 403},
			{"192.0.2.1:1", "198.51.100.1", 200},
		} {
			r := request("GET", "/", "", "X-Forwarded-For", tt.forwarded)
			r.RemoteAddr = tt.peer
			if a := do(r); a.Status != tt.status {
				t.Errorf("%+v: %d", tt, a.Status)
			}
		}
	})
}

func TestAccessErrors(t *testing.T) {
	t.Parallel()
	for _, p := range []netip.Prefix{{}, netip.MustParsePrefix("::ffff:0.0.0.0/90")} {
		mw, err := IPFilter(&IPFilterOptions{Allow: []netip.Prefix{p}})
		refused(t, mw, err, "middleware: IPFilter: Allow: ")
		mw, err = IPFilter(&IPFilterOptions{Deny: []netip.Prefix{p}})
		refused(t, mw, err, "middleware: IPFilter: Deny: ")
	}
}

func TestAccessAllocates(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	h := Must(IPFilter(&IPFilterOptions{Allow: prefixes("192.0.2.0/24 2001:db8::/32")}))(direct.NewResponse(200, nil, nil)).(direct.Handler)
	var x direct.Exchange
	for _, addr := range []string{"192.0.2.1:1234", "[2001:db8::1]:1234", "198.51.100.1:1"} {
		r := wire.Request{Method: "GET", Target: []byte("/"), Path: []byte("/"), RemoteAddr: addr, Fields: wire.FieldsOf(nil)}
		if n := testing.AllocsPerRun(100, func() {
			x.Wire().Reset(r)
			h.ServeDirect(&x)
		}); n != 0 {
			t.Errorf("%s: %v allocations", addr, n)
		}
	}
}
