package main

import (
	"net"
	"strconv"
	"strings"
	"testing"
)

func TestParseEndpoint(t *testing.T) {
	t.Parallel()
	// What it refuses is in TestUsageErrors.
	for s, want := range map[string]endpoint{
		":8080":                     {network: "tcp", address: ":8080"},
		"127.0.0.1:0":               {network: "tcp", address: "127.0.0.1:0"},
		"[::1]:80":                  {network: "tcp", address: "[::1]:80"},
		"localhost:65535":           {network: "tcp", address: "localhost:65535"},
		"unix:/run/s":               {network: "unix", address: "/run/s"},
		"unix:s":                    {network: "unix", address: "s"},
		"unix:s?mode=0660":          {network: "unix", address: "s", access: access{mode: 0o660}},
		"unix:s?group=www-data":     {network: "unix", address: "s", access: access{group: "www-data"}},
		"unix:s?mode=0222&group=33": {network: "unix", address: "s", access: access{mode: 0o222, group: "33"}},
		"unix:./@s":                 {network: "unix", address: "./@s"},
	} {
		got, err := parseEndpoint(s)
		if err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", s, got, err, want)
		}
		if got.String() != s && !got.bare {
			t.Errorf("%s prints as %s", s, got)
		}
	}
}

// A port without a host listens on this machine only.
func TestBarePort(t *testing.T) {
	t.Parallel()
	e, err := parseEndpoint("9000")
	if want := (endpoint{network: "tcp", address: "127.0.0.1:9000", bare: true}); err != nil || e != want {
		t.Errorf("%+v %v, want %+v", e, err, want)
	}
	const hint = " (this machine only; --listen :9000 opens it to the network)"
	for _, tt := range []struct {
		all    []endpoint
		chosen bool
		want   string
	}{
		{[]endpoint{e}, true, hint},
		{[]endpoint{e, {network: "unix", address: "s"}}, true, ""},
		{[]endpoint{{network: "tcp", address: "127.0.0.1:9000"}}, true, ""},
		{[]endpoint{{network: "tcp", address: "127.0.0.1:9000"}}, false, hint},
	} {
		if got := opensHint(tt.all, tt.chosen); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.all, got, tt.want)
		}
	}
}

// Platforms that set a port connect from outside.
func TestPortOfEnvironment(t *testing.T) {
	given := runFlags{listen: endpoints{{network: "tcp", address: "127.0.0.1:1"}}}
	for port, want := range map[string]endpoint{
		"3000": {network: "tcp", address: ":3000"}, "": defaultListen, "0": defaultListen, "tcp://10.0.0.1:80": defaultListen,
	} {
		t.Setenv("PORT", port)
		if all, chosen := new(runFlags).addresses(); len(all) != 1 || all[0] != want || chosen == (want == defaultListen) {
			t.Errorf("$PORT %q: %v %v, want %v", port, all, chosen, want)
		} else if hint, ignored := opensHint(all, chosen), "PORT="+strconv.Quote(port); strings.Contains(hint, ignored) !=
			(port != "" && want == defaultListen) {
			t.Errorf("$PORT %q: %q", port, hint)
		}
		if all, chosen := given.addresses(); all[0] != given.listen[0] || !chosen {
			t.Errorf("$PORT %q goes before --listen: %v", port, all)
		}
	}
}

func TestNetworkLine(t *testing.T) {
	t.Parallel()
	network := func(all ...string) func() ([]net.Addr, error) {
		return func() (addrs []net.Addr, err error) {
			for _, s := range all {
				ip, n, err := net.ParseCIDR(s)
				if err != nil {
					return nil, err
				}
				addrs = append(addrs, &net.IPNet{IP: ip, Mask: n.Mask})
			}
			return addrs, nil
		}
	}
	at := func(ip string) listener {
		return listener{Listener: address{&net.TCPAddr{IP: net.ParseIP(ip), Port: 8080}}}
	}
	both := network("127.0.0.1/8", "::1/128", "192.168.1.5/24", "fe80::1/64", "2001:db8::5/64", "10.1.2.3/8")
	for _, tt := range []struct {
		name       string
		ls         []listener
		interfaces func() ([]net.Addr, error)
		want       string
	}{
		{"every address", []listener{at("::")}, both, "\nchert: in the network: http://192.168.1.5:8080/ and http://10.1.2.3:8080/"},
		{"of IPv4", []listener{at("0.0.0.0")}, both, "\nchert: in the network: http://192.168.1.5:8080/ and http://10.1.2.3:8080/"},
		{"IPv6 alone", []listener{at("::")}, network("::1/128", "2001:db8::5/64"), "\nchert: in the network: http://[2001:db8::5]:8080/"},
		{"this machine only", []listener{at("127.0.0.1"), at("::1")}, both, ""},
		{"an address", []listener{at("192.168.1.5")}, both, ""}, // the start line has it
		{"a socket", []listener{{Listener: address{&net.UnixAddr{Name: "s", Net: "unix"}}}}, both, ""},
		{"no network", []listener{at("::")}, network("127.0.0.1/8"), ""},
		{"unknown", []listener{at("::")}, network("no address"), ""},
		{"many", []listener{at("::")}, network("10.0.0.1/8", "10.0.0.2/8", "10.0.0.3/8", "10.0.0.4/8", "10.0.0.5/8"),
			"\nchert: in the network: http://10.0.0.1:8080/ and http://10.0.0.2:8080/ and http://10.0.0.3:8080/ and http://10.0.0.4:8080/"},
	} {
		if got := networkLine(tt.ls, tt.interfaces); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestShowURL(t *testing.T) {
	t.Parallel()
	tests := []struct {
		addr net.Addr
		want string
	}{
		{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, "http://127.0.0.1:8080/"},
		{&net.TCPAddr{IP: net.IPv4zero, Port: 8080}, "http://localhost:8080/"},
		{&net.TCPAddr{IP: net.IPv6zero, Port: 80}, "http://localhost:80/"},
		{&net.TCPAddr{Port: 80}, "http://localhost:80/"},
		{&net.TCPAddr{IP: net.IPv6loopback, Port: 80}, "http://[::1]:80/"},
		{&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0", Port: 80}, "http://[fe80::1%25eth0]:80/"},
		{&net.UnixAddr{Name: "/run/s", Net: "unix"}, "unix:/run/s"},
	}
	for _, tt := range tests {
		if got := showURL(tt.addr); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.addr, got, tt.want)
		}
	}
}

func TestOtherPort(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{8080: 8081, 65535: 65534} {
		if got := otherPort(n); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}
