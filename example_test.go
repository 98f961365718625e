package chert_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/chert-http/chert"
)

// events sends a clock's ticks until the client leaves or the server stops.
func events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		fmt.Fprint(w, "data: tick\n\n")
		if err := rc.Flush(); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-chert.Stopping(r.Context()):
			fmt.Fprint(w, "data: the server stops\n\n")
			return
		}
	}
}

// A stream of events ends when the server begins to stop. It would keep it from
// stopping for the whole grace otherwise.
func ExampleStopping() {
	srv := &chert.Server{Handler: http.HandlerFunc(events)}
	l, err := srv.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // or a signal
	ended := make(chan error)
	go func() {
		ended <- chert.Run(ctx, srv, time.Minute, func() error { return srv.Serve(l) })
	}()

	res, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Scan()
	fmt.Println(lines.Text())
	stop()
	for lines.Scan() {
		if lines.Text() == "data: the server stops" {
			fmt.Println(lines.Text())
		}
	}
	fmt.Println(<-ended)
	// Output:
	// data: tick
	// data: the server stops
	// <nil>
}

// Run is most of a main function: signals end it, and requests under way are
// answered first. README.md has the same program; a test holds them together.
func ExampleRun() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "Hello, %s!\n", r.PathValue("name"))
	})
	srv := &chert.Server{Addr: ":8080", Handler: mux} // was http.Server
	if err := chert.Run(context.Background(), srv, 20*time.Second); err != nil {
		log.Fatal(err)
	}
}
