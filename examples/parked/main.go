// Command parked serves WebSockets in four styles: /hand, /wsutil and /gorilla use
// gobwas/ws and gorilla/websocket without a goroutine for a connection that is silent,
// /loop is gorilla's usual loop, with one. All echo messages.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/chert-http/chert"
	"github.com/chert-http/chert/park"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	s := new(sockets)
	srv := &chert.Server{Handler: s.handler()}
	// Shutdown neither closes nor awaits hijacked connections.
	srv.RegisterOnShutdown(s.closeAll)
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("ws://%s/gorilla\n", l.Addr())
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
}

const (
	// maxMessage bounds messages, in bytes.
	maxMessage = 16 << 20
	// A message must be complete in time, and then its answer accepted, or its client would
	// hold a goroutine.
	inTime = 20 * time.Second
	// silence is how long a client may send nothing.
	silence = 10 * time.Minute
)

// sockets are the open WebSockets of a server.
type sockets struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

func (s *sockets) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hand", s.byHand)
	mux.HandleFunc("GET /wsutil", s.byWsutil)
	mux.HandleFunc("GET /gorilla", s.byGorilla)
	mux.HandleFunc("GET /loop", s.inLoop)
	return mux
}

func (s *sockets) add(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[net.Conn]struct{})
	}
	s.open[c] = struct{}{}
}

func (s *sockets) end(c net.Conn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// closeAll makes the next Read of each connection fail, and then it ends as after any
// other error.
func (s *sockets) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		c.Close()
	}
}

// A socket calls read whenever its connection has something to read, until read fails.
type socket struct {
	*sockets
	*buffered
	read func() error // one message, or one frame
}

// start parks a connection for the first time.
func (s *sockets) start(c *buffered, read func() error) {
	s.add(c)
	k := &socket{s, c, read}
	k.park()
}

func (k *socket) park() {
	k.SetReadDeadline(time.Now().Add(silence))
	if err := park.Park(k.buffered, k.readable); err != nil {
		k.end(k.buffered)
	}
}

func (k *socket) readable(net.Conn) {
	k.SetReadDeadline(time.Now().Add(inTime))
	if err := k.read(); err != nil {
		k.end(k.buffered)
		return
	}
	k.park()
}

// buffered is a hijacked connection and a reader that may have some of its bytes.
// Park uses the methods Buffered and NetConn.
type buffered struct {
	net.Conn
	r *bufio.Reader // nil when nothing reads by it any more
}

// Buffered returns how many bytes have been read from the connection, and not used.
func (c *buffered) Buffered() int {
	if c.r == nil {
		return 0
	}
	return c.r.Buffered()
}

// Write bounds how long the client may accept nothing.
func (c *buffered) Write(p []byte) (int, error) {
	c.SetWriteDeadline(time.Now().Add(inTime))
	return c.Conn.Write(p)
}

// NetConn returns the connection without the reader.
func (c *buffered) NetConn() net.Conn { return c.Conn }

// Read returns what is buffered, and then reads from the connection itself, without the
// reader, which is released.
func (c *buffered) Read(p []byte) (int, error) {
	if c.Buffered() > 0 {
		return c.r.Read(p)
	}
	c.r = nil
	return c.Conn.Read(p)
}
