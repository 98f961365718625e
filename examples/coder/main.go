// Command coder serves WebSockets with chert and coder/websocket: /echo echoes
// messages, /push sends the time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/chert-http/chert"
	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	srv := &chert.Server{Handler: handler(time.Second, 20*time.Second, log.Printf)}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("ws://%s/echo\n", l.Addr())
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
}

// handler calls logf when a connection has ended. A client must accept a message within inTime:
// without a limit, one that does not read would hold its handler.
func handler(every, inTime time.Duration, logf func(format string, args ...any)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /echo", accept(func(ctx context.Context, c *websocket.Conn) error {
		return echo(ctx, c, inTime)
	}, logf))
	mux.HandleFunc("GET /push", accept(func(ctx context.Context, c *websocket.Conn) error {
		return push(ctx, c, every, inTime)
	}, logf))
	return mux
}

func accept(serve func(context.Context, *websocket.Conn) error, logf func(string, ...any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
		if err == nil {
			defer c.CloseNow()
			c.SetReadLimit(16 << 20)
			err = serve(r.Context(), c)
		}
		logf("%s: %v", r.URL.Path, err)
	}
}

// echo copies each message through, whatever its length.
func echo(ctx context.Context, c *websocket.Conn, inTime time.Duration) error {
	for {
		kind, r, err := c.Reader(ctx)
		if err != nil {
			return err
		}
		if err := pass(ctx, c, kind, r, inTime); err != nil {
			return err
		}
	}
}

// pass sends what r has as a message.
func pass(ctx context.Context, c *websocket.Conn, kind websocket.MessageType, r io.Reader, inTime time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, inTime)
	defer cancel()
	w, err := c.Writer(ctx, kind)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	return w.Close()
}

// push sends the time until the client leaves. CloseRead's context ends then;
// the request's does not after Hijack, on any server.
func push(ctx context.Context, c *websocket.Conn, every, inTime time.Duration) error {
	ctx = c.CloseRead(ctx)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			write, cancel := context.WithTimeout(ctx, inTime)
			err := wsjson.Write(write, c, map[string]time.Time{"now": now})
			if cancel(); err != nil {
				return err
			}
		case <-ctx.Done():
			return errors.New("the client left")
		}
	}
}
