package websocket

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/engines"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

func TestServe(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		onClose, closed := ends()
		results := make(chan error, 10)
		ts := start(t, fresh(handler(t, &websocket.Options{
			MaxMessage: 100_000, OnClose: onClose,
			Serve: func(c *websocket.Conn, r *http.Request) {
				if err := c.Write(r.Context(), websocket.TypeText, []byte("welcome")); err != nil {
					t.Error(err)
				}
				for {
					typ, p, err := c.Read(r.Context())
					switch {
					case err != nil:
						_, _, again := c.Read(r.Context())
						if again.Error() != err.Error() {
							t.Error(again)
						}
						results <- err
						return
					case string(p) == "return":
						return
					case string(p) == "panic":
						panic(http.ErrAbortHandler)
					case string(p) == "exit":
						runtime.Goexit()
					case string(p) == "cancel":
						ctx, cancel := context.WithCancel(r.Context())
						cancel()
						if _, _, err := c.Read(ctx); err != context.Canceled {
							t.Error(err)
						}
						ctx, cancel = context.WithTimeout(r.Context(), soon)
						if _, _, err := c.Read(ctx); err != context.DeadlineExceeded {
							t.Error(err)
						}
						cancel()
						p = []byte("cancelled")
					case string(p) == "poll":
						ctx, cancel := context.WithCancel(r.Context())
						cancel()
						if _, p, err = c.Read(ctx); err != nil {
							t.Error(err)
						}
					}
					if err := c.Write(r.Context(), typ, p); err != nil {
						t.Error(err)
					}
				}
			},
		})))
		c := open(ts)
		long := strings.Repeat("x", 100_000)
		c.Send(text("a") + frame(-1, "b") + frame(9, "p") + frame(0, "c") + text(long))
		c.wants("welcome", "a")
		got := map[string]wsframe.Opcode{}
		for range 3 {
			h, p, err := c.read()
			if err != nil {
				t.Fatal(err)
			}
			got[p] = h.Op
		}
		if got["p"] != wsframe.Pong || got["bc"] != wsframe.Text || got[long] != wsframe.Text {
			t.Error("not all frames came")
		}
		c.Send(text("cancel"))
		c.wants("cancelled")
		// What has arrived is returned, even if there was to be no wait for it.
		c.Send(text("poll") + text("there"))
		c.wants("there")
		c.Send(text("and on") + closing(4000, "bye"))
		c.wants("and on")
		c.closes(4000)
		var ce *websocket.CloseError
		if err := servertest.Await(t, results, "Read's error"); !errors.As(err, &ce) || ce.Code != 4000 || ce.Reason != "bye" {
			t.Error(err)
		}
		servertest.Await(t, closed, "OnClose")
		for _, tt := range []struct {
			send string
			code websocket.Code
		}{{text("return") + text("ignored"), 1000}, {text("panic"), 1011}, {text("exit"), 1011}, {text("\xff"), 1007}, {frame(2, long+"x"), 1009}} {
			c := open(ts)
			c.Send(tt.send)
			c.wants("welcome")
			h, p, err := c.read()
			if h.Op != wsframe.Close || err != nil {
				t.Fatal(h, p, err)
			}
			if code, _, _ := wsframe.ParseClose([]byte(p)); websocket.Code(code) != tt.code {
				t.Error(code, tt.code)
			}
			// A handler that does not return has its stream reset.
			if !ts.ExtendedConnect || tt.code != 1011 {
				c.Send(closing(tt.code, ""))
				c.Ended()
			}
			c.Close()
			if e := servertest.Await(t, closed, "OnClose"); e.code != tt.code {
				t.Error(e, tt.code)
			}
		}
	})
}

// TestReadPolls: a client from which nothing comes gets Pings, however short the calls of Read are.
func TestReadPolls(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		ts := start(t, fresh(handler(t, &websocket.Options{PingInterval: 50 * time.Millisecond, Serve: func(c *websocket.Conn, r *http.Request) {
			for {
				ctx, cancel := context.WithTimeout(r.Context(), time.Millisecond)
				_, _, err := c.Read(ctx)
				if cancel(); err != context.DeadlineExceeded {
					return
				}
			}
		}})))
		c := open(ts)
		if h, p, err := c.read(); h.Op != wsframe.Ping || err != nil {
			t.Error(h, p, err)
		}
		c.Close()
	})
}

// TestReadUnread: Read ends with the connection also while it waits for the client to read, and so reads nothing itself.
func TestReadUnread(t *testing.T) {
	t.Parallel()
	for _, e := range []chert.Engine{chert.EngineGoroutines, engines.NetHTTP} {
		full, result := make(chan bool, 1), make(chan error, 1)
		_, m := engines.StartMemory(t, &chert.Server{Engine: e, Handler: handler(t, &websocket.Options{
			PingInterval: -1, Slow: websocket.SlowDrop,
			Serve: func(c *websocket.Conn, r *http.Request) {
				c.Read(r.Context())
				for large := make([]byte, 64<<10); c.Send(websocket.TypeBinary, large) == nil; {
				}
				full <- true
				_, _, err := c.Read(context.Background())
				result <- err
			}})})
		c := opened(servertest.Wrap(t, m.Dial(t)))
		c.Send(text("begin"))
		servertest.Await(t, full, "the queue to be full")
		c.Close()
		if err := servertest.Await(t, result, "Read"); err == nil {
			t.Error("no error")
		}
	}
}

// TestReadElsewhere: Read is an error where messages go to OnMessage.
func TestReadElsewhere(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		ts := start(t, fresh(handler(t, &websocket.Options{OnMessage: func(c *websocket.Conn, typ websocket.Type, p []byte) {
			if _, _, err := c.Read(context.Background()); err == nil {
				t.Error("no error")
			}
			c.Send(typ, p)
		}})))
		c := open(ts)
		c.Send(text("a"))
		c.wants("a")
	})
}
