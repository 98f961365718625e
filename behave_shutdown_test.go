package chert

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// waiter is a server whose handler waits at "/wait" until release is closed.
func waiter(t *testing.T, e Engine) (ts *testServer, running chan struct{}, release chan struct{}) {
	running, release = make(chan struct{}, 16), make(chan struct{})
	ts = start(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			running <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		put(w, "answer")
	})})
	return ts, running, release
}

// refused waits until nobody listens any more.
func (ts *testServer) refused() {
	ts.t.Helper()
	eventually(ts.t, "connections are refused", func() bool {
		nc, err := net.Dial("tcp", ts.addr)
		if err == nil {
			nc.Close()
			return false
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
}

func TestShutdown(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		ts, running, release := waiter(t, e)
		idle := ts.dial()
		idle.get("/")
		active := ts.dial()
		active.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
		await(t, running, "the handler")
		hooks := make(chan struct{}, 2)
		ts.ctl.RegisterOnShutdown(func() { hooks <- struct{}{} })
		ts.ctl.RegisterOnShutdown(func() { hooks <- struct{}{} })
		ended := make(chan error, 1)
		go func() { ended <- ts.ctl.Shutdown(context.Background()) }()
		await(t, hooks, "a hook")
		await(t, hooks, "the other hook")
		idle.closed()
		ts.refused()
		select {
		case err := <-ended:
			t.Fatalf("Shutdown did not wait: %v", err)
		default:
		}
		close(release)
		if res, body := active.response("GET"); body != "answer" || !res.Close {
			t.Errorf("got %v %q", res, body)
		}
		active.closed()
		if err := await(t, ended, "Shutdown"); err != nil {
			t.Error(err)
		}
		if err := await(t, ts.errc, "Serve"); err != http.ErrServerClosed {
			t.Errorf("Serve returned %v", err)
		}
		ts.errc <- http.ErrServerClosed // start's cleanup wants it
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := ts.ctl.Serve(l); err != http.ErrServerClosed {
			t.Errorf("Serve after Shutdown returned %v", err)
		}
		if nc, err := l.Accept(); err == nil {
			nc.Close()
			t.Error("Serve after Shutdown did not close its listener")
		}
	})
}

// When the context ends first, what runs goes on running until Close.
func TestShutdownContext(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		over := make(chan error, 1)
		running := make(chan struct{})
		ts := start(t, &Server{Engine: e, Handler: hf(func(w http.ResponseWriter, r *http.Request) {
			close(running)
			<-r.Context().Done()
			over <- r.Context().Err()
		})})
		c := ts.dial()
		c.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
		await(t, running, "the handler")
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- ts.ctl.Shutdown(ctx) }()
		ts.refused()
		cancel()
		if err := await(t, ended, "Shutdown"); err != context.Canceled {
			t.Errorf("Shutdown returned %v", err)
		}
		if err := ts.ctl.Shutdown(ctx); err != context.Canceled {
			t.Errorf("Shutdown with an ended context returned %v", err)
		}
		select {
		case <-over:
			t.Error("the handler has ended")
		default:
		}
		if err := ts.ctl.Close(); err != nil {
			t.Error(err)
		}
		if err := await(t, over, "the handler's end"); err != context.Canceled {
			t.Error(err)
		}
		c.closed()
	})
}

func TestClose(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		ts, running, _ := waiter(t, e)
		fresh, idle, active, partial := ts.dial(), ts.dial(), ts.dial(), ts.dial()
		idle.get("/")
		active.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
		await(t, running, "the handler")
		partial.get("/")
		partial.send("GET /")
		fresh.LocalAddr()
		if err := ts.ctl.Close(); err != nil {
			t.Error(err)
		}
		ts.refused()
		for _, c := range []*rawConn{idle, active, partial, fresh} {
			c.closed()
		}
		if err := await(t, ts.errc, "Serve"); err != http.ErrServerClosed {
			t.Errorf("Serve returned %v", err)
		}
		ts.errc <- http.ErrServerClosed
		if err := ts.ctl.Close(); err != nil {
			t.Errorf("a second Close returned %v", err)
		}
	})
}

// Shutdown of a server that never served, twice, and with a hook.
func TestShutdownUnused(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, e Engine) {
		s := &Server{Engine: e}
		var hooks atomic.Int32
		called := make(chan struct{}, 2)
		s.RegisterOnShutdown(func() { hooks.Add(1); called <- struct{}{} })
		for range 2 {
			if err := s.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			await(t, called, "the hook")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.ListenAndServe(); err != ErrServerClosed {
			t.Errorf("ListenAndServe returned %v", err)
		}
		if err := s.ListenAndServeTLS("", ""); err != ErrServerClosed {
			t.Errorf("ListenAndServeTLS returned %v", err)
		}
	})
}

// A response under way tells that its connection will not be kept; without
// keep-alives idle connections end.
func TestSetKeepAlivesEnabled(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		ts, running, release := waiter(t, e)
		idle, active := ts.dial(), ts.dial()
		idle.get("/")
		active.send("GET /wait HTTP/1.1\r\nHost: h\r\n\r\n")
		await(t, running, "the handler")
		ts.ctl.SetKeepAlivesEnabled(false)
		idle.closed()
		close(release)
		if res, _ := active.response("GET"); !res.Close {
			t.Errorf("got %v", res)
		}
		active.closed()
		c := ts.dial() // new ones are welcome
		if res, _ := c.get("/"); !res.Close {
			t.Errorf("got %v", res)
		}
		c.closed()
		ts.ctl.SetKeepAlivesEnabled(true)
		c = ts.dial()
		for range 2 {
			if res, _ := c.get("/"); res.Close {
				t.Errorf("got %v", res)
			}
		}
	})
}

// TestConnState follows connections through their states. The hook may use the
// connection's addresses in every state.
func TestConnState(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		type step struct {
			conn         net.Conn
			local, state string
		}
		steps := make(chan step, 64)
		ts := start(t, &Server{Engine: e,
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
			if e == oracle && strings.HasPrefix(tt.why, unlike) {
				continue // it depends on how much was read at once
			}
			for _, slowly := range []bool{false, true} {
				c := ts.dial()
				if slowly {
					for i := range len(tt.wire) { // the server may have closed
						if _, err := c.Write([]byte(tt.wire[i : i+1])); err != nil {
							break
						}
					}
				} else {
					c.send(tt.wire)
				}
				c.Conn.(*net.TCPConn).CloseWrite()
				c.upToEnd()
				var first net.Conn
				for i, want := range tt.want {
					s := await(t, steps, want)
					if s.state != want {
						t.Fatalf("%s (slowly=%v): state %d is %s, want %s", tt.why, slowly, i, s.state, want)
					}
					if s.local != c.LocalAddr().String()+" "+ts.addr {
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
		ts.ctl.Close()
		select {
		case s := <-steps:
			t.Errorf("one state too many: %s", s.state)
		default:
		}
	})
}

// A hook may close a connection, and ask for the addresses when it is gone.
func TestConnStateClose(t *testing.T) {
	t.Parallel()
	alike(t, func(t *testing.T, e Engine) {
		closed := make(chan net.Conn, 1)
		ts := start(t, &Server{Engine: e,
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
		c := ts.dial()
		c.get("/")
		c.closed()
		nc := await(t, closed, "StateClosed")
		if nc.RemoteAddr().String() != c.LocalAddr().String() || nc.LocalAddr().String() != ts.addr {
			t.Errorf("addresses are %v %v", nc.RemoteAddr(), nc.LocalAddr())
		}
	})
}
