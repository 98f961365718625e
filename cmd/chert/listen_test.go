package main

import (
	"net"
	"testing"
)

func TestParseEndpoint(t *testing.T) {
	t.Parallel()
	// What it refuses is in TestUsageErrors.
	for s, want := range map[string]endpoint{
		":8080":           {"tcp", ":8080"},
		"127.0.0.1:0":     {"tcp", "127.0.0.1:0"},
		"[::1]:80":        {"tcp", "[::1]:80"},
		"localhost:65535": {"tcp", "localhost:65535"},
		"unix:/run/s":     {"unix", "/run/s"},
		"unix:s":          {"unix", "s"},
		"unix:./@s":       {"unix", "./@s"},
	} {
		got, err := parseEndpoint(s)
		if err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", s, got, err, want)
		}
		if got.String() != s {
			t.Errorf("%s prints as %s", s, got)
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
