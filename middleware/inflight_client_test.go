package middleware

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/chert-http/chert/chertest"
	"github.com/chert-http/chert/direct"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/race"
)

func TestClientOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1:1", "192.0.2.1:2", true},
		{"192.0.2.1:1", "[::ffff:192.0.2.1]:2", true},
		{"192.0.2.1:1", "192.0.2.2:1", false},
		{"[2001:db8::1]:1", "[2001:db8::ffff:2]:1", true}, // of one /64
		{"[2001:db8::1]:1", "[2001:db8:0:1::1]:1", false},
		{"[fe80::1%eth0]:1", "[fe80::2%eth1]:1", true},
		{"@", "@name", true}, {"@", "/run/s", true}, {"", "nonsense", true},
		{"@", "[::1]:1", false}, {"@", "0.0.0.1:1", false}, {"[::1]:1", "0.0.0.1:1", false},
	} {
		if got := clientOf(tt.a) == clientOf(tt.b); got != tt.same {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
	}
}

func TestInFlightPerClient(t *testing.T) {
	t.Parallel()
	inside := newHeld()
	h := InFlight(&InFlightOptions{Max: -1, PerClient: 2})(inside)
	from := func(addr string) *http.Request {
		r := request("GET", "/", "")
		r.RemoteAddr = addr
		return r
	}
	answers := make(chan answer)
	for i := range 2 {
		go func() { answers <- plain(h, from(fmt.Sprint("192.0.2.1:", 1+i))) }()
		<-inside.entered
	}
	if a := plain(h, from("192.0.2.1:3")); a.Status != 429 || a.Header.Get("Retry-After") != "1" {
		t.Errorf("got %v", a)
	}
	if a, ok := directly(t, h, from("192.0.2.1:3")); !ok || a.Status != 429 {
		t.Errorf("got %v", a)
	}
	if a, ok := directly(t, h, from("192.0.2.2:1")); !ok || a.Status != 200 {
		t.Errorf("another client: %v", a)
	}
	close(inside.leave)
	<-answers
	<-answers
	for range 5 {
		if a, ok := directly(t, h, from("192.0.2.1:3")); !ok || a.Status != 200 {
			t.Errorf("got %v", a)
		}
	}
}

// Whatever becomes of a response, its request counts until then and not longer.
func TestInFlightPerClientLeaves(t *testing.T) {
	t.Parallel()
	for name, inner := range map[string]http.Handler{
		"panics":   direct.HandlerFunc(func(*direct.Exchange) { panic(http.ErrAbortHandler) }),
		"declines": declining{},
		"responds": hello,
	} {
		h := InFlight(&InFlightOptions{Max: -1, PerClient: 1})(inner)
		for range 3 {
			panics(func() {
				if a, ok := directly(t, h, request("GET", "/", "")); ok && a.Status != 200 {
					t.Errorf("%s: fast path: %v", name, a)
				}
			})
			panics(func() {
				if a := plain(h, request("GET", "/", "")); a.Status != 200 {
					t.Errorf("%s: ordinary path: %v", name, a)
				}
			})
		}
	}
	// A response counts until it has been sent, and not if it is discarded.
	h := InFlight(&InFlightOptions{Max: -1, PerClient: 1})(hello).(direct.Handler)
	var x direct.Exchange
	for _, end := range []func(){
		func() { sent(x.Wire().Finish()) }, x.Wire().Drop, x.Wire().Discard, x.Wire().Forget,
	} {
		exchange(&x, request("GET", "/", ""))
		if h.ServeDirect(&x); x.Wire().Status() != 200 {
			t.Fatalf("the one before counts still: %d", x.Wire().Status())
		}
		if a, _ := directly(t, h.(http.Handler), request("GET", "/", "")); a.Status != 429 {
			t.Errorf("before it was sent: %v", a)
		}
		end()
	}
}

// declining leaves all requests to the ordinary path.
type declining struct{}

func (declining) ServeDirect(*direct.Exchange) bool { return false }

func (declining) ServeHTTP(w http.ResponseWriter, r *http.Request) { plainHello(w, r) }

// A download that its client does not read counts until the client leaves.
func TestInFlightPerClientDownload(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 32<<20)
	srv := chertest.NewServer(InFlight(&InFlightOptions{Max: -1, PerClient: 1})(hf(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, big)
	})))
	defer srv.Close()
	ask := func() (net.Conn, int) {
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		return c, res.StatusCode
	}
	stalled, status := ask()
	if status != 200 {
		t.Fatal(status)
	}
	c, status := ask()
	if c.Close(); status != 429 {
		t.Errorf("beside a download: %d", status)
	}
	stalled.Close()
	for status = 429; status == 429; { // until the server has seen that, or the test ends
		c, status = ask()
		c.Close()
	}
	if status != 200 {
		t.Error(status)
	}
}

func TestInFlightPerClientAllocates(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	h := InFlight(&InFlightOptions{Max: -1, PerClient: 1})(direct.NewResponse(200, nil, nil)).(direct.Handler)
	var x direct.Exchange
	for _, addr := range []string{"192.0.2.1:1234", "[2001:db8::1]:1234", "@"} {
		r := wire.Request{Method: "GET", Target: []byte("/"), Path: []byte("/"), RemoteAddr: addr, Fields: wire.FieldsOf(nil)}
		if n := testing.AllocsPerRun(100, func() {
			x.Wire().Reset(r)
			h.ServeDirect(&x)
			sent(x.Wire().Finish())
		}); n != 0 {
			t.Errorf("%s: %v allocations", addr, n)
		}
	}
}

// A handler that takes its connection counts until it returns.
func TestInFlightPerClientHijack(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 9)
	limited := InFlight(&InFlightOptions{Max: -1, PerClient: 1})(hf(func(w http.ResponseWriter, r *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		c.Close()
	}))
	srv := chertest.NewServer(hf(func(w http.ResponseWriter, r *http.Request) {
		limited.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	defer srv.Close()
	for range 3 {
		res, err := srv.Client().Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != 200 {
			t.Errorf("got %d", res.StatusCode)
		}
		<-ended
	}
}
