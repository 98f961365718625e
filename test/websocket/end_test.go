package websocket

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

// TestShutdown: clients get 1001, one whose message is being processed after that, and
// Shutdown waits for their ends. The end of idle keep-alives does not concern them.
func TestShutdown(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		begun, hold := make(chan struct{}), make(chan struct{})
		s := fresh(handler(t, &websocket.Options{OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
			if string(p) == "hold" {
				close(begun)
				<-hold
			}
			c.Send(typ, p)
		}, OnClose: onClose}))
		if s.Engine == engines.NetHTTP {
			t.Skip("net/http's server does not know its hijacked connections")
		}
		ts := start(t, s)
		idle, busy := open(ts), open(ts)
		busy.Send(text("hold"))
		servertest.Await(t, begun, "the message")
		s.SetKeepAlivesEnabled(false)
		idle.Send(text("a"))
		idle.wants("a")
		done := make(chan error, 1)
		go func() { done <- s.Shutdown(context.Background()) }()
		h, p, err := idle.read()
		if h.Op != wsframe.Close || p != "\x03\xe9" || err != nil {
			t.Fatal(h, p, err)
		}
		close(hold)
		busy.wants("hold")
		busy.Send(closing(1001, ""))
		busy.closes(1001)
		select {
		case err := <-done:
			t.Fatal("Shutdown returned before the last connection's end:", err)
		default:
		}
		idle.Send(closing(1001, ""))
		idle.Ended()
		if err := servertest.Await(t, done, "Shutdown"); err != nil {
			t.Error(err)
		}
		for range 2 {
			if e := servertest.Await(t, closed, "OnClose"); e.code != websocket.CodeGoingAway {
				t.Error(e)
			}
		}
	})
}

// TestServerClose: Close of the server ends connections at once.
func TestServerClose(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		s := fresh(handler(t, &websocket.Options{OnMessage: echo, OnClose: onClose}))
		if s.Engine == engines.NetHTTP {
			t.Skip("net/http's server does not know its hijacked connections")
		}
		ts := start(t, s)
		c := open(ts)
		c.Send(text("a"))
		c.wants("a")
		s.Close()
		c.Cut()
		if e := servertest.Await(t, closed, "OnClose"); e.code != websocket.CodeAbnormal {
			t.Error(e)
		}
	})
}

// TestIdle: a client from which nothing comes gets Pings, and is closed when it does
// not answer them.
func TestIdle(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		ts := start(t, fresh(handler(t, &websocket.Options{
			OnMessage: echo, OnClose: onClose, PingInterval: 250 * time.Millisecond, IdleTimeout: 4 * time.Second, // a busy machine answers late
		})))
		c := open(ts)
		c.Send(text("a"))
		c.wants("a")
		for range 20 { // longer than IdleTimeout
			if h, p, err := c.read(); h.Op != wsframe.Ping || p != "" || err != nil {
				t.Fatal(h, p, err)
			}
			c.Send(frame(10, ""))
		}
		c.closes(websocket.CodePolicy)
		if e := servertest.Await(t, closed, "OnClose"); e.code != websocket.CodePolicy {
			t.Error(e)
		}
	})
}

// TestSilent: so does one from which nothing has come since the handshake.
func TestSilent(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		ts := start(t, fresh(handler(t, &websocket.Options{OnMessage: echo, PingInterval: soon})))
		if h, p, err := open(ts).read(); h.Op != wsframe.Ping || p != "" || err != nil {
			t.Error(h, p, err)
		}
	})
}

// TestUnanswered: a client that does not answer a Close frame is not waited for.
func TestUnanswered(t *testing.T) {
	if testing.Short() {
		t.Skip("takes five seconds")
	}
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		ts := start(t, fresh(handler(t, &websocket.Options{
			OnOpen: func(c *websocket.Conn, _ *http.Request) { c.Close(4000, "") }, OnClose: onClose, PingInterval: soon, IdleTimeout: -1,
		})))
		c := open(ts)
		if h, p, err := c.read(); h.Op != wsframe.Close || err != nil {
			t.Fatal(h, p, err)
		}
		c.Ended()
		servertest.Await(t, closed, "OnClose")
	})
}

// TestHandlerClose: Close of the Handler closes its connections, those of Options.Serve too, and no others, on every server;
// further ones are refused.
func TestHandlerClose(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		for name, serve := range map[string]func(*websocket.Conn, *http.Request){
			"OnMessage": nil,
			"Serve": func(c *websocket.Conn, r *http.Request) {
				for t, p, err := c.Read(r.Context()); err == nil; t, p, err = c.Read(r.Context()) {
					c.Send(t, p)
				}
			},
		} {
			onClose, closed := ends()
			h := handler(t, &websocket.Options{OnMessage: echo, Serve: serve, OnClose: onClose})
			ts := start(t, fresh(h))
			c, gone := open(ts), open(ts)
			servertest.Eventually(t, name+": two connections", func() bool { return h.Len() == 2 })
			gone.Close()
			servertest.Await(t, closed, "the end of one")
			servertest.Eventually(t, name+": one connection", func() bool { return h.Len() == 1 })
			c.Send(text("a"))
			c.wants("a")
			h.Close()
			h.Close()
			f, p, err := c.read()
			if f.Op != wsframe.Close || p != "\x03\xe9" || err != nil {
				t.Fatal(name, f, p, err)
			}
			c.Send(closing(1001, ""))
			c.Ended()
			if e := servertest.Await(t, closed, "the end of the other"); e.code != websocket.CodeGoingAway {
				t.Error(name, e)
			}
			if n := h.Len(); n != 0 {
				t.Errorf("%s: %d connections", name, n)
			}
			if ts.ExtendedConnect {
				continue // the client of these tests wants 200
			}
			again := ts.Dial()
			again.Send(upgrade())
			if res, err := http.ReadResponse(again.R, nil); err != nil || res.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("%s: after Close: %v %v", name, res, err)
			}
		}
	})
}

// TestHandlerCloseBeside: connections that open while the Handler is closed are closed or refused, and none is forgotten.
func TestHandlerCloseBeside(t *testing.T) {
	eachHTTP1(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		opened := make(chan bool, 100)
		h := handler(t, &websocket.Options{OnOpen: func(*websocket.Conn, *http.Request) { opened <- true }})
		ts := start(t, fresh(h))
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				c := ts.Dial()
				c.Send(upgrade())
				res, err := http.ReadResponse(c.R, nil)
				if err != nil {
					t.Error(err)
				} else if res.StatusCode == http.StatusSwitchingProtocols {
					if f, p, err := readFrame(c.R); f.Op != wsframe.Close || p != "\x03\xe9" || err != nil {
						t.Error(f, p, err)
					}
				}
				c.Close()
			})
		}
		servertest.Await(t, opened, "the first connection")
		h.Close()
		wait.Wait()
		servertest.Eventually(t, "all have ended", func() bool { return h.Len() == 0 })
	})
}
