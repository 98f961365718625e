package peer

import (
	"net/netip"
	"testing"
)

func TestNetwork(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"192.0.2.7":              "192.0.2.7",
		"::ffff:192.0.2.7":       "192.0.2.7",
		"2001:db8:1:2:3:4:5:6":   "2001:db8:1:2::",
		"2001:db8:1:2::":         "2001:db8:1:2::",
		"fe80::1%eth0":           "fe80::",
		"2001:db8:1:3:3:4:5:6":   "2001:db8:1:3::",
		"::ffff:192.0.2.7%zone0": "192.0.2.7",
	} {
		if a := Network(netip.MustParseAddr(in)); a.String() != want {
			t.Errorf("Network(%s) is %s, not %s", in, a, want)
		}
	}
	if a := Network(netip.Addr{}); a.IsValid() {
		t.Errorf("Network of no address is %s", a)
	}
}
