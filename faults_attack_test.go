package chert

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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Attacks by clients that hold what others need. The innocent client of each is a
// new connection.

// Whoever holds a worker without a whole head gives it back five seconds after
// somebody has begun to wait, however he holds it.
func TestAttackWorkers(t *testing.T) {
	t.Parallel()
	cert, _ := certificate(t)
	const workers = 4
	for name, attack := range map[string]func(c *rawConn){
		"nothing sent": func(c *rawConn) {},
		"a byte":       func(c *rawConn) { c.send("G") },
		"a byte a second": func(c *rawConn) {
			go func() {
				for _, b := range "GET / HTTP/1.1\r\nHost: " + strings.Repeat("h", 1000) {
					if _, err := io.WriteString(c, string(b)); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			}()
		},
		"the second head": func(c *rawConn) {
			c.get("/")
			c.send("G")
		},
		"pipelined heads": func(c *rawConn) {
			go func() {
				for rest := ""; ; rest = "T / HTTP/1.1\r\nHost: h\r\n\r\n" {
					if _, err := io.WriteString(c, rest+"GE"); err != nil {
						return
					}
					time.Sleep(time.Second)
				}
			}()
		},
		"TLS: nothing sent":    func(c *rawConn) {},
		"TLS: part of a hello": func(c *rawConn) { c.send("\x16\x03\x01\x02\x00\x01") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &Server{Workers: workers, QueueLength: 100, Handler: memoryEcho(t)}
				var m *memory
				if strings.HasPrefix(name, "TLS") {
					m = newMemory()
					startTLS(t, s, m, cert)
				} else {
					_, m = startMemory(t, s)
				}
				for range workers {
					c := m.patient(t)
					attack(c)
					go io.Copy(io.Discard, c.r) // a pipe has no room for an answer
				}
				synctest.Wait()
				// More who wait do not make it longer.
				go func() {
					for range 8 {
						time.Sleep(time.Second)
						m.patient(t)
					}
				}()
				innocent := m.patient(t)
				if strings.HasPrefix(name, "TLS") {
					innocent.sendAside("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
				}
				d := took(func() {
					if strings.HasPrefix(name, "TLS") {
						innocent.upToEnd() // it is told that this is no TLS
					} else {
						innocent.get("/")
					}
				})
				if d > 5*time.Second+20*time.Millisecond {
					t.Errorf("the innocent waited for %v", d)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// A worker that takes a connection while others wait gives them their turn after
// its first request.
func TestWorkersFirstRequestGivesWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, m := startMemory(t, &Server{Workers: 1, QueueLength: 2, IdleTimeout: -1, Handler: memoryEcho(t)})
		var all []*rawConn
		for range 3 {
			c := m.patient(t)
			c.sendAside("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			all = append(all, c)
		}
		for i, c := range all {
			c.response("GET")
			if i < 2 {
				c.closed()
			}
		}
	})
}

// A request of which a part has come is on its way for five seconds. After that it
// gives way to newcomers, but after all that are idle.
func TestAttackPartialHeadsAtMaxConns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, m := startMemory(t, &Server{MaxConns: 3, Handler: memoryEcho(t)})
		held := []*rawConn{m.patient(t), m.patient(t)}
		for _, c := range held {
			c.send("GET / HT")
			time.Sleep(time.Millisecond)
		}
		idle := m.patient(t)
		time.Sleep(4 * time.Second)
		idle.get("/")
		time.Sleep(900 * time.Millisecond)
		var newcomers []*rawConn
		enter := func() {
			t.Helper()
			c := m.patient(t)
			c.send("GET / HTTP/1.1\r\nHost: h\r\n\r\nG") // and is not idle
			if res, err := http.ReadResponse(c.r, nil); err != nil || res.StatusCode != 200 {
				t.Errorf("got %v, %v", res, err)
			}
			newcomers = append(newcomers, c)
		}
		enter()
		idle.closed()
		if got := m.patient(t).upToEnd(); !strings.HasPrefix(got, "HTTP/1.1 503 ") {
			t.Fatalf("got %q", got)
		}
		time.Sleep(time.Second)
		for _, c := range held {
			go enter()
			if res, _ := c.response("GET"); res.StatusCode != 408 {
				t.Errorf("got %v", res.Status)
			}
			c.closed()
			synctest.Wait()
		}
	})
}

// A client that fills the server with idle connections, and begins anew with each
// that he loses, keeps nobody out: every innocent request is answered, and those
// idle longest go first.
func TestAttackIdleAtMaxConns(t *testing.T) {
	t.Parallel()
	for how, places := range map[string]int{
		"kept": 20, "silent": 20, "foreign listener": 20,
		"another loop's": 1, // with several loops it is not the newcomer's as a rule
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, e Engine) {
				fs := new(faultServer)
				s := &Server{Engine: e, Handler: faultOK, MaxConns: places, IdleTimeout: -1, ReadHeaderTimeout: -1}
				fs.count(s)
				if how == "foreign listener" {
					fs.testServer = startOn(t, s, smallSockets(t, 64<<10))
				} else {
					fs.testServer = start(t, s)
				}
				// On a loaded machine it may take longer than newcomers wait until one
				// whose answer has come is idle, or closed.
				served := func(who string) {
					eventually(t, who+" is served", func() bool {
						c := fs.dial()
						if _, err := io.WriteString(c, faultGet); err != nil {
							return false
						}
						res, err := http.ReadResponse(c.r, nil)
						return err == nil && res.StatusCode == 200
					})
				}
				idle := func() {
					if how == "silent" {
						fs.dial()
					} else {
						served("the attacker")
					}
				}
				for range places {
					idle()
				}
				// Those of the attacker's that were closed are made anew, each at once.
				for range 4*places + 20 {
					served("the innocent")
					idle()
				}
			})
		})
	}
}

// Up to 64 connections on one loop leave in the order in which they became idle.
func TestIdleLongestGivesWay(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		const places = 6
		fs := new(faultServer)
		s := &Server{Engine: e, Handler: faultOK, MaxConns: places}
		fs.count(s)
		fs.testServer = startOn(t, s, smallSockets(t, 64<<10))
		if e == EngineLoops && runtime.GOMAXPROCS(0) > 1 {
			t.Skip("each loop knows its own connections only")
		}
		var all []*faultConn
		for range places {
			c := fs.dial()
			c.send(faultGet)
			c.status(200)
			all = append(all, c)
			time.Sleep(3 * time.Millisecond) // another tick of the clock
		}
		all[0].send(faultGet)
		all[0].status(200)
		for _, i := range []int{1, 2, 3, 4, 5, 0} {
			c := fs.dial()
			c.send(faultGet[:10]) // a part: it stays
			all[i].closed()
		}
	})
}

// What user code has hijacked keeps its place until it is closed.
func TestHijackedConnsCount(t *testing.T) {
	t.Parallel()
	for _, perAddr := range []bool{false, true} {
		t.Run(fmt.Sprintf("per address %v", perAddr), func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, e Engine) {
				hijacked := make(chan net.Conn, 10)
				entered, leave := make(chan bool, 1), make(chan bool)
				s := &Server{Engine: e, MaxConns: 3, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
				fs := faultStart(t, s)
				var held []net.Conn
				for range 3 {
					fs.dial().send("GET /hijack HTTP/1.1\r\nHost: h\r\n\r\n")
					held = append(held, await(t, hijacked, "the hijack"))
				}
				for range 3 {
					fs.dial().refusedPlace()
				}
				held[1].Close()
				// The search of one who was refused may still go on, and take an idle
				// connection for him: the first to come need not be the one who stays.
				eventually(t, "one is served", func() bool {
					c := fs.dial()
					c.send(faultGet)
					answered := make(chan bool, 1)
					go func() {
						c.Conn.Read(make([]byte, 1))
						answered <- true
					}()
					select {
					case <-entered:
						return true
					case <-answered:
						return false
					}
				})
				fs.dial().refusedPlace()
				held[0].Close()
				held[2].Close()
				eventually(t, "all places but one are free", func() bool { return s.gate.Open() == 1 })
				close(leave)
			})
		})
	}
}

// A hijacked connection that nobody has any more is closed by the garbage
// collector, and then its place is free.
func TestLostHijackedConn(t *testing.T) {
	engines(t, func(t *testing.T, e Engine) {
		var n atomic.Int64
		s := &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			if _, _, err := w.(http.Hijacker).Hijack(); err != nil {
				t.Error(err)
			}
			n.Add(1)
		})}
		fs := faultStart(t, s)
		c := fs.dial()
		c.send(faultGet)
		eventually(t, "it is lost", func() bool { return n.Load() == 1 })
		eventually(t, "its place is free", func() bool {
			runtime.GC()
			return s.gate.Open() == 0
		})
		c.closed()
	})
}

// Whoever comes by a unix socket has no address, whatever his socket is called.
func TestUnixPeersAreNameless(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no unix sockets with names of clients")
	}
	for _, how := range []string{"plain", "conncontext", "tls"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			engines(t, func(t *testing.T, e Engine) {
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
				s := &Server{Engine: e, MaxConnsPerAddr: 1, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
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
					if e == EngineLoops {
						l.Close()
						t.Skip("TLS is on goroutines")
					}
					l = wrapped{l} // of a type that is not known
				}
				startOn(t, s, l)
				for range 2 { // not two of one address either
					name := filepath.Join(dir, "10.0.0.1:80")
					os.Remove(name)
					c, err := net.DialUnix("unix", &net.UnixAddr{Name: name, Net: "unix"}, &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { c.Close() })
					if _, body := newRaw(t, c).get("/"); body != "@" {
						t.Errorf("RemoteAddr is %q", body)
					}
					if network := await(t, seen, "ConnState"); network != "unix" {
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
