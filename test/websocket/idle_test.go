package websocket

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/internal/wsdeflate"
	"github.com/chert-http/chert/internal/wsframe"
	"github.com/chert-http/chert/websocket"
)

// next returns the next message, and answers Pings before it.
func (c *client) next() string {
	c.T.Helper()
	for {
		switch h, p, err := c.read(); {
		case err != nil || h.Op == wsframe.Close:
			c.T.Fatalf("%+v %q %v", h, p, err)
		case h.Op == wsframe.Ping:
			c.Send(frame(10, p))
		default:
			return p
		}
	}
}

// deflated is a message that is compressed without a window.
func deflated(s string) string {
	return masked(wsframe.Header{Fin: true, RSV1: true, Op: wsframe.Text}, string(wsdeflate.Deflate(nil, []byte(s), nil, 12)))
}

// TestIdleAfterCode: code that takes longer than IdleTimeout is no silence of the client, which has sent something meanwhile or
// answers the next Ping.
func TestIdleAfterCode(t *testing.T) {
	const idle, busy = 3 * time.Second, 3200 * time.Millisecond
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		begun := make(chan bool, 10)
		work := func() {
			begun <- true
			time.Sleep(busy)
		}
		onMessage := func(c *websocket.Conn, typ websocket.Type, p []byte) {
			if string(p) == "long" {
				work()
			}
			c.Send(typ, p)
		}
		serve := func(before func(c *websocket.Conn)) func(*websocket.Conn, *http.Request) {
			return func(c *websocket.Conn, _ *http.Request) {
				for {
					typ, p, err := c.Read(context.Background())
					if err != nil {
						return
					}
					if string(p) == "long" {
						before(c)
						work()
						p = []byte("long")
					}
					c.Send(typ, p)
				}
			}
		}
		programs := []struct {
			name    string
			message func(string) string
			o       websocket.Options
		}{
			{"OnMessage", text, websocket.Options{OnMessage: onMessage}},
			{"compressed", deflated, websocket.Options{OnMessage: onMessage, Compression: new(websocket.Compression)}},
			{"Serve", text, websocket.Options{Serve: serve(func(*websocket.Conn) {})}},
			{"after Read's context", text, websocket.Options{Serve: serve(func(c *websocket.Conn) {
				ctx, cancel := context.WithTimeout(context.Background(), soon)
				defer cancel()
				if _, _, err := c.Read(ctx); err != context.DeadlineExceeded {
					t.Error(err)
				}
			})}},
		}
		type pair struct{ sends, quiet *client }
		var all []pair
		for i := range programs {
			o := programs[i].o
			o.PingInterval, o.IdleTimeout = 100*time.Millisecond, idle
			ts := start(t, fresh(handler(t, &o)))
			deflate := "Sec-WebSocket-Extensions: permessage-deflate"
			p := pair{open(ts, deflate), open(ts, deflate)}
			for _, c := range []*client{p.sends, p.quiet} {
				c.Send(programs[i].message("long"))
				servertest.Await(t, begun, "the code")
			}
			p.sends.Send(programs[i].message("more"))
			all = append(all, p)
		}
		for i, c := range all { // which have idle for the answer; for the others there is no hurry
			name, more := programs[i].name, programs[i].message("more")
			if long := c.quiet.next(); long != "long" {
				t.Errorf("%s: %q", name, long)
			}
			if h, _, err := c.quiet.read(); h.Op != wsframe.Ping || err != nil {
				t.Errorf("%s: %+v %v", name, h, err)
			}
			c.quiet.Send(more)
		}
		for i, c := range all {
			name := programs[i].name
			if more := c.quiet.next(); more != "more" {
				t.Errorf("%s: %q", name, more)
			}
			if long, more := c.sends.next(), c.sends.next(); long != "long" || more != "more" {
				t.Errorf("%s: %q, %q", name, long, more)
			}
		}
	})
}
