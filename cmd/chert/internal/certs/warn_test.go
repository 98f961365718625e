package certs

import (
	"crypto/x509"
	"net"
	"testing"
	"time"
)

func TestExpiry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const hour, day = time.Hour, 24 * time.Hour
	for _, tt := range []struct {
		valid, left time.Duration
		want        string
	}{
		{90 * day, 15 * day, ""},
		{90 * day, 14*day - hour, "it expires on 2026-01-14 23:00:00; renew it"},
		{90 * day, -hour, "it has expired on 2025-12-31, so it is refused; renew it"},
		{6 * day, 2*day + hour, ""}, // short-lived certificates are replaced late
		{6 * day, 2*day - hour, "it expires on 2026-01-02 23:00:00; renew it"},
	} {
		end := now.Add(tt.left)
		if got := Expiry("it", &x509.Certificate{NotBefore: end.Add(-tt.valid), NotAfter: end}, now); got != tt.want {
			t.Errorf("%v of %v: %q, want %q", tt.left, tt.valid, got, tt.want)
		}
	}
}

func TestUncovered(t *testing.T) {
	t.Parallel()
	cert := &x509.Certificate{DNSNames: []string{"a.example", "*.b.example"}, IPAddresses: []net.IP{net.IPv6loopback}}
	for _, tt := range []struct {
		hosts []string
		want  string
	}{
		{[]string{"a.example", "x.b.example", "*.b.example", "::1", "*"}, ""},
		{[]string{"a.example", "b.example"}, `it is not for "b.example", so clients refuse it there`},
		{[]string{"*.a.example", "127.0.0.1", "a.example"}, `it is not for "*.a.example" and "127.0.0.1", so clients refuse it there`},
		{[]string{"b", "c", "*", "d"}, `it is not for "b", "c" and "d", so clients refuse it there`},
	} {
		if got := Uncovered("it", cert, tt.hosts); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.hosts, got, tt.want)
		}
	}
	const want = "it has no name or address (subjectAltName), so clients refuse it; replace it by one that has"
	if got := Uncovered("it", &x509.Certificate{}, []string{"*"}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
