// Command gorilla serves WebSockets with chert and gorilla/websocket: /echo
// echoes messages, /push sends the time. When it stops it sends close frames.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/chert-http/chert"
	"github.com/gorilla/websocket"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	s := newSockets()
	srv := &chert.Server{Handler: s.handler(time.Second)}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("ws://%s/echo\n", l.Addr())

	// Shutdown neither closes nor awaits hijacked connections: they belong to
	// their handlers.
	srv.RegisterOnShutdown(s.goAway)
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
	s.handlers.Wait()
}

// sockets are the open WebSockets of a server.
type sockets struct {
	upgrader websocket.Upgrader
	handlers sync.WaitGroup

	mu      sync.Mutex
	open    map[*websocket.Conn]struct{}
	closing bool
}

func newSockets() *sockets { return &sockets{open: make(map[*websocket.Conn]struct{})} }

func (s *sockets) handler(every time.Duration) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /echo", s.upgrade(echo))
	mux.HandleFunc("GET /push", s.upgrade(func(c *websocket.Conn) { push(c, every) }))
	return mux
}

// upgrade makes a handler of serve, and closes the connection after it.
func (s *sockets) upgrade(serve func(*websocket.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.handlers.Add(1)
		defer s.handlers.Done()
		c, err := s.upgrader.Upgrade(w, r, nil)
		if err != nil {
			return // Upgrade has responded
		}
		defer c.Close()
		s.add(c)
		defer s.remove(c)
		serve(c)
	}
}

func (s *sockets) add(c *websocket.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
	if s.closing {
		sayBye(c)
	}
}

func (s *sockets) remove(c *websocket.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// goAway begins the closing handshake on all connections. Nothing can be
// written after it, so a handler ends with its next message, when the client
// has responded, or after five seconds; one that is writing, when that ends.
func (s *sockets) goAway() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for c := range s.open {
		sayBye(c)
	}
}

func sayBye(c *websocket.Conn) {
	until := time.Now().Add(5 * time.Second)
	c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, "the server stops"), until)
	c.SetReadDeadline(until)
}

// inTime is how long a client may take to accept a message. Without a limit, one that does
// not read would hold its handler, for which main waits at the end.
const inTime = 10 * time.Second

func echo(c *websocket.Conn) {
	c.SetReadLimit(16 << 20)
	for {
		kind, p, err := c.ReadMessage()
		if err != nil {
			return
		}
		c.SetWriteDeadline(time.Now().Add(inTime))
		if err := c.WriteMessage(kind, p); err != nil {
			return
		}
	}
}

// push sends the time until the client leaves, which reading detects. The
// request's context does not after Hijack, on any server.
func push(c *websocket.Conn, every time.Duration) {
	left := make(chan struct{})
	go func() {
		defer close(left)
		for {
			if _, _, err := c.NextReader(); err != nil {
				return
			}
		}
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			c.SetWriteDeadline(now.Add(inTime))
			if c.WriteMessage(websocket.TextMessage, []byte(now.Format(time.RFC3339Nano))) != nil {
				return
			}
		case <-left:
			return
		}
	}
}
