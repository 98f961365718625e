// Command wsnethttp is net/http with one of four libraries for WebSockets as a server under test, each used as its
// documentation shows. Package serve says what it serves.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/chert-http/chert/lab/handler"
	"github.com/chert-http/chert/lab/serve"
)

// library is one for WebSockets.
type library struct {
	echo http.Handler
	// room is echo for connections that also get what is broadcast. broadcast sends a message to one after the other,
	// with nothing in between: a client that does not read would hold up all, but nothing costs less.
	room      http.Handler
	broadcast func(data []byte)
}

var libraries = map[string]library{
	"gorilla": gorilla(),
	"gws":     gwsLibrary(),
	"coder":   coder(),
	"gobwas":  gobwas(),
}

var name = flag.String("library", "gorilla", "gorilla, gws, coder or gobwas")

func main() {
	serve.Main(func(addr string) error {
		l, ok := libraries[*name]
		if !ok {
			return fmt.Errorf("no library %q", *name)
		}
		s := &http.Server{Addr: addr, TLSConfig: &tls.Config{Certificates: []tls.Certificate{serve.Certificate()}}}
		h := handler.WithSockets(l.echo, l.room, func(data string) { l.broadcast([]byte(data)) })
		s.Handler = serve.TLS(h, net.Listen, s.ServeTLS)
		return s.ListenAndServe()
	})
}

// members are the connections of a room. Nil has none.
type members[C comparable] struct {
	mu  sync.Mutex
	all map[C]bool
}

func (m *members[C]) join(c C) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = make(map[C]bool)
	}
	m.all[c] = true
}

func (m *members[C]) leave(c C) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, c)
}

// each sends to all. What fails is noticed where the connection is read.
func (m *members[C]) each(send func(C)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.all {
		send(c)
	}
}
