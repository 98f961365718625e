package websocket_test

import (
	"log"
	"net/http"

	"github.com/chert-http/chert/websocket"
)

func ExampleNew() {
	echo, err := websocket.New(&websocket.Options{
		OnMessage: func(c *websocket.Conn, t websocket.Type, p []byte) {
			c.Send(t, p)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/echo", echo)
}

// A chat: everybody gets what anybody says. Clients that are too slow are
// disconnected and may come back.
func ExampleRoom() {
	var lobby websocket.Room
	chat, err := websocket.New(&websocket.Options{
		OnOpen: func(c *websocket.Conn, r *http.Request) {
			c.SetValue(r.FormValue("name"))
			lobby.Join(c)
		},
		OnMessage: func(c *websocket.Conn, t websocket.Type, p []byte) {
			name := c.Value().(string)
			lobby.Broadcast(websocket.TypeText, []byte(name+": "+string(p)))
		},
		MaxMessage:  4 << 10,
		Slow:        websocket.SlowClose,
		Compression: &websocket.Compression{},
	})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/chat", chat)
}

// Code that reads in a loop, on a goroutine of its own.
func ExampleConn_Read() {
	h, err := websocket.New(&websocket.Options{
		Serve: func(c *websocket.Conn, r *http.Request) {
			for {
				t, p, err := c.Read(r.Context())
				if err != nil {
					return
				}
				if err := c.Write(r.Context(), t, p); err != nil {
					return
				}
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/loop", h)
}
