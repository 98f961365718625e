// Command timeout bounds the time of a handler with http.TimeoutHandler.
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
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "where to listen")
	limit := flag.Duration("limit", time.Second, "how long a handler may take")
	flag.Parse()
	srv := &chert.Server{Handler: handler(*limit)}
	l, err := srv.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/sleep?for=500ms\n", l.Addr())
	if err := chert.Run(context.Background(), srv, 0, func() error { return srv.Serve(l) }); err != nil {
		log.Fatal(err)
	}
}

const tooSlow = "too slow\n"

// handler has one route within the limit and one without. TimeoutHandler
// buffers the whole response until it is complete, so streams must stay
// outside.
func handler(limit time.Duration) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /sleep", http.TimeoutHandler(http.HandlerFunc(sleep), limit, tooSlow))
	mux.HandleFunc("GET /unbounded/sleep", sleep)
	return mux
}

func sleep(w http.ResponseWriter, r *http.Request) {
	d, err := time.ParseDuration(r.FormValue("for"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case <-time.After(d):
		io.WriteString(w, "slept\n")
	case <-r.Context().Done(): // the limit, or the client
		// TimeoutHandler sends this if it notices the handler's end first.
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, tooSlow)
	}
}
