// Command gobwas serves WebSockets with chert and gobwas/ws: /echo echoes
// messages, /push sends the time.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/chert-http/chert"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	srv := &chert.Server{Handler: handler(time.Second, log.Printf)}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("ws://%s/echo\n", l.Addr())
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
}

const (
	// maxMessage bounds messages, in bytes: gobwas has no limit by itself, and reads them whole.
	maxMessage = 16 << 20
	// inTime is how long a client may take to accept a message. Without a limit, one that does
	// not read would hold its handler.
	inTime = 10 * time.Second
)

// handler calls logf when a connection has ended.
func handler(every time.Duration, logf func(format string, args ...any)) http.Handler {
	wsutil.SetMaxMessageSize(maxMessage) // of ReadClientData, in the whole process
	mux := http.NewServeMux()
	mux.HandleFunc("GET /echo", upgrade(echo, logf))
	mux.HandleFunc("GET /push", upgrade(func(c *conn) error { return push(c, every) }, logf))
	return mux
}

func upgrade(serve func(*conn) error, logf func(string, ...any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, rw, _, err := ws.UpgradeHTTP(r, w)
		if err != nil {
			logf("%s: %v", r.URL.Path, err)
			return
		}
		defer c.Close()
		err = serve(&conn{c, rw.Reader})
		logf("%s: %v", r.URL.Path, err)
	}
}

// conn is a connection and the reader that may hold its first message.
type conn struct {
	net.Conn
	r io.Reader
}

func (c *conn) Read(p []byte) (int, error) { return c.r.Read(p) }

// Write bounds how long the client may accept nothing.
func (c *conn) Write(p []byte) (int, error) {
	c.SetWriteDeadline(time.Now().Add(inTime))
	return c.Conn.Write(p)
}

// send writes a message with one Write. wsutil.WriteServerMessage does it with two, and the
// pong of another goroutine that reads could come between them.
func (c *conn) send(op ws.OpCode, p []byte) error {
	frame, err := ws.CompileFrame(ws.NewFrame(op, true, p))
	if err == nil {
		_, err = c.Write(frame)
	}
	return err
}

func echo(c *conn) error {
	for {
		// It handles pings and the closing handshake by itself.
		p, op, err := wsutil.ReadClientData(c)
		if err != nil {
			return err
		}
		if err := c.send(op, p); err != nil {
			return err
		}
	}
}

// push sends the time until the client leaves, which only reading detects.
func push(c *conn, every time.Duration) error {
	left := make(chan error, 1)
	go func() {
		for {
			if _, _, err := wsutil.ReadClientData(c); err != nil {
				left <- err
				return
			}
		}
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			if err := c.send(ws.OpText, []byte(now.Format(time.RFC3339Nano))); err != nil {
				return err
			}
		case err := <-left:
			return err
		}
	}
}
