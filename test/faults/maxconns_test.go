package faults

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testhook"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
)

// Attacks by clients that occupy what others need. The innocent client of each
// is a new connection.

// A request that has arrived in part is protected for five seconds. After that
// its connection is closed for newcomers, but after all idle ones.
func TestAttackPartialHeadsAtMaxConns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, m := engines.StartMemory(t, &chert.Server{MaxConns: 3, Handler: faultOK})
		held := []*servertest.Client{m.Patient(t), m.Patient(t)}
		for _, c := range held {
			c.Send("GET / HT")
			time.Sleep(time.Millisecond)
		}
		idle := m.Patient(t)
		time.Sleep(4 * time.Second)
		idle.Get("/")
		time.Sleep(900 * time.Millisecond)
		var newcomers []*servertest.Client
		enter := func() {
			t.Helper()
			c := m.Patient(t)
			c.Send("GET / HTTP/1.1\r\nHost: h\r\n\r\nG") // so that it is not idle
			if res, err := http.ReadResponse(c.R, nil); err != nil || res.StatusCode != 200 {
				t.Errorf("got %v, %v", res, err)
			}
			newcomers = append(newcomers, c)
		}
		enter()
		idle.Ended()
		if got := m.Patient(t).UpToEnd(); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
			t.Fatalf("got %q", got)
		}
		time.Sleep(time.Second)
		for _, c := range held {
			go enter()
			if res, _ := c.Response("GET"); res.StatusCode != 408 {
				t.Errorf("got %v", res.Status)
			}
			c.Ended()
			synctest.Wait()
		}
	})
}

// Nor does a client that never begins its handshake, on whichever engine.
func TestAttackHandshakesAtMaxConns(t *testing.T) {
	t.Parallel()
	cert, roots := servertest.Certificate(t)
	synctest.Test(t, func(t *testing.T) {
		m := servertest.NewMemory()
		engines.StartTLS(t, &chert.Server{MaxConns: 1, Handler: faultOK}, m, cert)
		held := m.Patient(t)
		time.Sleep(6 * time.Second)
		c, _ := servertest.TLSOver(t, m.Patient(t).Conn, roots)
		c.Get("/")
		held.Ended()
	})
}

// A client that fills the server with idle connections, and replaces each that
// it loses, keeps no other out: every innocent request is served, and the
// connections that have been idle longest are closed first.
func TestAttackIdleAtMaxConns(t *testing.T) {
	t.Parallel()
	for how, places := range map[string]int{
		"kept": 20, "silent": 20, "foreign listener": 20,
		"another loop's": 1, // with several loops it is usually not the newcomer's
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				fs := new(engines.Counting)
				s := &chert.Server{Engine: e, Handler: faultOK, MaxConns: places, IdleTimeout: -1, ReadHeaderTimeout: -1}
				fs.Count(s)
				if how == "foreign listener" {
					fs.Server = engines.StartOn(t, s, servertest.ListenSmall(t, 64<<10))
				} else {
					fs.Server = engines.Start(t, s)
				}
				// On a loaded machine it may take longer than newcomers wait
				// until a connection is idle, or closed, after its response.
				served := func(who string) {
					servertest.Eventually(t, who+" is served", func() bool {
						c := fs.Dial()
						if _, err := io.WriteString(c, servertest.GET); err != nil {
							return false
						}
						res, err := http.ReadResponse(c.R, nil)
						return err == nil && res.StatusCode == 200
					})
				}
				idle := func() {
					if how == "silent" {
						fs.Dial()
					} else {
						served("the attacker")
					}
				}
				for range places {
					idle()
				}
				// The attacker replaces each of its closed connections at once.
				for range 4*places + 20 {
					served("the innocent")
					idle()
				}
			})
		})
	}
}

// Up to 64 connections on one loop are closed in the order in which they became
// idle.
func TestIdleLongestGivesWay(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		const places = 6
		fs := new(engines.Counting)
		s := &chert.Server{Engine: e, Handler: faultOK, MaxConns: places}
		fs.Count(s)
		fs.Server = engines.StartOn(t, s, servertest.ListenSmall(t, 64<<10))
		if e == chert.EngineLoops && runtime.GOMAXPROCS(0) > 1 {
			t.Skip("each loop knows its own connections only")
		}
		var all []*servertest.Client
		for range places {
			c := fs.Dial()
			c.Send(servertest.GET)
			c.Status(200)
			all = append(all, c)
			servertest.Eventually(t, "it is idle", func() bool { return fs.Server.Stats().Connections.Active == 0 })
			time.Sleep(3 * time.Millisecond) // another tick of the clock
		}
		all[0].Send(servertest.GET)
		all[0].Status(200)
		servertest.Eventually(t, "it is idle again", func() bool { return fs.Server.Stats().Connections.Active == 0 })
		for _, i := range []int{1, 2, 3, 4, 5, 0} {
			c := fs.Dial()
			c.Send(servertest.GET[:10]) // a part: it is kept
			all[i].Ended()
		}
	})
}

// A connection counts until it is hijacked: then it is the program's, which bounds it.
func TestHijackedConnsDoNotCount(t *testing.T) {
	t.Parallel()
	for _, perAddr := range []bool{false, true} {
		t.Run(fmt.Sprintf("per address %v", perAddr), func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				hijacked := make(chan net.Conn, 10)
				entered, leave := make(chan bool, 3), make(chan bool)
				s := &chert.Server{Engine: e, MaxConns: 3, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/hijack" {
						entered <- true
						<-leave
						return
					}
					nc, _, err := w.(http.Hijacker).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					if _, ok := nc.(*net.TCPConn); !ok {
						t.Errorf("Hijack gave a %T", nc)
					}
					hijacked <- nc
				})}
				if perAddr {
					s.MaxConns, s.MaxConnsPerAddr = 0, 3
				}
				fs := engines.StartCounting(t, s)
				count := testhook.Of(s).Conns
				for range 5 {
					fs.Dial().Send("GET /hijack HTTP/1.1\r\nHost: h\r\n\r\n")
					defer servertest.Await(t, hijacked, "the hijack").Close()
				}
				servertest.Eventually(t, "all rooms are free", func() bool { return count() == 0 })
				for range 3 {
					fs.Dial().Send(servertest.GET)
					servertest.Await(t, entered, "the handler")
				}
				refusedPlace(fs.Dial())
				close(leave)
			})
		})
	}
}

// A peer on a unix socket has no address, whatever name its socket has.
func TestUnixPeersAreNameless(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no unix sockets with names of clients")
	}
	for _, how := range []string{"plain", "conncontext", "tls"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				dir, err := os.MkdirTemp("", "chert") // a short name
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(dir) })
				l, err := net.Listen("unix", filepath.Join(dir, "s"))
				if err != nil {
					t.Fatal(err)
				}
				seen := make(chan string, 1)
				s := &chert.Server{Engine: e, MaxConnsPerAddr: 1, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
					put(w, r.RemoteAddr)
				})}
				s.ConnState = func(c net.Conn, st http.ConnState) {
					if st == http.StateNew {
						seen <- c.RemoteAddr().Network()
					}
				}
				if how == "conncontext" {
					s.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return ctx }
				}
				if how == "tls" {
					if e == chert.EngineLoops {
						l.Close()
						t.Skip("TLS is on goroutines")
					}
					l = wrapped{l} // of an unknown type
				}
				engines.StartOn(t, s, l)
				for range 2 { // not two of one address either
					name := filepath.Join(dir, "10.0.0.1:80")
					os.Remove(name)
					c, err := net.DialUnix("unix", &net.UnixAddr{Name: name, Net: "unix"}, &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { c.Close() })
					if _, body := servertest.Wrap(t, c).Get("/"); body != "@" {
						t.Errorf("RemoteAddr is %q", body)
					}
					if network := servertest.Await(t, seen, "ConnState"); network != "unix" {
						t.Errorf("ConnState saw a %s address", network)
					}
				}
			})
		})
	}
}

// wrapped hides the type of a listener and of its connections' addresses.
type wrapped struct{ net.Listener }

func (l wrapped) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return wrappedConn{nc}, nil
}

type wrappedConn struct{ net.Conn }

func (c wrappedConn) RemoteAddr() net.Addr { return wrappedAddr{c.Conn.RemoteAddr()} }

type wrappedAddr struct{ net.Addr }

func (a wrappedAddr) String() string { return filepath.Base(a.Addr.String()) }

// refusedPlace waits for the 503 of a connection that has not sent a request.
func refusedPlace(c *servertest.Client) {
	c.T.Helper()
	res, body := c.Response("GET")
	if res.StatusCode != 503 || !res.Close || res.Header.Get("Retry-After") == "" {
		c.T.Fatalf("got %v %v %q, want a 503", res.Status, res.Header, body)
	}
	c.Ended()
	c.Close()
}

func TestFaultsMaxConns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		foreign bool // net.Listen's listener instead of the server's
	}{{"own listener", false}, {"foreign listener", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			engines.Each(t, func(t *testing.T, e chert.Engine) {
				fs := new(engines.Counting)
				h := newBlocking()
				s := &chert.Server{Engine: e, Handler: h, MaxConns: 2}
				fs.Count(s)
				if tt.foreign {
					fs.Server = engines.StartOn(t, s, servertest.ListenSmall(t, 64<<10))
				} else {
					fs.Server = engines.Start(t, s)
				}
				a, b := fs.Dial(), fs.Dial()
				for _, c := range []*servertest.Client{a, b} {
					c.Send(blockGet)
					servertest.Await(t, h.entered, "the handler")
				}
				// Full: each waiting connection is refused in the end.
				for range 3 {
					refusedPlace(fs.Dial())
				}
				// Connections that were accepted are kept.
				close(h.leave)
				a.Status(200)
				b.Status(200)
				a.Send(blockGet[:1])
				// A connection ends: the next one is accepted, however long the
				// server has been refusing.
				b.Close()
				servertest.Eventually(t, "the close is noticed", func() bool { return fs.Closed.Load() == 1 })
				c := fs.Dial()
				c.Send(servertest.GET)
				c.Status(200)
				if n := fs.Opened.Load(); n != 3 {
					t.Errorf("%d connections were opened, want 3", n)
				}
			})
		})
	}
}

// A connection that waits while the server is full is served, not refused, when
// another ends in time. The timing cannot be forced, so this repeats until it
// was in time.
func TestFaultsWaitingConnIsServed(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: faultOK, MaxConns: 1})
		servertest.Eventually(t, "a waiting connection was served", func() bool {
			holder := fs.Dial()
			holder.Send(servertest.GET)
			if res, _ := holder.Response("GET"); res.StatusCode != 200 {
				return false // the connection of the last try has not ended yet
			}
			waiter := fs.Dial()
			defer waiter.Close()
			if _, err := io.WriteString(waiter, servertest.GET); err != nil {
				return false
			}
			holder.Close()
			res, err := http.ReadResponse(waiter.R, nil)
			if err != nil {
				return false // a refusal, cut by a reset
			}
			res.Body.Close()
			if res.StatusCode != 200 && res.StatusCode != 503 {
				t.Errorf("got %v", res.Status)
			}
			return res.StatusCode == 200
		})
	})
}

// The limit is the server's: an unused listener reserves nothing.
func TestFaultsMaxConnsOverListeners(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		h := newBlocking()
		s := &chert.Server{Engine: e, Handler: h, MaxConns: 1}
		var all []*engines.Counting
		for range 3 {
			fs := new(engines.Counting)
			if len(all) == 0 {
				fs.Count(s)
			}
			fs.Server = engines.StartOn(t, s, servertest.ListenSmall(t, 64<<10))
			all = append(all, fs)
		}
		for i := range 6 {
			fs := all[i%len(all)]
			c := fs.Dial()
			c.Send(blockGet)
			servertest.Await(t, h.entered, "the handler")
			refusedPlace(all[(i+1)%len(all)].Dial())
			h.leave <- true
			c.Status(200)
			c.Close()
			servertest.Eventually(t, "the close is noticed", func() bool { return all[0].Closed.Load() == int64(i+1) })
			servertest.Eventually(t, "the place is free", func() bool { return testhook.Of(s).Conns() == 0 })
		}
	})
}

func TestFaultsMaxConnsPerAddr(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		fs := engines.StartCounting(t, &chert.Server{Engine: e, Handler: faultOK, MaxConnsPerAddr: 2})
		a, b := fs.Dial(), fs.Dial()
		for _, c := range []*servertest.Client{a, b} {
			c.Send(servertest.GET)
			c.Status(200)
		}
		for range 3 {
			refusedPlace(fs.Dial())
		}
		a.Close()
		servertest.Eventually(t, "the close is noticed", func() bool { return fs.Closed.Load() == 1 })
		servertest.Eventually(t, "the address has a place again", func() bool {
			c := fs.Dial()
			c.Send(servertest.GET)
			res, _ := c.Response("GET")
			return res.StatusCode == 200
		})
		b.Send(servertest.GET)
		b.Status(200)
	})
}
