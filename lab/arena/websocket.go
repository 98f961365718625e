package main

import (
	"net/http"

	"github.com/chert-http/chert/websocket"
)

// echo sends each message back.
func echo() (http.Handler, error) {
	return websocket.New(&websocket.Options{
		OnMessage: func(c *websocket.Conn, t websocket.Type, p []byte) { c.Send(t, p) },
	})
}
