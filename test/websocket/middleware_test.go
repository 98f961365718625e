package websocket

import (
	"net/http"
	"testing"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/middleware"
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
