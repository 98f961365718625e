package websocket

import (
	"context"
	"net/http"
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
