package redisroom_test

import (
	"log"
	"net/http"

	"github.com/chert-http/chert/websocket"
	"github.com/chert-http/chert/websocket/redisroom"
)

// Everybody in the lobby hears everybody, on whichever process.
func ExampleOpenURL() {
	store, err := redisroom.OpenURL("redis://127.0.0.1:6379/0", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	lobby, err := store.Room("lobby")
	if err != nil {
		log.Fatal(err)
	}
	chat, err := websocket.New(&websocket.Options{
		OnOpen: func(c *websocket.Conn, r *http.Request) {
			if err := lobby.Join(c, &redisroom.JoinOptions{User: r.URL.Query().Get("name")}); err != nil {
				c.Close(websocket.CodeTryLater, "")
			}
		},
		OnMessage: func(_ *websocket.Conn, t websocket.Type, p []byte) {
			if _, err := lobby.Broadcast(t, p); err != nil {
				log.Print(err)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/chat", chat)
}
