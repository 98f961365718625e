package ratelimit

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
)

// ipv4 accepts only what netip accepts, with the same address, and every IPv4 address
// that is formatted as netip does.
func TestIPv4(t *testing.T) {
	t.Parallel()
	all := []string{
		"192.0.2.1:80", "0.0.0.0:0", "255.255.255.255:65535", "1.2.3.4:1", "10.20.30.40:65536", "256.0.0.1:80", "1.2.3.400:80",
		"01.2.3.4:80", "1.2.3.04:80", "1.2.3.00:80", "1.2.3:80", "1.2.3.4.5:80", "1..3.4:80", ".1.2.3:80", "1.2.3.4", "1.2.3.4:", "1.2.3.4:a",
		"1.2.3.4:080", "1.2.3.4:000080", "1.2.3.4 :80", "1.2.3.4:-1", "[::1]:80", "[::ffff:1.2.3.4]:80", "1.2.3.4%a:80", "", "@", ":80", "1.2.3.1000:80", "1111.2.3.4:80",
	}
	for _, s := range strings.Split("192.0.2.1:80 1.23.4.255:65535 99.100.0.9:7", " ") {
		for i := range s {
			for _, c := range "0129.:/x\x00\xff" {
				all = append(all, s[:i]+string(c)+s[i:], s[:i]+string(c)+s[i+1:], s[:i])
			}
		}
	}
	taken := 0
	for _, s := range all {
		n := ipv4(s)
		a, err := netip.ParseAddrPort(s)
		if n > 0 {
			taken++
			if err != nil || s[:n] != a.Addr().String() {
				t.Errorf("%q: %q is taken; netip has %v, %v", s, s[:n], a, err)
			}
		} else if err == nil && a.String() == s && a.Addr().Is4() {
			t.Errorf("%q is not taken", s)
		}
	}
	if taken < 10 {
		t.Errorf("only %d are taken", taken)
	}
}

// ask makes h serve a request that arrived at the given time.
func ask(h http.Handler, from string, came time.Duration) int {
	var x direct.Exchange
	x.Wire().Reset(wire.Request{Method: "GET", RemoteAddr: from, Fields: wire.FieldsOf(http.Header{}), Time: came})
	if !h.(direct.Handler).ServeDirect(&x) {
		return 0
	}
	return x.Wire().Finish().Status
}

func quickHandler(t *testing.T, next http.Handler, m *Memory, rate string) http.Handler {
	o := &Options{Store: m, Rules: []Rule{{Name: "quick", Rate: mustRate(t, rate)}}}
	if h, err := newHandler(o); err != nil || h.memory == nil {
		t.Fatal("this does not go the quick way", err)
	}
	h, err := around(next, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Requests that arrived before others and are decided after them are admitted if
// there are tokens, and never too many.
func TestQuickCameEarlier(t *testing.T) {
	t.Parallel()
	h := quickHandler(t, direct.NewResponse(200, nil, nil), NewMemory(nil), "3/d")
	now := wire.Clock() + 1
	var got []int
	for i := range 5 {
		got = append(got, ask(h, "192.0.2.1:80", max(1, now-time.Duration(i)*time.Millisecond)))
	}
	if want := []int{200, 200, 200, 429, 429}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := ask(h, "192.0.2.2:80", now); got != 200 {
		t.Errorf("another address: %d", got)
	}
}

// No request is refused because the server's time is old: then the clock is
// read.
func TestQuickRefusesByTheClock(t *testing.T) {
	t.Parallel()
	m := NewMemory(nil)
	h := quickHandler(t, direct.NewResponse(200, nil, nil), m, "1/s")
	var at time.Duration
	m.clock = func() time.Duration { return at } // and m.directs stays
	at = time.Hour
	if got := ask(h, "192.0.2.1:80", at); got != 200 {
		t.Fatalf("first: %d", got)
	}
	at += time.Second // the bucket is full again
	if got := ask(h, "192.0.2.1:80", at-time.Millisecond); got != 200 {
		t.Errorf("refused by an old time: %d", got)
	}
	if got := ask(h, "192.0.2.1:80", at); got != 429 {
		t.Errorf("twice: %d", got)
	}
}

// A Memory with its own clock does not use the server's.
func TestQuickOwnClock(t *testing.T) {
	t.Parallel()
	var at time.Duration
	h := quickHandler(t, direct.NewResponse(200, nil, nil), NewMemory(&MemoryOptions{Clock: func() time.Duration { return at }}), "1/s")
	for i, want := range []int{200, 429} {
		if got := ask(h, "192.0.2.1:80", time.Duration(i+1)*time.Hour); got != want {
			t.Errorf("request %d: got %d, want %d", i, got, want)
		}
	}
	at = time.Second
	if got := ask(h, "192.0.2.1:80", 1); got != 200 {
		t.Errorf("after a second: %d", got)
	}
}

type leaves struct{ http.Handler }

func (leaves) ServeDirect(*direct.Exchange) bool { return false }

// A request that is left to the ordinary path gets its token back.
func TestQuickGivesBack(t *testing.T) {
	t.Parallel()
	h := quickHandler(t, leaves{http.NotFoundHandler()}, NewMemory(nil), "1/d")
	for i := range 3 {
		if got := ask(h, "192.0.2.1:80", wire.Clock()); got != 0 {
			t.Errorf("request %d: got %d", i, got)
		}
	}
}
