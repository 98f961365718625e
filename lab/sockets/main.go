// Command sockets serves the lab's usual answers and WebSocket echoes, on net/http, on chert, or on netpoll as
// http-over-polling does it: goroutines only while there is something to read.
package main

import (
	"flag"
	"fmt"
	"net/http"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"github.com/gorilla/websocket"

	"github.com/chert-http/chert"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
)

var engine = flag.String("engine", "nethttp", "nethttp, chert or polling")

func main() { serve.Main(run) }

func run(addr string) error {
	mux := http.NewServeMux()
	mux.Handle("/", handler.New())
	mux.HandleFunc("GET /gorilla", gorilla)
	mux.HandleFunc("GET /gobwas", gobwas)
	mux.HandleFunc("GET /gobwas-low", parkedGobwas(frameEcho))
	mux.HandleFunc("GET /gobwas-high", parkedGobwas(wsutilEcho))
	mux.HandleFunc("GET /gorilla-event", parkedGorilla)
	switch *engine {
	case "nethttp":
		return (&http.Server{Addr: addr, Handler: mux}).ListenAndServe()
	case "chert":
		return (&chert.Server{Addr: addr, Handler: mux, MaxConns: -1}).ListenAndServe()
	case "polling":
		return poll(addr, mux)
	}
	return fmt.Errorf("no engine %q", *engine)
}

var upgrader = websocket.Upgrader{}

// gorilla is that package's usual loop.
func gorilla(w http.ResponseWriter, r *http.Request) {
	c, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer c.Close()
	for {
		kind, message, err := c.ReadMessage()
		if err != nil {
			return
		}
		if err := c.WriteMessage(kind, message); err != nil {
			return
		}
	}
}

// gobwas is a loop with the other package.
func gobwas(w http.ResponseWriter, r *http.Request) {
	c, _, _, err := ws.UpgradeHTTP(r, w)
	if err != nil {
		return
	}
	defer c.Close()
	for {
		message, op, err := wsutil.ReadClientData(c)
		if err != nil {
			return
		}
		if err := wsutil.WriteServerMessage(c, op, message); err != nil {
			return
		}
	}
}
