package chert_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/chert-http/chert"
)

// A Server is used as http.Server is. Timeouts and limits that are not set have
// safe defaults.
func ExampleServer() {
	srv := &chert.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "hello, "+r.URL.Query().Get("name"))
		}),
		MaxConnsPerAddr: 100,
		WriteTimeout:    time.Minute,
	}
	l, err := srv.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- srv.Serve(l) }()

	res, err := http.Get("http://" + l.Addr().String() + "/?name=chert")
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	fmt.Println(string(body), err)

	fmt.Println(srv.Shutdown(context.Background()))
	fmt.Println(<-ended)
	// Output:
	// hello, chert <nil>
	// <nil>
	// http: Server closed
}

// A new version of a program takes over when the old one gets SIGUSR2. The listener is
// opened once, and passed on from process to process.
func ExampleUpgrader() {
	srv := &chert.Server{
		Addr: ":8080",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "version 1")
		}),
		Upgrader: new(chert.Upgrader),
	}
	if err := chert.Run(context.Background(), srv, 30*time.Second); err != nil {
		log.Fatal(err)
	}
}

// With net/http's server, or without Run, the program says itself when it is ready, and
// ends when it was replaced.
func ExampleUpgrader_netHTTP() {
	up := new(chert.Upgrader)
	l, err := up.Listen("tcp", ":8080")
	if err != nil {
		log.Fatal(err)
	}
	srv := &http.Server{Handler: http.NotFoundHandler()}
	go srv.Serve(l)
	up.Ready()

	upgrade := make(chan os.Signal, 1)
	signal.Notify(upgrade, syscall.SIGHUP)
	for {
		select {
		case <-upgrade:
			if err := up.Upgrade(context.Background()); err != nil {
				log.Print(err) // and this process goes on
			}
		case <-up.Replaced():
			srv.Shutdown(context.Background())
			return
		}
	}
}

// Refused receives what the handler never sees, such as malformed requests.
func ExampleServer_refused() {
	refused := make(chan chert.Refusal, 1)
	srv := &chert.Server{Handler: http.NotFoundHandler(), Refused: func(r chert.Refusal) { refused <- r }}
	l, err := srv.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go srv.Serve(l)
	defer srv.Close()

	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n")
	r := <-refused
	fmt.Println(r.Status, r.Reason)
	fmt.Println(r.Line)
	// Output:
	// 400 more than one Content-Length
	// GET / HTTP/1.1
}

// Listeners of any kind may be served at the same time; Run stops them together.
func ExampleRun_listeners() {
	srv := &chert.Server{Addr: ":8080", Handler: http.FileServer(http.Dir("public"))}
	admin, err := srv.Listen("unix", "/run/app.sock")
	if err != nil {
		log.Fatal(err)
	}
	err = chert.Run(context.Background(), srv, 20*time.Second,
		srv.ListenAndServe,
		func() error { return srv.Serve(admin) })
	if err != nil {
		log.Fatal(err)
	}
}

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
