package behave

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/websocket"
)

// A listener that returns one connection and then fails: when Serve returns,
// ConnState has been called for that connection.
func TestStateNewBeforeServeReturns(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]func(t *testing.T) (net.Listener, func() net.Conn){
		"pipe": func(t *testing.T) (net.Listener, func() net.Conn) {
			m := servertest.NewMemory()
			return m, func() net.Conn { return m.Dial(t) }
		},
		"socket": func(t *testing.T) (net.Listener, func() net.Conn) {
			l := newOwnListener(t, nil)
			return l, func() net.Conn { return servertest.Dial(t, l.Addr().String()).Conn }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alikeOthers(t, func(t *testing.T, e chert.Engine) {
				for range 20 {
					l, dial := l(t)
					// Without synchronisation: the race detector would report
					// it.
					seen := 0
					s := &chert.Server{Engine: e, ConnState: func(_ net.Conn, st http.ConnState) {
						if st == http.StateNew {
							seen++
						}
					}}
					end := make(chan error, 1)
					ctl := engines.ControlOf(s)
					go func() { end <- ctl.Serve(&onceListener{Listener: l}) }()
					c := dial()
					if err := servertest.Await(t, end, "Serve"); err != io.EOF {
						t.Errorf("Serve returned %v", err)
					}
					if seen != 1 {
						t.Errorf("StateNew was seen %d times", seen)
					}
					// It is still served.
					servertest.Wrap(t, c).Get("/")
					c.Close()
				}
			})
		})
	}
}

// onceListener accepts one connection.
type onceListener struct {
	net.Listener
	accepted bool
}

func (l *onceListener) Accept() (net.Conn, error) {
	if l.accepted {
		return nil, io.EOF
	}
	l.accepted = true
	return l.Listener.Accept()
}

// A ConnState hook may end its server. Shutdown may have to wait for the very
// connection whose hook calls it, so it needs a context or a goroutine.
func TestEndFromConnState(t *testing.T) {
	t.Parallel()
	ends := map[string]func(c engines.Control) error{
		"Close": func(c engines.Control) error { return c.Close() },
		"Shutdown": func(c engines.Control) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := c.Shutdown(ctx); err != nil && err != context.Canceled {
				return err
			}
			return nil
		},
		"Shutdown in a goroutine": func(c engines.Control) error {
			go c.Shutdown(context.Background())
			return nil
		},
	}
	for how, end := range ends {
		for _, at := range []http.ConnState{http.StateNew, http.StateActive, http.StateIdle, http.StateClosed} {
			t.Run(how+" at "+at.String(), func(t *testing.T) {
				t.Parallel()
				engines.Alike(t, func(t *testing.T, e chert.Engine) {
					if e == engines.NetHTTP && at == http.StateNew && how != "Shutdown in a goroutine" {
						return // Serve calls it, and Close and Shutdown wait for Serve
					}
					var ts *engines.Server
					var once sync.Once
					ended := make(chan error, 1)
					ready := make(chan struct{})
					s := &chert.Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {}),
						ConnState: func(_ net.Conn, st http.ConnState) {
							if st == at {
								<-ready
								once.Do(func() { ended <- end(ts.Control) })
							}
						}}
					ts = engines.Start(t, s)
					close(ready)
					c := ts.Dial()
					c.Send(servertest.GET)
					if at == http.StateClosed {
						c.CloseWrite()
					}
					if err := servertest.Await(t, ended, how); err != nil {
						t.Error(err)
					}
					c.UpToEnd()
					if err := servertest.Await(t, ts.Served, "Serve"); err != http.ErrServerClosed {
						t.Errorf("Serve returned %v", err)
					}
					ts.Served <- http.ErrServerClosed // for start's cleanup
				})
			})
		}
	}
}

// Serve waits for sockets on their way to a loop.
func TestStateNewOnLoopsBeforeServeReturns(t *testing.T) {
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		late := 0
		for range 200 {
			l := servertest.ListenTCP(t)
			var seen atomic.Int32
			ctl := engines.ControlOf(&chert.Server{Engine: e, ConnState: func(_ net.Conn, st http.ConnState) {
				if st == http.StateNew {
					seen.Add(1)
				}
			}})
			end := make(chan error, 1)
			go func() { end <- ctl.Serve(&onceListener{Listener: l}) }()
			c := servertest.Dial(t, l.Addr().String())
			if err := servertest.Await(t, end, "Serve"); err != io.EOF {
				t.Fatal(err)
			}
			if seen.Load() != 1 {
				late++
			}
			c.Get("/")
			c.Close()
		}
		if late > 0 {
			t.Errorf("StateNew came late %d times", late)
		}
	})
}

// TestConnState follows connections through their states. The hook may use the
// connection's addresses in every state.
func TestConnState(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		type step struct {
			conn         net.Conn
			local, state string
		}
		steps := make(chan step, 64)
		ts := engines.Start(t, &chert.Server{Engine: e,
			ConnState: func(c net.Conn, s http.ConnState) {
				steps <- step{c, fmt.Sprint(c.RemoteAddr(), " ", c.LocalAddr()), s.String()}
			},
			Handler: hf(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/panic":
					panic(http.ErrAbortHandler)
				case "/hijack":
					nc, _, err := w.(http.Hijacker).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					nc.Close()
				}
			})})
		const get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
		for _, tt := range []struct {
			why, wire string
			want      []string
		}{
			{"no request", "", []string{"new", "closed"}},
			{"one", get, []string{"new", "active", "idle", "closed"}},
			{"two", get + get, []string{"new", "active", "idle", "active", "idle", "closed"}},
			{"the last of all", tail, []string{"new", "active", "closed"}},
			{"one and the last", get + tail, []string{"new", "active", "idle", "active", "closed"}},
			{"a panic", "GET /panic HTTP/1.1\r\nHost: h\r\n\r\n", []string{"new", "active", "closed"}},
			{"a hijack", "GET /hijack HTTP/1.1\r\nHost: h\r\n\r\n", []string{"new", "active", "hijacked"}},
			{"no HTTP", "hello\r\n\r\n", []string{"new", "active", "closed"}},
			{"a head cut short", "GET / HT", []string{"new", "active", "closed"}},
			{unlike + "one and no HTTP", get + "hello\r\n\r\n", []string{"new", "active", "idle", "active", "closed"}},
		} {
			if e == engines.NetHTTP && strings.HasPrefix(tt.why, unlike) {
				continue // it depends on how much was read at once
			}
			for _, slowly := range []bool{false, true} {
				c := ts.Dial()
				if slowly {
					for i := range len(tt.wire) { // the server may have closed
						if _, err := c.Write([]byte(tt.wire[i : i+1])); err != nil {
							break
						}
					}
				} else {
					c.Send(tt.wire)
				}
				c.Conn.(*net.TCPConn).CloseWrite()
				c.UpToEnd()
				var first net.Conn
				for i, want := range tt.want {
					s := servertest.Await(t, steps, want)
					if s.state != want {
						t.Fatalf("%s (slowly=%v): state %d is %s, want %s", tt.why, slowly, i, s.state, want)
					}
					if s.local != c.LocalAddr().String()+" "+ts.ListenAddr {
						t.Errorf("%s: %s: addresses are %s", tt.why, want, s.local)
					}
					if i == 0 {
						first = s.conn
					} else if s.conn != first {
						t.Errorf("%s: %s: another connection", tt.why, want)
					}
				}
			}
		}
		ts.Control.Close()
		select {
		case s := <-steps:
			t.Errorf("one state too many: %s", s.state)
		default:
		}
	})
}

// A hook may close a connection, and ask for the addresses afterwards.
func TestConnStateClose(t *testing.T) {
	t.Parallel()
	engines.Alike(t, func(t *testing.T, e chert.Engine) {
		closed := make(chan net.Conn, 1)
		ts := engines.Start(t, &chert.Server{Engine: e,
			ConnState: func(c net.Conn, s http.ConnState) {
				switch s {
				case http.StateIdle:
					c.Close()
				case http.StateClosed:
					closed <- c
				}
			},
			Handler: hf(func(w http.ResponseWriter, r *http.Request) {}),
		})
		c := ts.Dial()
		c.Get("/")
		c.Ended()
		nc := servertest.Await(t, closed, "StateClosed")
		if nc.RemoteAddr().String() != c.LocalAddr().String() || nc.LocalAddr().String() != ts.ListenAddr {
			t.Errorf("addresses are %v %v", nc.RemoteAddr(), nc.LocalAddr())
		}
	})
}

// A hook that panics ends neither the process nor the connection: each panic is logged.
func TestConnStatePanics(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		for _, version := range []string{"HTTP/1", "HTTP/2"} {
			t.Run(version, func(t *testing.T) {
				t.Parallel()
				p := new(http.Protocols)
				p.SetHTTP1(version == "HTTP/1")
				p.SetUnencryptedHTTP2(version == "HTTP/2")
				ts := engines.Start(t, &chert.Server{Engine: e, Protocols: p, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}),
					ConnState: func(_ net.Conn, state http.ConnState) { panic("in " + state.String()) }})
				client := &http.Transport{Protocols: p}
				for range 3 {
					res, err := (&http.Client{Transport: client}).Get("http://" + ts.ListenAddr)
					if err != nil {
						t.Fatal(err)
					}
					if res.Body.Close(); res.ProtoMajor != int(version[5]-'0') {
						t.Error(res.Proto)
					}
				}
				client.CloseIdleConnections()
				times := 3
				if version == "HTTP/2" {
					times++ // its preface
				}
				for state, n := range map[http.ConnState]int{http.StateNew: 1, http.StateActive: times, http.StateIdle: times, http.StateClosed: 1} {
					servertest.Eventually(t, state.String()+" has panicked", func() bool {
						return strings.Count(ts.Log.String(), ": in "+state.String()+"\n") == n
					})
				}
			})
		}
	})
}

// Nor does one that panics when a handler or a WebSocket takes the connection over.
func TestConnStatePanicsHijacked(t *testing.T) {
	t.Parallel()
	engines.Each(t, func(t *testing.T, e chert.Engine) {
		opened := make(chan bool, 1)
		sockets, err := websocket.New(&websocket.Options{
			OnOpen:    func(*websocket.Conn, *http.Request) { opened <- true },
			OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) { c.Send(typ, p) },
		})
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		mux.Handle("/socket", sockets)
		mux.HandleFunc("/hijack", func(w http.ResponseWriter, r *http.Request) {
			nc, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			io.WriteString(nc, "taken")
			nc.Close()
		})
		ts := engines.Start(t, &chert.Server{Engine: e, Handler: mux,
			ConnState: func(_ net.Conn, state http.ConnState) { panic("in " + state.String()) }})
		c := ts.Dial()
		c.Send(ask("GET /hijack"))
		if got := c.UpToEnd(); got != "taken" {
			t.Errorf("got %q", got)
		}
		c = ts.Dial()
		c.Send(ask("GET /socket", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="))
		c.Head()
		servertest.Await(t, opened, "OnOpen")
		c.Send("\x81\x82\x00\x00\x00\x00hi")
		c.Want("\x81\x02hi")
		if n := strings.Count(ts.Log.String(), ": in hijacked\n"); n != 2 {
			t.Errorf("%d panics are logged in\n%s", n, ts.Log.String())
		}
	})
}
