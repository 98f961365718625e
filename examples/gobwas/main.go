// Command gobwas serves WebSockets with chert and gobwas/ws: /echo echoes
// messages, /push sends the time.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
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

// handler calls logf when a connection has ended.
func handler(every time.Duration, logf func(format string, args ...any)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /echo", upgrade(echo, logf))
	mux.HandleFunc("GET /push", upgrade(func(c io.ReadWriter) error { return push(c, every) }, logf))
	return mux
}

func upgrade(serve func(io.ReadWriter) error, logf func(string, ...any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, rw, _, err := ws.UpgradeHTTP(r, w)
		if err != nil {
			logf("%s: %v", r.URL.Path, err)
			return
		}
		defer c.Close()
		// Not from the connection: the reader may hold the first message.
		err = serve(struct {
			io.Reader
			io.Writer
		}{rw.Reader, c})
		logf("%s: %v", r.URL.Path, err)
	}
}

func echo(c io.ReadWriter) error {
	for {
		// It handles pings and the closing handshake by itself.
		p, op, err := wsutil.ReadClientData(c)
		if err != nil {
			return err
		}
		if err := wsutil.WriteServerMessage(c, op, p); err != nil {
			return err
		}
	}
}

// push sends the time until the client leaves, which only reading detects.
func push(c io.ReadWriter, every time.Duration) error {
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
			if err := wsutil.WriteServerText(c, []byte(now.Format(time.RFC3339Nano))); err != nil {
				return err
			}
		case err := <-left:
			return err
		}
	}
}
