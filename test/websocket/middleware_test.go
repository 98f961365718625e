package websocket

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/middleware"
	"github.com/chert-http/chert/middleware/forwardauth"
	"github.com/chert-http/chert/websocket"
)

// TestMiddleware: middleware that bounds requests, or changes responses, leaves connections as they are.
func TestMiddleware(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		h := middleware.Chain(handler(t, &websocket.Options{Serve: func(c *websocket.Conn, r *http.Request) {
			if at, ok := r.Context().Deadline(); ok {
				t.Errorf("it ends at %v", at)
			}
			serveEcho(c, r)
		}}),
			middleware.BodyLimit(&middleware.BodyLimitOptions{MaxSize: 100}), middleware.Timeout(nil),
			middleware.Must(middleware.Compress(&middleware.CompressOptions{MinSize: -1, Types: func(string) bool { return true }})),
		)
		c := open(start(t, fresh(h)), "Accept-Encoding: gzip")
		for range 20 {
			c.Send(text("0123456789"))
			c.wants("0123456789")
		}
	})
}

// TestForwardAuth: a server can be asked about the handshake, of HTTP/2 too, whose :protocol is no field.
func TestForwardAuth(t *testing.T) {
	each(t, func(t *testing.T, fresh func(http.Handler) *chert.Server) {
		auth := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Forwarded-Uri") != "/" || r.Header.Get("Sec-Websocket-Version") != "13" {
				t.Error(r.Header)
			}
		}))
		defer auth.Close()
		f, err := forwardauth.New(&forwardauth.Options{URL: auth.URL})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c := open(start(t, fresh(f.Wrap(handler(t, &websocket.Options{OnMessage: echo})))))
		c.Send(text("hello"))
		c.wants("hello")
	})
}
