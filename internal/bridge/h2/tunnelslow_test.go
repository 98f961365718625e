package h2_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/chert-http/chert/internal/testing/servertest"
	"github.com/chert-http/chert/websocket"
)

// Write on a WebSocket goes on when the client has opened its windows for what was queued, each time
// that it has to wait.
func TestTunnelWriteWaits(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		const size, count = 4000, 20
		ended := make(chan error, 1)
		s := tunnels(t, kind, &websocket.Options{MaxUnsent: 2 * size, OnOpen: func(c *websocket.Conn, _ *http.Request) {
			ctx := context.Background()
			go func() {
				var err error
				for i := 0; i < count && err == nil; i++ {
					err = c.Write(ctx, websocket.TypeText, []byte(strings.Repeat("x", size)))
				}
				ended <- err
			}()
		}})
		c := s.raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: size})
		c.headers(1, false, connect...)
		c.send()
		want := len(echoes(strings.Repeat("x", size))) * count
		for got := 0; got < want; {
			switch f := c.next().(type) {
			case nil, *http2.RSTStreamFrame:
				t.Fatalf("%v after %d bytes", f, got)
			case *http2.DataFrame:
				n := len(f.Data())
				if got += n; n > 0 {
					c.fr.WriteWindowUpdate(0, uint32(n))
					c.fr.WriteWindowUpdate(1, uint32(n))
					c.send()
				}
			}
		}
		if err := servertest.Await(t, ended, "the goroutine"); err != nil {
			t.Error(err)
		}
	})
}

// The stream of a client that reads too slowly for SlowClose is reset, and others go on.
func TestTunnelTooSlow(t *testing.T) {
	t.Parallel()
	each(t, "oracle", func(t *testing.T, kind string) {
		sent := make(chan error, 1)
		s := tunnels(t, kind, &websocket.Options{MaxUnsent: 1000, OnOpen: func(c *websocket.Conn, _ *http.Request) {
			go func() {
				var err error
				for err == nil {
					err = c.Send(websocket.TypeText, make([]byte, 400))
				}
				sent <- err
			}()
		}})
		c := s.raw(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		c.headers(1, false, connect...)
		c.send()
		if a := c.read(1); a.status() != "200" || a.reset != "CANCEL" {
			t.Errorf("%+v", a)
		}
		if err := servertest.Await(t, sent, "Send"); err != websocket.ErrSlow {
			t.Error(err)
		}
		c.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 65535})
		if a := c.get(3, "/hello"); a.outcome() != "200" {
			t.Errorf("another stream: %+v", a)
		}
	})
}
