package main

import (
	"io"
	"net/http"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

// echo sends each message back.
func echo(w http.ResponseWriter, r *http.Request) {
	c, rw, _, err := ws.UpgradeHTTP(r, w)
	if err != nil {
		return // it has answered
	}
	defer c.Close()
	both := struct {
		io.Reader // which may hold the first message
		io.Writer
	}{rw.Reader, c}
	for {
		// Answers pings and the closing handshake by itself.
		message, op, err := wsutil.ReadClientData(both)
		if err != nil {
			return
		}
		if err := wsutil.WriteServerMessage(c, op, message); err != nil {
			return
		}
	}
}
