//go:build !js

package wstest

import (
	"context"
	"net/http"
	"net/http/httptest"

	"github.com/coder/websocket"
)

// Pipe connects two websockets through a server.
func Pipe(dialOpts *websocket.DialOptions, acceptOpts *websocket.AcceptOptions) (clientConn, serverConn *websocket.Conn) {
	accepted := make(chan *websocket.Conn, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := websocket.Accept(w, r, acceptOpts)
		accepted <- c
	}))
	// What has been hijacked outlives the server.
	defer s.Close()

	var opts websocket.DialOptions
	if dialOpts != nil {
		opts = *dialOpts
	}
	opts.HTTPClient = s.Client()
	clientConn, _, _ = websocket.Dial(context.Background(), s.URL, &opts)
	return clientConn, <-accepted
}
