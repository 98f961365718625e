package websocket

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/direct/wire"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/websocket"
)

// lines is the output of an access log.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// delivery is a watcher.
type delivery chan wire.Delivery

func (delivery) Keep()                  {}
func (d delivery) Sent(w wire.Delivery) { d <- w }

// The watchers of an opening handshake, registered before the handler and after it, are notified when the WebSocket
// ends, with the bytes of its frames.
func TestEnding(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		out, first := new(lines), make(delivery, 10)
		log := middleware.NewAccessLog(&middleware.AccessLogOptions{Output: out, Format: middleware.LogText, BufferSize: -1})
		t.Cleanup(func() { log.Close() })
		logged := log.Wrap(handler(t, &websocket.Options{OnMessage: echo}))
		s := fresh(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			wire.Watch(w, first)
			logged.ServeHTTP(w, r)
		}))
		if s.Engine == engines.NetHTTP {
			t.Skip("net/http's server has no watchers")
		}
		status, shown := 101, " status=101 bytes=7 "
		if s.ExtendedConnect { // RFC 8441 section 5
			status, shown = 200, " status=200 bytes=7 "
		}
		ts := start(t, s)
		c := open(ts)
		c.Send(text("a"))
		c.wants("a")
		if out.String() != "" || len(first) > 0 {
			t.Errorf("before the end: %q", out)
		}
		c.Send(closing(1000, ""))
		c.closes(1000)
		c.Close()
		const body = 3 + 4 // a frame with "a", a Close frame with a code
		if got := servertest.Await(t, first, "the end"); got != (wire.Delivery{Status: status, Body: body, Complete: true}) {
			t.Errorf("got %+v", got)
		}
		servertest.Eventually(t, "the log has a line", func() bool { return strings.Contains(out.String(), "\n") })
		if line := out.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, shown) || strings.Contains(line, "aborted") {
			t.Error(line)
		}
		if len(first) > 0 {
			t.Error("notified again")
		}
	})
}

// A panic of OnLeave does not end the server: it is logged, the connection leaves its other rooms, and OnClose is called.
func TestPanicOfOnLeave(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		logged := new(lines)
		room, other := &websocket.Room{OnLeave: func(*websocket.Conn) { panic("of the user's") }}, new(websocket.Room)
		h := handler(t, &websocket.Options{
			OnOpen: func(c *websocket.Conn, _ *http.Request) {
				other.Join(c)
				room.Join(c) // which it leaves first
			},
			OnMessage: echo, OnClose: onClose, Logger: slog.New(slog.NewTextHandler(logged, nil)),
		})
		ts := start(t, fresh(h))
		c := open(ts)
		c.Send(closing(1000, ""))
		c.closes(1000)
		if e := servertest.Await(t, closed, "OnClose"); e.code != 1000 {
			t.Error(e)
		}
		if !strings.Contains(logged.String(), "of the user's") || !strings.Contains(logged.String(), "stack=") {
			t.Errorf("logged: %q", logged)
		}
		if n, m := room.Len(), other.Len(); n != 0 || m != 0 || h.Len() != 0 {
			t.Errorf("%d and %d in the rooms, %d connections", n, m, h.Len())
		}
		c = open(ts)
		c.Send(text("a"))
		c.wants("a")
	})
}
