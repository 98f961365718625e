package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chert-http/chert/internal/testing/servertest"
)

// names is a resolver that tests change.
type names struct {
	mu    sync.Mutex
	addrs map[string][]netip.Addr
	srv   []*net.SRV
	err   error
}

func (n *names) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (n *names) resolver() resolver {
	return resolver{every: 5 * time.Millisecond,
		addrs: func(_ context.Context, host string) ([]netip.Addr, error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			return append([]netip.Addr(nil), n.addrs[host]...), n.err
		},
		srv: func(context.Context, string) ([]*net.SRV, error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			return n.srv, n.err
		},
	}
}

// addresses returns those of an Upstream, with b for backups.
func addressesOf(u *Upstream) string {
	var all []string
	for _, s := range u.Status().Servers {
		a := s.Addr
		if s.Backup {
			a += "b"
		}
		all = append(all, a)
	}
	return strings.Join(all, " ")
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func TestNames(t *testing.T) {
	t.Parallel()
	one, two := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	n := &names{addrs: map[string][]netip.Addr{"app": {two, one, netip.MustParseAddr("::ffff:127.0.0.1")}}}
	p := NewPool(&PoolOptions{Logger: quiet()})
	p.resolver = n.resolver()
	defer p.Close()
	u, err := p.Upstream(&UpstreamOptions{Name: "a", Servers: []Server{{Addr: "app:80"}, {Addr: "10.0.0.1:80", Backup: true}}})
	if err != nil {
		t.Fatal(err)
	}
	is := func(want string) {
		t.Helper()
		servertest.Eventually(t, want, func() bool { return addressesOf(u) == want })
	}
	is("127.0.0.1:80 127.0.0.2:80 10.0.0.1:80b")
	if s := u.Status().Servers[0]; s.Name != "app:80" {
		t.Errorf("%+v", s)
	}
	n.set(func() { n.addrs["app"] = []netip.Addr{two} })
	is("127.0.0.2:80 10.0.0.1:80b")
	// A failure keeps the last answer, an empty one too, for a while.
	n.set(func() { n.err = errors.New("no network") })
	servertest.Eventually(t, "the error", func() bool { return u.Status().Resolve == "no network" })
	is("127.0.0.2:80 10.0.0.1:80b")
	n.set(func() { n.err = nil })
	servertest.Eventually(t, "no error", func() bool { return u.Status().Resolve == "" })
	n.set(func() { n.addrs["app"] = nil })
	is("10.0.0.1:80b")
	n.set(func() { n.addrs["app"] = []netip.Addr{one} })
	is("127.0.0.1:80 10.0.0.1:80b")
}

func TestSRV(t *testing.T) {
	t.Parallel()
	n := &names{addrs: map[string][]netip.Addr{"x": {netip.MustParseAddr("10.0.0.1")}, "y": {netip.MustParseAddr("10.0.0.2")}},
		srv: []*net.SRV{{Target: "y.", Port: 2, Priority: 2}, {Target: "x.", Port: 1, Priority: 1, Weight: 5}, {Target: "."}}}
	p := NewPool(&PoolOptions{Logger: quiet()})
	p.resolver = n.resolver()
	defer p.Close()
	u, err := p.Upstream(&UpstreamOptions{Name: "a", SRV: "_http._tcp.app"})
	if err != nil {
		t.Fatal(err)
	}
	servertest.Eventually(t, "servers", func() bool { return addressesOf(u) == "10.0.0.1:1 10.0.0.2:2b" })
	if s := u.Status().Servers[0]; s.Weight != 5 {
		t.Errorf("%+v", s)
	}
}

// TestUnresolved: requests wait for the first answer, and fail with the reason.
func TestUnresolved(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	_, port, _ := net.SplitHostPort(up.Listener.Addr().String())
	for _, c := range []struct {
		name   string
		addrs  []netip.Addr
		err    error
		status int
		kind   string
	}{
		{"slow", []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil, 200, ""},
		{"none", nil, nil, 502, "chert; error=dns_error"},
		{"failed", nil, &net.DNSError{Err: "x"}, 502, "chert; error=dns_error"},
		{"timeout", nil, &net.DNSError{Err: "x", IsTimeout: true}, 504, "chert; error=dns_timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := make(chan bool)
			p := NewPool(&PoolOptions{Logger: quiet()})
			p.resolver = resolver{every: time.Hour, addrs: func(context.Context, string) ([]netip.Addr, error) {
				<-answer
				return c.addrs, c.err
			}}
			defer p.Close()
			u, err := p.Upstream(&UpstreamOptions{Name: "a", Servers: []Server{{Addr: "app:" + port}}, ConnectTimeout: servertest.Patience})
			if err != nil {
				t.Fatal(err)
			}
			h, err := New(&Options{Upstream: u, Logger: quiet()})
			if err != nil {
				t.Fatal(err)
			}
			go close(answer)
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/", nil)
			h.ServeHTTP(w, r)
			if w.Code != c.status || w.Header().Get("Proxy-Status") != c.kind {
				t.Errorf("%d %v", w.Code, w.Header())
			}
		})
	}
}

// An Upstream that is made while the Pool closes resolves no names once that has closed.
func TestUpstreamWhilePoolCloses(t *testing.T) {
	t.Parallel()
	for range 1000 {
		var closed atomic.Bool
		p := NewPool(&PoolOptions{Logger: quiet()})
		p.resolver = resolver{every: time.Hour, addrs: func(context.Context, string) ([]netip.Addr, error) {
			if closed.Load() {
				t.Error("a name is resolved after Close has returned")
			}
			return nil, nil
		}}
		made := make(chan struct{})
		go func() {
			defer close(made)
			p.Upstream(&UpstreamOptions{Name: "a", Servers: []Server{{Addr: "app:80"}}}) // the Pool may be closed already
		}()
		for len(p.list()) == 0 {
			runtime.Gosched()
		}
		p.Close()
		closed.Store(true)
		servertest.Await(t, made, "the Upstream")
		p.running.Wait()
	}
}
