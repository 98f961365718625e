// Command chertws is chert as a server under test, with package websocket; package serve says what it serves.
package main

import (
	"crypto/tls"
	"net/http"
	"os"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/websocket"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
)

func main() {
	serve.Main(func(addr string) error {
		// Without pings, as the others are.
		o := websocket.Options{
			OnMessage:    func(c *websocket.Conn, t websocket.Type, p []byte) { c.Send(t, p) },
			PingInterval: -1, IdleTimeout: -1,
		}
		echo, err := websocket.New(&o)
		if err != nil {
			return err
		}
		var all websocket.Room
		o.OnOpen = func(c *websocket.Conn, _ *http.Request) { all.Join(c) }
		room, err := websocket.New(&o)
		if err != nil {
			return err
		}
		s := &chert.Server{Addr: addr, MaxConns: -1, TLSConfig: &tls.Config{Certificates: []tls.Certificate{serve.Certificate()}}}
		if os.Getenv("CHERT_ENGINE") == "goroutines" {
			s.Engine = chert.EngineGoroutines
		}
		h := handler.WithSockets(echo, room, func(data string) { all.Broadcast(websocket.TypeBinary, []byte(data)) })
		s.Handler = serve.TLS(h, s.Listen, s.ServeTLS)
		return s.ListenAndServe()
	})
}
